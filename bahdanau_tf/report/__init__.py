"""The papers' tables and figures for any corpus: data, PNG and one page.

`trainings.py` trains systems, and `results.py` translates a test set with them. The
results become a document (`paper.py`, which has the papers' own numbers, too) of tables,
figures (`bahdanau.py`, `sutskever.py`) and findings (`claim.py`), which is written as HTML
and JSON (`page.py`). `writing.py` calls these in order.
"""

from bahdanau_tf.report.results import Corpus, Scoring
from bahdanau_tf.report.sutskever import Baseline
from bahdanau_tf.report.writing import check_names, write

__all__ = ["Baseline", "Corpus", "Scoring", "check_names", "write"]
