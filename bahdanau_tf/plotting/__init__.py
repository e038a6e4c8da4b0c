"""The paper's figures, and a translation step by step.

All return a matplotlib `Figure` of its own, never pyplot's current one, so
that they work in threads and without a display. Fonts: text that matplotlib's
own font lacks (Chinese, Japanese, Korean) is drawn with the first fitting font
that is installed; Debian and Ubuntu have one as `fonts-noto-cjk`. Where there
is none, matplotlib warns of each missing glyph and draws a box for it.
"""

from bahdanau_tf.plotting.paper import plot_alignment
from bahdanau_tf.plotting.paper import plot_bleu_by_length
from bahdanau_tf.plotting.steps import plot_trace

__all__ = ["plot_alignment", "plot_bleu_by_length", "plot_trace"]
