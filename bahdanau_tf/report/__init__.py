"""The papers' tables and figures for any corpus: data, PNG and one page.

`bahdanau_tf.experiments` translates a test set with systems. The results become
a document (`document.py`) of tables (`tables.py`, `alignments.py`,
`sutskever.py`), figures (`figures.py`, `rarity.py`, `vectors.py`) and findings
(`claim.py`), which is written as HTML and JSON (`rendering.py`). `writing.py`
calls these in order.
The papers' own numbers are in `paper.py`.
"""

from bahdanau_tf.report.results import Corpus, Scoring
from bahdanau_tf.report.sutskever import Baseline
from bahdanau_tf.report.writing import check_names, write

__all__ = ["Baseline", "Corpus", "Scoring", "check_names", "write"]
