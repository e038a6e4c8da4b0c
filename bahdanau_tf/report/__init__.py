"""The papers' tables and figures, from any corpus: data, PNG and one page.

Systems come in and translate (`results.py`); what they made becomes data, as
`document.py` has it: tables (`tables.py`, `alignments.py`, `sutskever.py`),
figures (`figures.py`) and sentences (`claim.py`). One renderer writes it as
HTML, JSON and CSV (`rendering.py`); `writing.py` does all of it in order. The
papers' own numbers are in `paper.py`.
"""

from bahdanau_tf.report.results import Corpus
from bahdanau_tf.report.results import Scoring
from bahdanau_tf.report.writing import write

__all__ = ["Corpus", "Scoring", "write"]
