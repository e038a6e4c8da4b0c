"""The paper's figures, and a translation step by step.

Each function returns a new matplotlib `Figure` and does not use pyplot, so it
works in threads and without a display. Characters that matplotlib's default
font lacks (Chinese, Japanese, Korean) are drawn with an installed font that has
them; on Debian and Ubuntu the package `fonts-noto-cjk` has one. Without such a
font matplotlib warns of each missing glyph and draws a box for it.
"""

from bahdanau_tf.plotting.paper import plot_alignment
from bahdanau_tf.plotting.paper import plot_bleu_by_length
from bahdanau_tf.plotting.steps import plot_trace

__all__ = ["plot_alignment", "plot_bleu_by_length", "plot_trace"]
