"""Evaluation on the dev set, by which the best model is chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation import bleu, bleu_tokenizer
from bahdanau_tf.options import Decoding, Recipe
from bahdanau_tf.training.run import State, TrainingFiles
from bahdanau_tf.translation import Translation
from bahdanau_tf.translator import Translator

GREEDY = Decoding(beam_size=1)
LOW = 1.0  # less BLEU is of few n-grams, found by chance: it does not count


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
    """Parallel text by which the best model is chosen.

    Args:
        source: The text, one sentence per line, plain or .gz.
        target: Its translation.
        language: Code of the target language; "" if unknown.
        tokenize: Tokenizer of sacreBLEU; chosen by language and script if None.

    Attributes:
        checksum: Checksum of both texts.
        tokenize: The tokenizer.

    Raises:
        OSError: A file cannot be read.
        ValueError: The files do not match, or sacreBLEU has no such tokenizer.
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

    @classmethod
    def of_training(
        cls, translator: Translator, files: TrainingFiles, recipe: Recipe
    ) -> DevSet | None:
        """That of a training; None without one."""
        if files.dev_source is None or files.dev_target is None:
            return None
        language = getattr(translator.target_text, "language", "")
        return cls(files.dev_source, files.dev_target, language, recipe.tokenize)

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
        return bleu(translations, self._references, tokenize=self.tokenize).score


NOISE = 1e-6  # smaller relative differences of the loss do not count


def is_best(found: Evaluation | None, state: State, monitor: str = "bleu") -> bool:
    """Updates the state by an evaluation; returns whether it is the best.

    Args:
        found: The evaluation; None without a dev set, then every model is the
            best.
        state: The state of the training, which is changed.
        monitor: As in `Recipe`: what decides.
    """
    if found is not None and not _is_better(found, state, monitor):
        state.stale.assign_add(1)
        return False
    state.stale.assign(0)
    if found is not None:
        state.best_bleu.assign(found.bleu)
        state.best_loss.assign(found.loss)
    return True


def _is_better(found: Evaluation, state: State, monitor: str) -> bool:
    bleu, loss = _counted(float(state.best_bleu)), float(state.best_loss)
    # Folders of earlier versions have no loss.
    is_lower = math.isnan(loss) or found.loss < loss * (1 - NOISE)
    if monitor == "loss" or _counted(found.bleu) == bleu:
        return is_lower
    return math.isnan(bleu) or _counted(found.bleu) > bleu


def _counted(bleu: float) -> float:
    return 0.0 if bleu < LOW else bleu
