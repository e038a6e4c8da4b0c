"""Writes a report: translates, computes, draws, and makes the page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bahdanau_tf.files import write_atomically
from bahdanau_tf.report.contents import Contents
from bahdanau_tf.report.contents import Scoring
from bahdanau_tf.report.page import page
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.systems import measure


def write(
    out_dir: str | os.PathLike[str],
    model_dirs: Mapping[str, str | Path],
    test: Corpus,
    *,
    hypotheses: Mapping[str, Sequence[str]] | None = None,
    train: Corpus | None = None,
    dev: Corpus | None = None,
    counterparts: Mapping[str, str] | None = None,
    scoring: Scoring = Scoring(),
    about: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> Path:
    """Writes a report on trained models and other systems.

    Args:
        out_dir: Gets `report.html`, which needs nothing else, `report.json`
            with all its data, a PNG for each figure, a CSV for each table and
            the systems' translations.
        model_dirs: Folders of trained models, by what the report calls them.
        test: What to translate.
        hypotheses: Other systems' translations of it, by their names.
        train: Training pairs, for their likelihood.
        dev: Dev pairs, likewise.
        counterparts: For some systems the one of the paper's Table 1 that it
            stands for; a system that is called like one stands for it.
        scoring: How to search and to score.
        about: Sentences about the data, for the head of the page.
        commands: How the systems were trained, for its foot.

    Returns:
        The page.

    Raises:
        ValueError: There are no systems or no sentences, files do not fit
            together, or a folder holds no model.

    Example:

    ```python
    from bahdanau_tf import report

    report.write(
        "report",
        {"RNNsearch-50": "model", "RNNencdec-50": "baseline"},
        report.Corpus(sources, references),
    )
    ```
    """
    hypotheses = hypotheses or {}
    _check(model_dirs, hypotheses, test)
    out_dir = Path(out_dir)
    out_dir.mkdir(parents=True, exist_ok=True)
    systems, known = measure(
        model_dirs, hypotheses, test, scoring.decoding, counterparts or {}
    )
    contents = Contents(out_dir, systems, known, test, scoring)
    sections = contents.sections(train, dev)
    about = [*about, *contents.about()]
    title = "Attention-based recurrent translation: a report"
    html = page(title, about, contents.findings, sections, commands)
    for table in (table for one in sections for table in one.tables):
        path = out_dir / f"{table.name}.csv"
        write_atomically(path, table.as_csv().encode())
    for one in systems:
        text = "".join(f"{line}\n" for line in one.texts)
        name = f"{one.name.replace('/', '-')}.txt"
        write_atomically(out_dir / "translations" / name, text.encode())
    data = contents.as_json(sections) | {
        "about": about,
        "commands": [*commands],
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    write_atomically(out_dir / "report.json", text.encode())
    write_atomically(out_dir / "report.html", html.encode())
    return out_dir / "report.html"


def _check(
    model_dirs: Mapping[str, Any],
    hypotheses: Mapping[str, Sequence[str]],
    test: Corpus,
) -> None:
    if not model_dirs and not hypotheses:
        raise ValueError("report.write: no systems, wanted one or more")
    if both := {*model_dirs} & {*hypotheses}:
        raise ValueError(
            f"report.write: {sorted(both)} name models and other systems, "
            "wanted different names"
        )
    if not test.sources:
        raise ValueError("report.write: there are no sentences to translate")
    columns = {"references": test.references, **hypotheses}
    if test.alignments is not None:
        columns["alignments"] = test.alignments  # type: ignore[assignment]
    for name, lines in columns.items():
        if len(lines) != len(test.sources):
            raise ValueError(
                f"report.write: {len(test.sources)} sources and {len(lines)} "
                f"lines of {name}, wanted as many"
            )
