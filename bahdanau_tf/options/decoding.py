"""How to search: the options of decoding, and the search they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal

from bahdanau_tf.ranges import Range
from bahdanau_tf.ranges import check_values

if TYPE_CHECKING:  # the command line reads its flags from here
    import tensorflow as tf

    from bahdanau_tf.search import Constraint
    from bahdanau_tf.search import SearchResult
    from bahdanau_tf.search import Step

_LARGEST = 1000.0


@dataclass(frozen=True)
class Decoding:
    """How to search; the defaults suit most models.

    Lengths count tokens, end symbols included.

    Attributes:
        beam_size: K hypotheses kept alive; 1 is greedy search.
        n_best: Translations returned for each sentence, best first.
        alpha: α of the length penalty ((5 + |y|) / 6)^α; 0 ranks by
            log p(y | x) alone, as the paper does.
        beta: β of the coverage penalty, which is for models with attention;
            0 for none.
        min_length_ratio: Shortest translation for each source token.
        max_length_ratio: Longest translation for each source token; 3 as in
            the original code.
        max_length: Longest translation, whatever the source.
        no_repeated_ngrams: No n-gram of so many words comes twice; 0 for no
            such limit.
        unknown: What becomes of unknown words: "keep" writes [UNK], "forbid"
            never produces one, "replace" writes what the dictionary has for
            the source word with the largest weight, or that word itself.
        shortlist: Whether to score only the frequent words and those that the
            lexicon has for the words of the sentence: faster, and nearly the
            same translations.
    """

    beam_size: int = 5
    n_best: int = 1
    alpha: float = 1.0
    beta: float = 0.0
    min_length_ratio: float = 0.0
    max_length_ratio: float = 3.0
    max_length: int = 200
    no_repeated_ngrams: int = 0
    unknown: Literal["keep", "forbid", "replace"] = "keep"
    shortlist: bool = False

    def __post_init__(self) -> None:
        check_values(
            self,
            beam_size=Range(1, 10_000),
            n_best=Range(1, self.beam_size),
            alpha=Range(0, _LARGEST),
            beta=Range(0, _LARGEST),
            max_length_ratio=Range(0, _LARGEST, above_low=True),
            max_length=Range(1, 10**6),
            no_repeated_ngrams=Range(0, 100),
        )
        check_values(self, min_length_ratio=Range(0, self.max_length_ratio))

    def search(
        self,
        step: Step,
        state: Any,
        memory: Any,
        source: tf.Tensor,
        start_id: int,
        text: Any,
    ) -> SearchResult:
        """Searches as these options say, in graph.

        Args:
            step: The step function, see `bahdanau_tf.search`.
            state: Nest of [B, ...], the state before the first word.
            memory: Nest of [B, ...], what `step` reads beside it.
            source: int32 [B, T_x], source ids padded with 0.
            start_id: The id given to `step` at the first word.
            text: Tokenizer of the target language, for its special ids.

        Returns:
            `SearchResult` of [B, N] hypotheses.

        Raises:
            ValueError: A coverage penalty for a model without attention.
        """
        import tensorflow as tf

        from bahdanau_tf.search import beam_search
        from bahdanau_tf.search import gnmt_coverage_penalty
        from bahdanau_tf.search import gnmt_length_penalty
        from bahdanau_tf.search import greedy_search

        lengths = tf.math.count_nonzero(source, axis=1, dtype=tf.float32)
        longest = tf.cast(self.max_length_ratio * lengths, tf.int32)
        longest = tf.clip_by_value(longest, 1, self.max_length)
        options: dict[str, Any] = {
            "start_id": start_id,
            "eos_id": text.eos_id,
            "max_length": longest,
            "length_penalty": gnmt_length_penalty(self.alpha),
            "constraints": self._constraints(lengths, longest, text),
        }
        if self.beam_size == 1 and not self.beta:
            return greedy_search(step, state, memory, **options)
        if self.beta:
            options["coverage_penalty"] = gnmt_coverage_penalty(
                self.beta, source != 0
            )
        return beam_search(
            step,
            state,
            memory,
            beam_size=self.beam_size,
            n_best=self.n_best,
            **options,
        )

    def _constraints(
        self, lengths: tf.Tensor, longest: tf.Tensor, text: Any
    ) -> list[Constraint]:
        import tensorflow as tf

        from bahdanau_tf.search.constraints import forbid
        from bahdanau_tf.search.constraints import minimum_length
        from bahdanau_tf.search.constraints import no_repeated_ngrams

        # Padding is never a word; a hypothesis with it could not be told from
        # a shorter one.
        forbidden = [text.pad_id]
        if self.unknown == "forbid":
            forbidden.append(text.unk_id)
        constraints = [forbid(forbidden)]
        if self.min_length_ratio:
            shortest = tf.math.ceil(self.min_length_ratio * lengths)
            shortest = tf.minimum(tf.cast(shortest, tf.int32), longest)
            words = shortest - 1  # the end symbol is not counted there
            constraints.append(minimum_length(words, text.eos_id))
        if self.no_repeated_ngrams:
            constraints.append(no_repeated_ngrams(self.no_repeated_ngrams))
        return constraints
