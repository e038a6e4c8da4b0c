"""The result of a training."""

from __future__ import annotations

import math
from dataclasses import dataclass

# What is said of each reason for which a training ends.
ENDINGS = {
    "epochs": "epoch limit reached",
    "updates": "update limit reached",
    "minutes": "time limit reached",
    "patience": "stopped early, as no later model was better",
    "signal": "stopped by a signal",
    "callback": "stopped by a callback",
}


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        best_bleu: BLEU of the best model, by greedy search on the dev set; NaN
            without one.
        steps: Number of updates, those of earlier runs included.
        stopped_by: "epochs", "updates", "minutes", "patience", "signal" or
            "callback".
        seconds: Time of this run after its first update.
        words_per_second: Target words per second in this run, end symbols
            included, without the time of evaluations.
        tokenize: sacreBLEU's tokenizer of the dev BLEU; "" without a dev set.
        monitor: By what the best model was chosen, "bleu" or "loss".
        best_loss: Its loss of a word of the dev set; NaN without one.
    """

    best_bleu: float
    steps: int
    stopped_by: str
    seconds: float
    words_per_second: float
    tokenize: str = ""
    monitor: str = "bleu"
    best_loss: float = math.nan

    def __str__(self) -> str:
        bleu = f"dev BLEU {self.best_bleu:.2f}"
        best = f"best model: {bleu} (greedy, {self.tokenize}, NFC)"
        if self.monitor == "loss":
            best = f"best model: dev loss {self.best_loss:.3f}, {bleu}"
        if not self.tokenize:
            best = "no dev set, so the last model is kept as the best"
        elif math.isnan(self.best_bleu):
            best = "no evaluation yet"
        updates = f"{self.steps} update{'s' * (self.steps != 1)}"
        work = "no updates in this run"
        if self.words_per_second:
            work = (
                f"{self.seconds / 60:.1f} minutes, {self.words_per_second:.0f} "
                "target words a second"
            )
        return f"{updates}, {ENDINGS[self.stopped_by]}; {best}; {work}"
