"""A training step as a file, for a machine without TensorFlow.

`lower_step.py` writes it, `run_step.py` reads it. The weights are not in it,
only the seeds they are drawn from, so the file stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

STORED = -1  # in place of a seed


class LoweredStep(NamedTuple):
    """One update of a model's weights.

    Attributes:
        hlo: A serialized HLO module. Its inputs are the batch, then the
            variables; its outputs the loss, then new values of variables.
        batch: The batch.
        variables: Weights and the optimizer's variables at the start.
        seeds: For each variable the seed it was `drawn` from, or `STORED`.
        replaced: For each output behind the loss, whose new value it is: a
            place among the variables.
        words: Target words of the batch.
        flops: Operations of the textbook's matrix products.
        dtype: What the products are computed in.
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
        """Writes a compressed .npz; of what was drawn only the shape."""
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
        """Reads what `save` wrote."""
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
    """A weight to start with: N(0, 0.01²), float32."""
    random = np.random.default_rng(seed)
    return random.normal(0, 0.01, shape).astype(np.float32)


def _numbered(name: str, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{name}_{i}": array for i, array in enumerate(arrays)}


def _all(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """What `_numbered` numbered."""
    count = sum(key.startswith(f"{name}_") for key in arrays)
    return [arrays[f"{name}_{i}"] for i in range(count)]
