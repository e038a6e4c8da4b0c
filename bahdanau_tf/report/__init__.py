"""The paper's tables and figures, from any corpus: data, PNG and one page."""

from bahdanau_tf.report.contents import Scoring
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.writing import write

__all__ = ["Corpus", "Scoring", "write"]
