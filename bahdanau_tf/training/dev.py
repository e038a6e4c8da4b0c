"""How good a model is on the text that it is chosen by."""

from __future__ import annotations

from dataclasses import dataclass

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation import bleu
from bahdanau_tf.evaluation import bleu_tokenizer
from bahdanau_tf.options import Decoding
from bahdanau_tf.translation import Translation
from bahdanau_tf.translator import Translator

GREEDY = Decoding(beam_size=1)


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found.

    Attributes:
        bleu: Of greedy search.
        loss: -log p(y_i), mean over all words, end symbols included.
        translations: Of the dev set, in its order.
    """

    bleu: float
    loss: float
    translations: list[Translation]


class DevSet:
    """Parallel text to choose the best model on.

    Args:
        source: The text, one sentence a line, plain or .gz.
        target: Its translation.
        language: Code of the target language; "" if it is not known.
        tokenize: Tokenizer of sacreBLEU; the language's and script's if None.

    Attributes:
        checksum: Of both texts.
        tokenize: The tokenizer.

    Raises:
        OSError: A file cannot be read.
        ValueError: The files do not fit, or sacreBLEU has no such tokenizer.
    """

    def __init__(
        self, source: str, target: str, language: str, tokenize: str | None
    ) -> None:
        corpus = ParallelCorpus(source, target)
        self.checksum = corpus.checksum
        self._sources, self._references = (
            [line.decode() for line in side]
            for side in corpus.read(corpus.rows)
        )
        self.tokenize = tokenize or bleu_tokenizer(language, self._references)
        # Whatever is wrong with the tokenizer is said now.
        self._bleu(self._references)

    def evaluate(self, translator: Translator) -> Evaluation:
        """Translates and scores the dev set."""
        found = translator.translate(self._sources, GREEDY)
        scored = translator.score(self._sources, self._references)
        words = sum(len(one.token_log_probs) for one in scored)
        return Evaluation(
            self._bleu([one.text for one in found]),
            -sum(one.log_prob for one in scored) / words,
            found,
        )

    def _bleu(self, translations: list[str]) -> float:
        return bleu(
            translations, self._references, tokenize=self.tokenize
        ).score
