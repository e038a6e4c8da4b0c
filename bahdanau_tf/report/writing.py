"""Writes a report: from systems over results and tables to a page and other files."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from itertools import starmap
from pathlib import Path

from bahdanau_tf import __version__
from bahdanau_tf.evaluation import Table
from bahdanau_tf.evaluation.scores import ScoreOptions, bleu_metric, check_counts
from bahdanau_tf.evaluation.tables import NOT_RUN, Cell, as_csv, cell_text
from bahdanau_tf.plotting.paper import check_matplotlib
from bahdanau_tf.report import bahdanau, paper, sutskever
from bahdanau_tf.report.paper import Document, Section
from bahdanau_tf.report.results import Corpus, Results, Scoring, measure
from bahdanau_tf.system.device import describe_device
from bahdanau_tf.system.files import write_atomically

FITTING = ", which fits the script of the references"
_PACKAGES = ("tensorflow", "keras", "sacrebleu", "numpy")
_ANSWERS = {True: "Yes.", False: "No.", None: "Not run."}
_PAPERS = (
    f"Figures in italics, in columns headed “{paper.MARK}own”, are the papers’ "
    "own, measured on other data (WMT14 English-French) with far larger "
    "models; they are given for reference, not for comparison."
)


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
    baseline: sutskever.Baseline | None = None,
    phrases: Sequence[sutskever.Phrases] = (),
    about: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> Path:
    """Writes a report on trained models and other systems.

    Args:
        out_dir: Gets `report.html`, a self-contained page, `report.json` with all its data, a PNG
            for each figure, a CSV for each table, and the systems' translations.
        model_dirs: Folders of trained models, by their names in the report.
        test: The sentences to translate.
        hypotheses: Other systems' translations of them, by the systems' names.
        train: Training pairs, to compute their likelihood and to count sub-words.
        dev: Dev pairs, for the same.
        counterparts: For some systems the corresponding one of the paper's Table 1; a system with
            the name of one always corresponds to it.
        scoring: How to search and to score.
        baseline: Another system's n-best lists of the test set, which LSTMs rescore; those of an
            RNNencdec if None.
        phrases: For each picture of sentence vectors, groups of sentences.
        about: Sentences about the data, for the top of the page.
        commands: The training commands, for the end of the page.

    Returns:
        The path of the page.

    Raises:
        ValueError: There are no systems or no sentences, numbers of sentences differ, two systems'
            names give the same file name, a folder contains no model, the paper has no such
            counterpart, or `scoring` names an unknown tokenizer or too few samples.
        ImportError: matplotlib is not installed.

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
    counterparts = counterparts or {}
    check_matplotlib("report.write")
    _check(model_dirs, hypotheses, test, baseline, scoring, counterparts)
    for name, pairs in (("train", train), ("dev", dev)):
        if pairs is not None:
            check_counts(f"report.write: {name}", _columns(pairs))
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    results = measure(model_dirs, hypotheses, test, scoring, counterparts)
    aligned, long = bahdanau.choose(results.lengths, results.is_known)
    lstms = sutskever.lstm_members(results)
    sections = [  # in the papers' order; writes the pictures
        Section(tables=[bahdanau.translation_quality(results), bahdanau.significance(results)]),
        bahdanau.figure_2(results, folder),
        bahdanau.figure_3(results, aligned, folder),
        Section(
            tables=[
                bahdanau.alignment_table(results),
                bahdanau.erasure_table(results),
                bahdanau.training_table(results, train, dev),
                bahdanau.long_sentences(results, long),
                sutskever.ensemble_table(results, lstms),
                sutskever.rescoring_table(results, lstms, baseline),
            ]
        ),
        sutskever.length_figure(results, folder),
        sutskever.rarity_figure(results, train, folder),
        sutskever.vectors_figure(results, phrases, folder),
    ]
    document = Document(
        "Attention-based recurrent translation: a report",
        [*about, *_about(results, FITTING * (scoring.tokenize is None))],
        bahdanau.findings(results),
        sections,
        [*commands],
    )
    texts = {_file(x.name): "".join(f"{line}\n" for line in x.texts) for x in results.systems}
    texts |= {f"{table.name}.csv": as_csv(table) for table in document.tables}
    texts |= {"report.json": as_json(document), "report.html": as_html(document)}
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
    return folder / "report.html"


def _file(name: str) -> str:
    """The file of a system's translations."""
    return f"translations/{name.replace('/', '-')}.txt"


def check_names(owner: str, names: Iterable[str]) -> None:
    """Raises a ValueError, about `owner`, if two systems' translations would be one file."""
    owners: dict[str, str] = {}
    for name in names:
        other = owners.setdefault(_file(name), name)
        if other != name:
            raise ValueError(
                f"{owner}: the systems {other} and {name} would both be "
                f"{_file(name)}, wanted other names"
            )


def _check(
    model_dirs: Mapping[str, str | Path],
    hypotheses: Mapping[str, Sequence[str]],
    test: Corpus,
    baseline: sutskever.Baseline | None,
    scoring: Scoring,
    counterparts: Mapping[str, str],
) -> None:
    """Checks before any translation what would fail after all of them."""
    if not model_dirs and not hypotheses:
        raise ValueError("report.write: no systems, wanted one or more")
    if both := {*model_dirs} & {*hypotheses}:
        raise ValueError(
            f"report.write: {sorted(both)} name models and other systems, wanted different names"
        )
    check_names("report.write", [*model_dirs, *hypotheses])
    if not test.sources:
        raise ValueError("report.write: there are no sentences to translate")
    columns = _columns(test)
    if baseline is not None:
        columns["baseline"] = baseline.lists
    check_counts("report.write", {**columns, **hypotheses})
    for name, counterpart in counterparts.items():
        if counterpart and counterpart not in paper.BLEU:
            raise ValueError(
                f"report.write: the counterpart of {name} is {counterpart!r}, "
                f"wanted one of {', '.join(paper.BLEU)}"
            )
    if scoring.tokenize is not None:
        bleu_metric(ScoreOptions(scoring.tokenize, scoring.lowercase))
    if scoring.n_bootstrap < 1:
        raise ValueError(f"report.write: n_bootstrap is {scoring.n_bootstrap}, wanted 1 or more")


def _columns(corpus: Corpus) -> dict[str, Sequence[object]]:
    return {name: column for name, column in corpus._asdict().items() if column is not None}


def _about(results: Results, why: str) -> list[str]:
    """Sentences on the test set, the search, BLEU and the machine."""
    lengths, scoring = results.lengths, results.scoring
    options = vars(scoring.decoding).items()
    search = ", ".join(f"{name} {value}" for name, value in options if name != "n_best")
    packages = "".join(f", {name} {version(name)}" for name in _PACKAGES)
    return [
        f"Test set: {len(lengths)} sentences of {min(lengths)} to {max(lengths)} {results.unit}. "
        "This page counts the words of a sentence in this unit.",
        f"Search: {search}.",
        f"BLEU is of the words of sacreBLEU's tokenizer {scoring.tokenize}{why}.",
        f"Translated on {describe_device()}, with bahdanau_tf {__version__}{packages}.",
    ]


def as_json(document: Document) -> str:
    """All data of a document, without title and headings."""
    tables = [table._asdict() for table in document.tables]
    findings = [finding._asdict() for finding in document.findings]
    data: dict[str, object] = {"findings": findings, "tables": {x.pop("name"): x for x in tables}}
    for section in document.sections:
        data |= section.data
    data |= {"about": document.about, "commands": document.commands}
    return json.dumps(data, indent=1, ensure_ascii=False)


def as_html(document: Document) -> str:
    """One self-contained page, with embedded pictures and without scripts."""
    title = escape(document.title)
    style = files("bahdanau_tf.report").joinpath("page.css").read_text("utf-8")
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{title}</title>",
        f"<style>\n{style}</style></head><body>",
        f"<h1>{title}</h1>",
        *(_element("p", text) for text in document.about),
        f'<p class="paper">{_PAPERS}</p>',
        "<h2>Does RNNsearch stay flat where RNNencdec falls?</h2>",
        _element("p", bahdanau.RULE),
        *(
            f'<p class="finding"><strong>{_ANSWERS[is_shown]}</strong> {escape(text)}</p>'
            for is_shown, text in document.findings
        ),
        *map(_section, document.sections),
    ]
    if document.commands:
        parts.append("<h2>How the systems were trained</h2><pre>")
        parts += [f"{escape(command)}\n" for command in document.commands]
        parts.append("</pre>")
    return "\n".join([*parts, "</body></html>", ""])


def _element(name: str, text: str, classes: Sequence[str] = (), attributes: str = "") -> str:
    kind = f' class="{" ".join(classes)}"' if classes else ""
    return f"<{name}{attributes}{kind}>{escape(text)}</{name}>"


def _section(section: Section) -> str:
    parts = [_element("h2", section.title)] if section.title else []
    parts += [_element("p", text) for text in section.paragraphs]
    if section.pictures:
        parts.append('<div class="figures">')
        for path, title in section.pictures:
            data = base64.b64encode(path.read_bytes()).decode()
            parts.append(
                f'<figure><img src="data:image/png;base64,{data}" alt="{escape(title)}">'
                f"<figcaption>{escape(title)}</figcaption></figure>"
            )
        parts.append("</div>")
    return "\n".join([*parts, *map(_table, section.tables)])


def _table(table: Table) -> str:
    kinds = [
        ["number"] * any(_is_number(row[place]) for row in table.rows)
        + ["paper"] * column.startswith(paper.MARK)
        for place, column in enumerate(table.columns)
    ]
    rows = (zip(row, kinds, strict=True) for row in table.rows)
    body = "\n".join(f"<tr>{''.join(starmap(_cell, r))}</tr>" for r in rows)
    notes = "".join(_element("p", note, ["note"]) for note in table.notes)
    return (
        f"{_element('h2', table.title)}"
        f'<div class="scroll"><table><thead>{_heads(table.columns, kinds)}'
        f"</thead><tbody>{body}</tbody></table></div>{notes}"
    )


def _heads(columns: Sequence[str], kinds: Sequence[Sequence[str]]) -> str:
    """The row of heads, with a common head above the papers' columns, the last ones."""
    count = sum("paper" in kind for kind in kinds)
    above = ""
    if count:
        title, span = f"{paper.MARK}own", f' scope="colgroup" colspan="{count}"'
        above = (
            f'<tr><td colspan="{len(columns) - count}"></td>'
            f"{_element('th', title, ['paper'], span)}</tr>"
        )
    heads = (
        _element("th", column.removeprefix(paper.MARK), kind, ' scope="col"')
        for column, kind in zip(columns, kinds, strict=True)
    )
    return f"{above}<tr>{''.join(heads)}</tr>"


def _cell(cell: Cell, kind: Sequence[str]) -> str:
    text = f"{cell:,}" if isinstance(cell, int) else cell_text(cell)
    missing = ["missing"] * (cell is NOT_RUN)
    long = ["long"] * (len(cell_text(cell)) > 40)
    return _element("td", text, [*kind, *missing, *long])


def _is_number(cell: Cell) -> bool:
    """Whether a cell is a number, with or without its interval."""
    has_interval = re.fullmatch(r"-?[\d.,]+ ± [\d.,]+", cell_text(cell)) is not None
    return isinstance(cell, int | float) or has_interval
