"""Names for what Keras and TensorFlow, which have no types, hand around."""

from __future__ import annotations

from typing import Any
from typing import TypeAlias

# Tensors in tuples, records, lists and dictionaries, as `tf.nest` takes them;
# a tensor alone is one, too, and so is ().
Nest: TypeAlias = Any

# Of a tensor, as `build` gets it; None where a size is not known.
Shape: TypeAlias = tuple[int | None, ...]
