"""Exports a translator for TensorFlow Serving, and checks the export."""

from __future__ import annotations

from bahdanau_tf.serving.doctor import Report, examine
from bahdanau_tf.serving.export import export, publish, written
from bahdanau_tf.serving.limits import Limits
from bahdanau_tf.serving.requests import Request, answers
from bahdanau_tf.serving.weights import round_to_half

__all__ = [
    "Limits",
    "Report",
    "Request",
    "answers",
    "examine",
    "export",
    "publish",
    "round_to_half",
    "written",
]
