"""The options of decoding, and the search with these options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.ranges import Range, check_range

if TYPE_CHECKING:  # the command line reads its flags from here
    import tensorflow as tf

    from bahdanau_tf.search import Constraint, SearchResult, Step
    from bahdanau_tf.system.tensors import Nest
    from bahdanau_tf.text.tokenizer import Tokenizer

_FACTOR = Range(0, 1000)
_POSITIVE = Range(0, 1000, above_low=True)
_ROUNDING = 1e-6  # of a length that is a whole number except for rounding
BATCH_SIZE = 64  # sentences translated, scored or aligned at once
WINDOW = 1000  # lines held, so that like lengths are batched together
SAMPLING = ("sampling", "temperature", "top_k", "top_p", "seed")


_DRAWN = {"sampling": [True]}
_SEARCHED = {"sampling": [False]}


@dataclass(frozen=True)
class Decoding(OptionGroup):
    """How to search; the defaults suit most models.

    Lengths count tokens, end symbols included.

    Raises:
        ValueError: A value is out of range, or would have no effect because
            of `sampling`. The message has the name and the value.
    """

    beam_size: int = option(
        "K, the number of hypotheses kept; 1 is greedy search.",
        5,
        Range(1, 10_000),
        used_if=_SEARCHED,
    )
    n_best: int = option(
        "Number of translations returned for each sentence, best first; with sampling the "
        "number of draws.",
        1,
        Range(1, 10_000),
    )
    alpha: float = option(
        "α of the length penalty ((5 + |y|) / 6)^α; with 0 translations are ranked by "
        "log p(y | x) alone, as in the paper.",
        1.0,
        _FACTOR,
    )
    beta: float = option(
        "β of the coverage penalty, for models with attention; 0 for none.", 0.0, _FACTOR
    )
    min_length_ratio: float = option("Shortest translation, in tokens per source token.", 0.0)
    max_length_ratio: float = option(
        "Longest translation, in tokens per source token; 3 as in the original code.",
        3.0,
        _POSITIVE,
    )
    max_length: int = option("Longest translation in tokens, for any source.", 200, Range(1, 10**6))
    no_repeated_ngrams: int = option(
        "No n-gram of this length occurs twice; 0 for no such limit.", 0, Range(0, 100)
    )
    unknown: Literal["keep", "forbid", "replace"] = option(
        'Treatment of unknown words: "keep" writes [UNK], "forbid" never produces one, '
        '"replace" writes the dictionary\'s translation of the source word with the largest '
        "weight, or that word itself.",
        "keep",
    )
    shortlist: bool = option(
        "Whether to score only the frequent words and those that the lexicon has for the "
        "words of the sentence: faster, and nearly the same translations.",
        False,
    )
    shrink: bool = option(
        "Whether the beam gets narrower by one with each finished hypothesis, as in the "
        "original code; search then stops earlier.",
        False,
        used_if=_SEARCHED,
    )
    sampling: bool = option(
        "Whether translations are drawn word by word, without beam search. The draws depend "
        "only on the sentence, the seed and n_best; alpha and beta only score and rank them.",
        False,
    )
    temperature: float = option(
        "Words are drawn from softmax(logits / temperature).", 1.0, _POSITIVE, used_if=_DRAWN
    )
    top_k: int = option(
        "Words are drawn from the k most probable ones; 0 for all.",
        0,
        Range(0, 10**9),
        used_if=_DRAWN,
    )
    top_p: float = option(
        "Words are then drawn from the smallest set whose total probability is at least p.",
        1.0,
        Range(0, 1, above_low=True),
        used_if=_DRAWN,
    )
    seed: int = option("Seed of the draws.", 0, Range(0, 2**31 - 1), used_if=_DRAWN)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "min_length_ratio", Range(0, self.max_length_ratio))
        if not self.sampling:
            check_range(self, "n_best", Range(1, self.beam_size, of="the beam_size"))
        for name in self.unused():
            if (value := getattr(self, name)) != getattr(Decoding, name):
                raise ValueError(
                    f"Decoding: {name} is {value!r}, which has no effect when sampling is "
                    f"{self.sampling}; leave it out"
                )

    def greedy(self) -> Decoding:
        """These options with greedy search and one translation."""
        plain = {name: getattr(Decoding, name) for name in SAMPLING}
        return replace(self, beam_size=1, n_best=1, **plain)

    def search(
        self,
        step: Step,
        state: Nest,
        memory: Nest,
        source: tf.Tensor,
        start_id: int,
        text: Tokenizer,
        prefix: tf.Tensor | None = None,
        constraints: Sequence[Constraint] = (),
        n_best: int | tf.Tensor | None = None,
    ) -> SearchResult:
        """Searches with these options, in graph.

        Args:
            step: The step function, see `bahdanau_tf.search`.
            state: Nest of [B, ...], the state before the first word.
            memory: Nest of [B, ...], read by `step`.
            source: int32 [B, T_x], source ids padded with 0.
            start_id: The id given to `step` at the first word.
            text: Tokenizer of the target language, for its special ids.
            prefix: int32 [B, P], padded with 0, the words with which each
                translation begins, even if a constraint forbids them. It may
                exceed `max_length_ratio`, but not `max_length`.
            constraints: Further constraints.
            n_best: N in place of that of the options: an int, or without
                sampling int32 scalar, from 1 to `beam_size`.

        Returns:
            `SearchResult` of [B, N] hypotheses.

        Raises:
            ValueError: `beta` is not 0 and the model has no attention.
        """
        import tensorflow as tf

        from bahdanau_tf.search import (
            beam_search,
            gnmt_coverage_penalty,
            gnmt_length_penalty,
            no_coverage_penalty,
            sample,
        )
        from bahdanau_tf.search.beam import sentence_seeds
        from bahdanau_tf.search.constraints import forced_prefix

        lengths = tf.math.count_nonzero(source, axis=1, dtype=tf.float64)
        longest = self.max_length_ratio * lengths + _ROUNDING
        longest = tf.cast(longest, tf.int32)
        if prefix is not None:
            given = tf.math.count_nonzero(prefix, axis=1, dtype=tf.int32)
            longest = tf.maximum(longest, given + 1)
        longest = tf.clip_by_value(longest, 1, self.max_length)
        every = [*self._constraints(lengths, longest, text), *constraints]
        if prefix is not None:
            every = [forced_prefix(prefix, every)]
        coverage_penalty = (
            gnmt_coverage_penalty(self.beta, source != 0) if self.beta else no_coverage_penalty
        )
        if n_best is None:
            n_best = self.n_best
        if self.sampling:
            search = partial(
                sample,
                seed=sentence_seeds(source, self.seed),
                temperature=self.temperature,
                top_k=self.top_k or None,
                top_p=self.top_p,
                n_samples=n_best,
            )
        else:
            search = partial(
                beam_search, beam_size=self.beam_size, n_best=n_best, shrink=self.shrink
            )
        return search(
            step,
            state,
            memory,
            start_id=start_id,
            eos_id=text.eos_id,
            max_length=longest,
            length_penalty=gnmt_length_penalty(self.alpha),
            coverage_penalty=coverage_penalty,
            constraints=every,
        )

    def _constraints(
        self, lengths: tf.Tensor, longest: tf.Tensor, text: Tokenizer
    ) -> list[Constraint]:
        import tensorflow as tf

        from bahdanau_tf.search.constraints import forbid, minimum_length, no_repeated_ngrams

        # Padding is never a word: a hypothesis with it could not be
        # distinguished from a shorter one.
        forbidden = [text.pad_id]
        if self.unknown == "forbid":
            forbidden.append(text.unk_id)
        constraints = [forbid(forbidden)]
        if self.min_length_ratio:
            shortest = self.min_length_ratio * lengths - _ROUNDING
            shortest = tf.math.ceil(shortest)
            shortest = tf.minimum(tf.cast(shortest, tf.int32), longest)
            words = shortest - 1  # minimum_length does not count the end symbol
            constraints.append(minimum_length(words, text.eos_id))
        if self.no_repeated_ngrams:
            constraints.append(no_repeated_ngrams(self.no_repeated_ngrams))
        return constraints
