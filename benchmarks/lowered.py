"""A training step as a file, for a machine without TensorFlow.

`lower_step.py` writes the file and `run_step.py` reads it. It contains the seeds from which the
weights are drawn instead of the weights, so it is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

STORED = -1  # In place of a seed: the file contains the variable's value.


class LoweredStep(NamedTuple):
    """One update of a model's weights.

    Attributes:
        hlo: A serialized HLO module. Its inputs are the batch, then the variables; its outputs are
            the loss, then new values of variables.
        batch: The batch.
        variables: Initial values of weights and of the optimizer's variables.
        seeds: For each variable the seed for `drawn`, or `STORED`.
        replaced: For each output after the loss the index of the variable whose new value it is.
        words: Target words of the batch.
        flops: Operations of the matrix products (`training.step_flops`).
        dtype: The dtype of the products.
    """

    hlo: bytes
    batch: list[np.ndarray]
    variables: list[np.ndarray]
    seeds: list[int]
    replaced: list[int]
    words: int
    flops: float
    dtype: str

    def save(self, path: str | Path) -> None:
        """Writes a compressed .npz: of drawn variables only the shapes."""
        variables = [
            value if seed == STORED else np.array(value.shape)
            for value, seed in zip(self.variables, self.seeds, strict=True)
        ]
        arrays = self._asdict()
        del arrays["batch"], arrays["variables"]
        arrays["hlo"] = np.frombuffer(self.hlo, np.uint8)
        arrays |= _numbered("batch", self.batch)
        arrays |= _numbered("variable", variables)
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> LoweredStep:
        """Reads a file that `save` wrote."""
        with np.load(path) as file:
            arrays = dict(file)
        seeds = arrays["seeds"].tolist()
        variables = [
            value if seed == STORED else drawn(seed, value.tolist())
            for value, seed in zip(_all(arrays, "variable"), seeds, strict=True)
        ]
        return cls(
            arrays["hlo"].tobytes(),
            _all(arrays, "batch"),
            variables,
            seeds,
            arrays["replaced"].tolist(),
            arrays["words"].item(),
            arrays["flops"].item(),
            arrays["dtype"].item(),
        )


def drawn(seed: int, shape: Sequence[int]) -> np.ndarray:
    """An initial weight, drawn from N(0, 0.01²), float32."""
    random = np.random.default_rng(seed)
    return random.normal(0, 0.01, shape).astype(np.float32)


def _numbered(name: str, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{name}_{i}": array for i, array in enumerate(arrays)}


def _all(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """The arrays that `_numbered` named, in order."""
    count = sum(key.startswith(f"{name}_") for key in arrays)
    return [arrays[f"{name}_{i}"] for i in range(count)]
