"""The options of decoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from bahdanau_tf.options.fields import OptionGroup, setting
from bahdanau_tf.system.ranges import OptionError, Range, Refusal, check_range, did_you_mean

LEAST_LIMIT = 10  # tokens: a translation of one word may need more than three
_FACTOR = Range(0, 1000)
_POSITIVE = Range(0, 1000, above_low=True)
BATCH_SIZE = 64  # sentences translated, scored or aligned at once
WINDOW = 1000  # lines held, so that like lengths are batched together
SAMPLING = ("sampling", "temperature", "top_k", "top_p", "seed")
_DRAWN = {"sampling": [True]}
_SEARCHED = {"sampling": [False]}
# The values that `bahdanau_tf.runtime` and pages support, of options that they support in part.
WITHOUT_TENSORFLOW: Mapping[str, list[Any]] = {
    "sampling": [False],
    "no_repeated_ngrams": [0],
    "unknown": ["keep", "forbid"],
}


@dataclass(frozen=True)
class Decoding(OptionGroup):
    """How to search; the defaults suit most models.

    Lengths count tokens, end symbols included.

    Attributes:
        beam_size: K, the number of hypotheses kept; 1 is greedy search.
        n_best: Number of translations returned for each sentence, best first; with sampling, the
            number of draws.
        alpha: α in the length penalty ((5 + |y|) / 6)^α; 0 ranks translations by log p(y | x)
            alone, as in the paper. If commands are not given it, they use the model's.
        beta: β in the coverage penalty, for models with attention; 0 for none; like `alpha`.
        min_length_ratio: Shortest translation, in tokens per source token.
        max_length_ratio: Longest translation, in tokens per source token; 3 as in the original
            code. Translations of up to 10 tokens are never too long for it.
        max_length: Longest translation in tokens, however long the source.
        no_repeated_ngrams: No n-gram of this length may occur twice; 0 for no limit.
        unknown: Treatment of unknown words: "keep" writes [UNK], "forbid" never produces one,
            "replace" writes the dictionary's translation of the source word with the largest
            weight, or else that word itself.
        shortlist: Whether to score only the frequent words and those that the lexicon has for the
            sentence: faster, with nearly the same translations.
        shrink: Whether the beam shrinks by one with each finished hypothesis, as in the original
            code; search then stops earlier.
        sampling: Whether to draw translations word by word instead of beam search. The draws depend
            only on the sentence, the seed and n_best; alpha and beta only score and rank them.
        temperature: Words are drawn from softmax(logits / temperature).
        top_k: Words are drawn only from the k most probable ones; 0 for all.
        top_p: Words are then drawn from the smallest set whose total probability is at least p.
        seed: Seed of the draws.

    Raises:
        ValueError: A value is out of range, or has no effect with the others. The message has the
            name and the value.
    """

    beam_size: int = setting(5, Range(1, 10_000), used_if=_SEARCHED)
    n_best: int = setting(1, Range(1, 10_000))
    alpha: float = setting(1.0, _FACTOR)
    beta: float = setting(0.0, _FACTOR)
    min_length_ratio: float = 0.0
    max_length_ratio: float = setting(3.0, _POSITIVE)
    max_length: int = setting(200, Range(1, 10**6))
    no_repeated_ngrams: int = setting(0, Range(0, 100))
    unknown: Literal["keep", "forbid", "replace"] = "keep"
    shortlist: bool = False
    shrink: bool = setting(False, used_if=_SEARCHED)
    sampling: bool = False
    temperature: float = setting(1.0, _POSITIVE, used_if=_DRAWN)
    top_k: int = setting(0, Range(0, 10**9), used_if=_DRAWN)
    top_p: float = setting(1.0, Range(0, 1, above_low=True), used_if=_DRAWN)
    seed: int = setting(0, Range(0, 2**31 - 1), used_if=_DRAWN)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "min_length_ratio", Range(0, self.max_length_ratio))
        if not self.sampling:
            check_range(self, "n_best", Range(1, self.beam_size, of="the beam_size"))
        for name, where in self.unused().items():
            if (value := getattr(self, name)) != getattr(Decoding, name):
                why = f"which has no effect with {where}; leave it out"
                raise OptionError("Decoding", name, value, why=why)

    @property
    def hypotheses(self) -> int:
        """How many translations search has at its end; n_best of them are returned."""
        return self.n_best if self.sampling else self.beam_size

    @property
    def option_of_hypotheses(self) -> str:
        """The option that sets their number."""
        return "n_best" if self.sampling else "beam_size"

    @staticmethod
    def with_options(
        decoding: object, options: Mapping[str, Any], others: Iterable[str] = ()
    ) -> Decoding:
        """A `Decoding` with other values of some fields, for `Translator.translate`.

        Fields that are not among the options yield to them; `others` are keywords of the method
        that may be meant. Raises ValueError if it is not a `Decoding`, has no such field, or an
        option is not allowed.
        """
        if not isinstance(decoding, Decoding):
            raise Refusal(
                "Translator.translate",
                f"decoding is {decoding!r}, wanted a Decoding; its fields "
                "are also keywords, such as beam_size=3",
            )
        if not options:
            return decoding
        names = [*vars(decoding)]
        for name in options.keys() - {*names}:
            hint = did_you_mean(name, [*names, *others]) or f", wanted one of {', '.join(names)}"
            raise Refusal("Translator.translate", f"{name} is not an option of Decoding{hint}")
        Decoding.check(options)
        return _changed(decoding, **options)

    def check_without_tensorflow(self, place: str = "ONNX Runtime") -> None:
        """Raises a ValueError for an option that `bahdanau_tf.runtime` and pages do not have."""
        for name, wanted in WITHOUT_TENSORFLOW.items():
            if (value := getattr(self, name)) not in wanted:
                either = " or ".join(map(repr, wanted))
                raise OptionError("Decoding", name, value, f"{either} in {place}")

    def greedy(self) -> Decoding:
        """These options with greedy search and one translation."""
        plain = {name: getattr(Decoding, name) for name in SAMPLING}
        return replace(self, beam_size=1, n_best=1, **plain)


@lru_cache(typed=True)  # since a call for one word takes less time than these checks
def _changed(decoding: Decoding, **options: Any) -> Decoding:
    """A decoding with other values of some fields, see `Decoding.with_options`."""
    values = {**vars(decoding), **options}
    for name in Decoding(sampling=values["sampling"]).unused().keys() - options.keys():
        del values[name]
    for name, most in (("n_best", "beam_size"), ("min_length_ratio", "max_length_ratio")):
        if name not in options and most in values:
            values[name] = min(values[name], values[most])
    return Decoding(**values)
