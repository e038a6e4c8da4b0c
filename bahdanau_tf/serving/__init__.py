"""Exports a translator for TensorFlow Serving, and checks the export; writes it as a page."""

from __future__ import annotations

from bahdanau_tf.serving.doctor import Report as Report, examine as examine
from bahdanau_tf.serving.export import export as export, publish as publish, written as written
from bahdanau_tf.serving.limits import Limits as Limits
from bahdanau_tf.serving.page import write_page as write_page
from bahdanau_tf.serving.requests import Request as Request, answers as answers
from bahdanau_tf.serving.signatures import round_to_half as round_to_half
