"""Evaluation on the dev set, by which the best model is selected."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation import bleu, bleu_tokenizer
from bahdanau_tf.options import Decoding
from bahdanau_tf.training.checkpoints import State
from bahdanau_tf.translation import Translation
from bahdanau_tf.translator import Translator

GREEDY = Decoding(beam_size=1)
LOW = 1.0  # BLEU below this comes from a few n-grams by chance, and counts as 0
NOISE = 1e-6  # smaller relative differences of the loss do not count


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation.

    Attributes:
        bleu: BLEU of greedy search.
        loss: The mean of -log p(y_i) over all words, end symbols included.
        translations: The translations of the dev set, in its order.
    """

    bleu: float
    loss: float
    translations: list[Translation]


class DevSet:
    """Parallel text by which the best model is selected.

    `tokenize` is sacreBLEU's tokenizer; by default it is chosen by the target language, if its code
    is given, and by the script. If there is no such one, or the files do not match, it raises a
    ValueError.
    """

    def __init__(self, source: str, target: str, language: str, tokenize: str | None) -> None:
        corpus = ParallelCorpus(source, target)
        self.checksum = corpus.checksum
        self._sources, self._references = (
            [line.decode() for line in side] for side in corpus.read(corpus.rows)
        )
        self.tokenize = tokenize or bleu_tokenizer(language, self._references)
        # So that an error of the tokenizer is raised now.
        self._bleu(self._references)

    def evaluate(self, translator: Translator) -> Evaluation:
        """Translates and scores the dev set."""
        translations = translator.translate(self._sources, GREEDY)
        scores = translator.score(self._sources, self._references)
        words = sum(len(score.token_log_probs) for score in scores)
        return Evaluation(
            self._bleu([translation.text for translation in translations]),
            -sum(score.log_prob for score in scores) / words,
            translations,
        )

    def _bleu(self, translations: list[str]) -> float:
        return bleu(translations, self._references, tokenize=self.tokenize).score


def record_evaluation(evaluation: Evaluation | None, state: State, monitor: str = "bleu") -> bool:
    """Updates the state by an evaluation; returns whether it is the best by `monitor`.

    Without a dev set there is None, and each model is the best.
    """
    if evaluation is not None and not _is_better(evaluation, state, monitor):
        state.stale.assign_add(1)
        return False
    state.stale.assign(0)
    if evaluation is not None:
        state.best_bleu.assign(evaluation.bleu)
        state.best_loss.assign(evaluation.loss)
    return True


def _is_better(evaluation: Evaluation, state: State, monitor: str) -> bool:
    best_bleu, best_loss = float(state.best_bleu), float(state.best_loss)
    new, best = (0.0 if value < LOW else value for value in (evaluation.bleu, best_bleu))
    if monitor == "loss" or new == best:
        return math.isnan(best_loss) or evaluation.loss < best_loss * (1 - NOISE)
    return math.isnan(best) or new > best
