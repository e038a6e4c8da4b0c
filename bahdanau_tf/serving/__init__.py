"""A translator as a SavedModel for TensorFlow Serving, written and checked."""

from __future__ import annotations

from bahdanau_tf.serving.doctor import Report
from bahdanau_tf.serving.doctor import examine
from bahdanau_tf.serving.export import export
from bahdanau_tf.serving.limits import Limits

__all__ = [
    "Limits",
    "Report",
    "examine",
    "export",
]
