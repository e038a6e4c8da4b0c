"""The paper's tables and figures, from any corpus: data, PNG and one page."""

from bahdanau_tf.report.results import Corpus
from bahdanau_tf.report.results import Scoring
from bahdanau_tf.report.writing import write

__all__ = ["Corpus", "Scoring", "write"]
