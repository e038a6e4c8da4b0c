"""The papers' tables and figures for any corpus: data, PNG and one page.

`suites.py` has the systems to train, and `results.py` translates a test set with them. The results
become tables, figures and findings (`bahdanau.py`, `sutskever.py`) beside the papers' own numbers
(`paper.py`), which `writing.py` writes as HTML and JSON.
"""

from bahdanau_tf.plotting.paper import check_matplotlib
from bahdanau_tf.report.bahdanau import erasure
from bahdanau_tf.report.results import Corpus, Scoring
from bahdanau_tf.report.sutskever import Baseline
from bahdanau_tf.report.writing import check_names, write

__all__ = ["Baseline", "Corpus", "Scoring", "check_matplotlib", "check_names", "erasure", "write"]
