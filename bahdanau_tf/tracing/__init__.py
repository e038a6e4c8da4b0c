"""Traces of a translation: attention, gates and readout at every step."""

from bahdanau_tf.tracing.walk import Candidate
from bahdanau_tf.tracing.walk import Contributions
from bahdanau_tf.tracing.walk import Gate
from bahdanau_tf.tracing.walk import Step
from bahdanau_tf.tracing.walk import Trace
from bahdanau_tf.tracing.walk import trace

__all__ = ["Candidate", "Contributions", "Gate", "Step", "Trace", "trace"]
