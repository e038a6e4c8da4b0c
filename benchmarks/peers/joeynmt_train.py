"""Runs JoeyNMT's own command; its arguments follow.

JoeyNMT 2.3.0 passes an argument that the scheduler of torch no longer has.
"""

from __future__ import annotations

from typing import Any

from joeynmt import builders
from joeynmt.__main__ import main
from torch.optim.lr_scheduler import ReduceLROnPlateau


class _Plateau(ReduceLROnPlateau):
    def __init__(self, *arguments: Any, verbose: bool = False, **named: Any):
        super().__init__(*arguments, **named)


builders.ReduceLROnPlateau = _Plateau
main()
