"""The paper's figures, and translations step by step, also as HTML or SVG.

Each `plot_...` returns a new matplotlib `Figure` and does not use pyplot, so it works in threads
and without a display. Characters that matplotlib's default font lacks (Chinese, Japanese,
Korean) are drawn with an installed font that has them. Where there is none, a warning says which
of them become boxes, and what to install.
"""

from bahdanau_tf.plotting.paper import (
    plot_alignment,
    plot_bleu_by_length,
    plot_vectors,
    view_architecture as view_architecture,
)
from bahdanau_tf.plotting.steps import plot_trace, view_traces as view_traces

__all__ = ["plot_alignment", "plot_bleu_by_length", "plot_trace", "plot_vectors"]
