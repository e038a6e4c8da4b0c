"""Traces of a translation: attention, gates and readout at every step."""

from bahdanau_tf.tracing.walk import Candidate, Contributions, Gate, Step, Trace, trace

__all__ = ["Candidate", "Contributions", "Gate", "Step", "Trace", "trace"]
