"""Exports a translator for TensorFlow Serving, and checks the export."""

from __future__ import annotations

from bahdanau_tf.serving.doctor import Report as Report, examine as examine
from bahdanau_tf.serving.export import (
    export as export,
    publish as publish,
    workplace as workplace,
    written as written,
)
from bahdanau_tf.serving.limits import Limits as Limits
from bahdanau_tf.serving.requests import Request as Request, answers as answers
