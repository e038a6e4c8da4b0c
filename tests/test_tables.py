"""Tables as CSV and as text."""

import csv
import io

from bahdanau_tf.evaluation import Table
from bahdanau_tf.evaluation.tables import NOT_RUN, as_csv, as_text


def test_as_csv_quotes_and_rounds():
    table = Table("t", "T", ["a", "b"], [["x, y", 1.239], [NOT_RUN, "é\n"]])
    rows = [*csv.reader(io.StringIO(as_csv(table)))]
    assert rows == [["a", "b"], ["x, y", "1.24"], ["not run", "é\n"]]


def test_as_text_aligns_columns():
    rows = [["sentences", 1000, ""], ["a", 7.251, NOT_RUN]]
    assert as_text(Table("t", "T", ["", "BLEU", "p"], rows)) == (
        "           BLEU        p\nsentences  1000\na          7.25  not run\n"
    )
