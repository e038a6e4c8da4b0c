"""The papers' tables and figures for any corpus: data, PNG and one page.

Systems translate a test set (`results.py`). The results become a document
(`document.py`) of tables (`tables.py`, `alignments.py`, `sutskever.py`),
figures (`figures.py`) and findings (`claim.py`), which is written as HTML, JSON
and CSV (`rendering.py`). `writing.py` calls these in order. The papers' own
numbers are in `paper.py`.
"""

from bahdanau_tf.report.results import Corpus
from bahdanau_tf.report.results import Scoring
from bahdanau_tf.report.writing import write

__all__ = ["Corpus", "Scoring", "write"]
