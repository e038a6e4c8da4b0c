"""`bahdanau-tf evaluate`: one or several systems, compared with sacreBLEU."""

import random
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from comparisons import write_lines
from refusals import fails, says

from bahdanau_tf.commands import evaluate, files
from bahdanau_tf.commands.main import main
from bahdanau_tf.evaluation import scores
from bahdanau_tf.text import SubwordTokenizer, Vocabulary, WordTokenizer
from bahdanau_tf.translation import Scored, Translation
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.protocol import source_lengths
from bahdanau_tf.translation.result import Doubt

TAB = "\t"
WORDS = [*"abcdefghij", "cat", "sat", "mat", "house"]


class Text:
    """A tokenizer: each word is two ids; a word with a q is unknown."""

    unk_id = 1
    are_words = False
    kind = "bpe"

    def ids(self, lines: list[str]) -> list[list[int]]:
        return [[1 if "q" in word else 2 for word in line.split() * 2] + [3] for line in lines]


LONG = (Doubt("long"),)


class Copier:
    """A translator that returns its input."""

    source_texts = (Text(), Text())
    target_text = Text()
    habits = Habits(30)

    def score(self, sources: list[str], targets: list[str]) -> list[Scored]:
        """Each word has the probability 1/2, the end 1."""
        counts = [len(line.split()) for line in targets]
        return [Scored(0.0, [], np.log([*[0.5] * count, 1])) for count in counts]

    def translate(self, lines: list[str], mbr: str | None = None) -> list[Translation]:
        longest = self.habits.longest or 99
        return [
            Translation(x, x, source_tokens=x.split(), doubts=LONG * (len(x.split()) > longest))
            for x in lines
        ]


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> dict[str, list[str]]:
    """Files of 60 sentences of 4 to 80 words; `google` has the most errors."""
    monkeypatch.setattr(files, "load_translator", lambda _: Copier())
    drawn = random.Random(1409)
    reference = [" ".join(drawn.choices(WORDS, k=drawn.randint(4, 80))) for _ in range(60)]
    reference[5] += " qu"

    def noisy(share: float) -> list[str]:
        rows = (line.split() for line in reference)
        return [
            " ".join(word if drawn.random() > share else drawn.choice(WORDS) for word in row)
            for row in rows
        ]

    texts = {"reference": reference}
    texts |= {"source": noisy(0.1), "moses": noisy(0.2), "google": noisy(0.6)}
    texts["source"][7] += " qu"
    for name, rows in texts.items():
        write_lines(tmp_path / name, rows)
    return texts


def run(tmp_path: Path, capsys, *flags: str) -> list[str]:
    assert main(["evaluate", f"--reference={tmp_path / 'reference'}", *flags]) == 0
    return capsys.readouterr().out.split("\n")[:-1]


def test_sentences_longer_than_those_of_the_training_are_counted(
    corpus, tmp_path, capsys, monkeypatch
):
    flags = [f"--{name}={tmp_path / name}" for name in ("model_dir", "source", "reference")]
    assert main(["evaluate", *flags]) == 0
    long = sum(len(line.split()) > 30 for line in corpus["source"])
    said = f"{long} of 60 lines: longer than in training (30 tokens)"
    assert f"{said}, may lose words\n" in capsys.readouterr().err
    monkeypatch.setattr(Copier, "habits", Habits(30, is_short=True))
    assert main(["evaluate", *flags]) == 0
    assert f"{said}\n" in capsys.readouterr().err


@pytest.mark.parametrize("languages", [("en", "fr"), ("fr", "en"), ("", "fr"), ()])
def test_swapped_sides_are_said(languages, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(files, "load_translator", lambda _: Copier())
    monkeypatch.setattr(Copier, "habits", Habits(languages=languages))
    for name in ("source", "reference"):
        (tmp_path / name).write_text("Le chat est dans la maison.\n" * 50, "utf-8")
    flags = [f"--{name}={tmp_path / name}" for name in ("source", "reference")]
    assert main(["evaluate", f"--model_dir={tmp_path}", *flags]) == 0
    told = "the source's language is fr, and the model translates from en to fr"
    assert (told in capsys.readouterr().err) == (languages == ("en", "fr"))


def table(rows: list[str]) -> dict[str, dict[str, str]]:
    """Cells by system and title; "57.41 ± 1.20" is read as "57.41"."""
    start = next(n for n, row in enumerate(rows) if "sentences" in row)
    titles = rows[start - 1].replace("no unknown", "no_unknown").split()
    cells_of = {}
    for row in rows[start:]:
        words = row.split()
        cells = [word for n, word in enumerate(words[1:], 1) if word != "±" and words[n - 1] != "±"]
        if len(cells) < len(titles) and "p" in titles:
            cells.insert(1, "")  # the first system has no p
        cells_of[words[0]] = dict(zip(titles, cells, strict=True))
    return cells_of


def judged(hypotheses: list[str], references: list[str], keep=None) -> str:
    keep = range(len(references)) if keep is None else keep
    ours, theirs = ([lines[n] for n in keep] for lines in (hypotheses, references))
    return f"{sacrebleu.corpus_bleu(ours, [theirs]).score:.2f}"


def test_one_external_system_gets_bleu_and_chrf(corpus, tmp_path, capsys):
    rows = run(tmp_path, capsys, f"--hypotheses={tmp_path / 'moses'}")
    assert len(rows) == 2
    wanted = judged(corpus["moses"], corpus["reference"])
    assert rows[0].startswith("BLEU|nrefs:1|")
    version = f"|version:{sacrebleu.__version__}|norm:NFC"
    assert f"{version} = {wanted} " in rows[0]
    assert rows[1].startswith("chrF2|nrefs:1|")


def test_several_systems_get_a_table(corpus, tmp_path, capsys):
    flags = [f"--hypotheses=Moses={tmp_path / 'moses'}", f"--hypotheses={tmp_path / 'google'}"]
    rows = run(tmp_path, capsys, "--model_dir=m", f"--source={tmp_path / 'source'}", *flags)
    (signature,) = (row for row in rows if row.startswith("BLEU|"))
    says(signature, "|tok:13a| |bs:1000|")
    assert "against model" in "\n".join(rows)
    cells = table(rows)
    assert [*cells] == ["sentences", "model", "Moses", "google"]
    references = corpus["reference"]
    texts = [corpus["source"], corpus["moses"], corpus["google"]]
    for name, hypotheses in zip([*cells][1:], texts, strict=True):
        row = cells[name]
        assert row["BLEU"] == judged(hypotheses, references)
        chrf = sacrebleu.corpus_chrf(hypotheses, [references]).score
        assert row["chrF2"] == f"{chrf:.2f}"
        known_lines = [n for n in range(60) if n not in (5, 7)]
        assert row["no_unknown"] == judged(hypotheses, references, known_lines)
        # The model has two tokens per word.
        long = [n for n, line in enumerate(corpus["source"]) if 2 * len(line.split()) > 60]
        assert row[">60"] == judged(hypotheses, references, long)
        assert cells["sentences"][">60"] == str(len(long))
    assert (cells["sentences"]["BLEU"], cells["sentences"]["no_unknown"]) == ("60", "58")
    assert cells["model"]["p"] == ""
    assert float(cells["google"]["p"]) < 0.05


@pytest.fixture
def short(corpus, tmp_path) -> dict[str, list[str]]:
    """Files of the short sentences and a long one, since TER of long ones takes seconds."""
    lengths = [len(line.split()) for line in corpus["source"]]
    long = lengths.index(min(length for length in lengths if length > 60))
    chosen = [n for n, length in enumerate(lengths) if length < 25 or n == long]
    texts = {name: [lines[n] for n in chosen] for name, lines in corpus.items()}
    for name, lines in texts.items():
        write_lines(tmp_path / name, lines)
    return texts


def test_one_system_gets_the_metrics_that_are_given(short, tmp_path, capsys):
    flags = [f"--hypotheses={tmp_path / 'moses'}", "--metrics=ter,chrf++,bleu", "--ignore_case"]
    rows = run(tmp_path, capsys, *flags)
    ours, theirs = short["moses"], [short["reference"]]
    metrics = (sacrebleu.TER(), sacrebleu.CHRF(word_order=2, lowercase=True), sacrebleu.BLEU())
    for row, metric in zip(rows, metrics, strict=True):
        score = metric.corpus_score(ours, theirs)
        assert row.startswith(f"{score.name}|nrefs:1|case:lc|")
        assert f" = {score.score:.2f}" in row


def test_perplexity_is_that_of_the_references_and_alone_translates_nothing(
    corpus, tmp_path, capsys, monkeypatch
):
    words = [len(line.split()) for line in corpus["reference"]]
    tokens = sum(words) + 60
    said = f"perplexity = {2 ** (sum(words) / tokens):.2f} of {tokens:,} tokens, "
    flags = [f"--source={tmp_path / 'source'}", "--model_dir=model"]
    first, *others = run(tmp_path, capsys, *flags, "--metrics=bleu,perplexity")
    assert first.startswith(said)
    assert others[0].startswith("BLEU")
    monkeypatch.delattr(Copier, "translate")
    (only,) = run(tmp_path, capsys, *flags, "--metrics=perplexity")
    assert only == first
    for name in ("source", "reference"):
        (tmp_path / name).write_text("")
    flags += [f"--reference={tmp_path / 'reference'}", "--metrics=perplexity"]
    fails(capsys, ["evaluate", *flags], "evaluate: there are no sentences to score\n")


def test_the_first_metric_is_compared_and_divided_by_length(short, tmp_path, capsys):
    flags = [f"--hypotheses={tmp_path / name}" for name in ("moses", "google")]
    flags += [f"--source={tmp_path / 'source'}", "--metrics=ter,bleu"]
    rows = run(tmp_path, capsys, *flags)
    metric = sacrebleu.TER(case_sensitive=True)
    cells = table(rows)
    for name in ("moses", "google"):
        ours, theirs = short[name], short["reference"]
        assert cells[name]["TER"] == f"{metric.corpus_score(ours, [theirs]).score:.2f}"
        assert cells[name]["BLEU"] == judged(ours, theirs)
        keep = [n for n, line in enumerate(short["source"]) if len(line.split()) > 60]
        ours, theirs = ([lines[n] for n in keep] for lines in (ours, theirs))
        assert cells[name][">60"] == f"{metric.corpus_score(ours, [theirs]).score:.2f}"
    assert float(cells["google"]["p"]) < 0.05
    assert "p of the TER: paired bootstrap against moses" in rows
    assert any(row.startswith("TER by source length in words") for row in rows)


def test_without_a_model_lengths_are_counted_in_words(corpus, tmp_path, capsys):
    flags = [f"--source={tmp_path / 'source'}", f"--hypotheses={tmp_path / 'moses'}"]
    cells = table(run(tmp_path, capsys, *flags))
    wanted = defaultdict(list)
    for n, line in enumerate(corpus["source"]):
        low = (len(line.split()) - 1) // 10 * 10
        wanted[">60" if low >= 60 else f"{low + 1}-{low + 10}"].append(n)
    assert {title: str(len(x)) for title, x in wanted.items()} == cells["sentences"]
    for title, keep in wanted.items():
        assert cells["moses"][title] == judged(corpus["moses"], corpus["reference"], keep)


def test_copied_numbers_and_names_are_counted(tmp_path, capsys):
    """Of those that the reference has from the source; a first word may be no name."""
    columns = {
        "source": ["Tom saw 347 birds at 9:45.", "The 12 of May, Ann!", "The cat, Ann."],
        "reference": ["Tom a vu 347 oiseaux.", "Le 12 mai, Ann !", "The chat d'Anne."],
        "good": ["Tom a vu 347 oiseaux.", "Le 12 mai, Anne !", ""],
        "bad": ["Il a vu 3475 oiseaux et 347.", "Le 1 mai.", "The Ann Tom 12"],
    }
    for name, lines in columns.items():
        write_lines(tmp_path / name, lines)
    source = f"--source={tmp_path / 'source'}"
    good, bad = (f"--hypotheses={tmp_path / name}" for name in ("good", "bad"))
    said = "copied of what the reference has from the source:"
    of_one = f"{said} numbers 100.0 % of 2, names 0.0 % of 1"
    assert of_one in run(tmp_path, capsys, source, good)
    rows = run(tmp_path, capsys, source, good, bad)
    assert f"% {said} 2 numbers, 1 names" in rows
    cells = table(rows)
    assert [row["numbers"] for row in cells.values()] == ["2", "100.00", "50.00"]
    assert [row["names"] for row in cells.values()] == ["1", "0.00", "0.00"]
    assert not any("copied" in row for row in run(tmp_path, capsys, good))
    fails(capsys, ["evaluate", source, good], "--reference is missing")


def test_a_table_has_the_references(corpus, tmp_path, capsys):
    source, both = tmp_path / "source", tmp_path / "both.tsv"
    pairs = zip(corpus["source"], corpus["reference"], strict=True)
    both.write_text("".join(f"{x}\t{y}\n" for x, y in pairs))
    other = f"--hypotheses={tmp_path / 'moses'}"
    assert main(["evaluate", f"--source={both}", other]) == 0
    said = capsys.readouterr().out.split("\n")[:-1]
    assert said == run(tmp_path, capsys, f"--source={source}", other)
    for path in (both, tmp_path / "moses"):  # as `translate` writes a blank row
        first, rest = path.read_text().split("\n", 1)
        path.write_text(f"{first}\n\n{rest}")
    assert main(["evaluate", f"--source={both}", other]) == 0
    assert capsys.readouterr().out.split("\n")[:-1] == said
    both.write_text("no column\n" * 60)
    fails(capsys, ["evaluate", f"--source={both}", other], "--source: ", "line 1 has no tab")


def test_equal_lines_are_translated_once_and_all_are_written(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(evaluate, "WINDOW", 2)
    copier, searched = Copier(), []
    copier.translate = lambda lines, **_: searched.extend(lines) or Copier.translate(copier, lines)
    monkeypatch.setattr(files, "load_translator", lambda _: copier)
    words = ["a", "b", "a", "c", "b", "d", "a", "e"]
    source, output = tmp_path / "words.tsv", tmp_path / "output"
    source.write_text("".join(f"{word}\t{word}\n" for word in words))
    flags = ["evaluate", "--model_dir=m", f"--source={source}", f"--output={output}"]
    assert main(flags) == 0
    assert searched == [*"abcde"]
    assert output.read_text().split() == words
    assert capsys.readouterr().out.startswith("BLEU|")
    copier.habits = Habits.joined([Habits(is_short=True)] * 2)  # those of an ensemble
    for metrics, titles in (([], ["exact match", "CER", "WER"]), (["--metrics=ter"], ["TER"])):
        assert main([*flags, *metrics]) == 0
        told = capsys.readouterr()
        rows = [row for row in told.out.split("\n") if "|" in row]
        assert [row.partition("|")[0] for row in rows] == titles
        assert "--tokenize" not in told.err


@pytest.mark.parametrize(
    ("pairs", "exact", "errors", "count"),
    [
        ("a x y|a y|b z|c w", "66.67", "33.33", "nrefs:var"),
        ("a x y|a y|b z|c w|c w", "20.00", "66.67", "nrefs:1"),  # running text
        ("a x y|||a y|b z||c w", "66.67", "33.33", "nrefs:var"),
        ("a x y|a y|b z|c w|c w|b u", "66.67", "33.33", "nrefs:var"),  # and one line twice
    ],
)
def test_each_word_of_a_dictionary_counts_once_and_by_the_nearest_of_its_answers(
    tmp_path, capsys, pairs, exact, errors, count
):
    rows = pairs.split("|")
    table = write_lines(tmp_path / "table.tsv", (row.replace(" ", TAB, 1) for row in rows))
    ours = write_lines(tmp_path / "ours", ["y", "x", "z", "v", "v", ""][: sum(map(bool, rows))])
    words = ["evaluate", f"--source={table}", f"--hypotheses={ours}"]
    assert main([*words, "--metrics=exact,wer,bleu"]) == 0
    told = capsys.readouterr()
    for said in (f"exact match|{count}|case:mixed", f" = {exact}\n", f" = {errors}\n"):
        assert said in told.out
    assert "BLEU|nrefs:1|" in told.out
    several = "lines of 3 different sources: exact match, WER count each"
    assert (several in told.err) == ("var" in count)
    lengths = [row.split() for row in told.out.split("\n")]
    assert (["lines", "3"] in lengths) == ("var" in count)
    assert "--tokenize=13a" in told.err
    assert main([*words, "--metrics=exact"]) == 0
    told = capsys.readouterr().err
    assert not [name for name in ("WER", "--tokenize") if name in told]


def test_a_file_name_may_contain_an_equals_sign(corpus, tmp_path, capsys):
    path = tmp_path / "beam=5"
    path.write_text((tmp_path / "moses").read_text())
    google = f"--hypotheses=google={tmp_path / 'google'}"
    rows = run(tmp_path, capsys, f"--hypotheses={path}", google)
    assert [*table(rows)] == ["sentences", "beam=5", "google"]


def test_tokenize_and_ignore_case_apply_to_the_whole_table(corpus, tmp_path, capsys):
    capitals = tmp_path / "capitals"
    capitals.write_text((tmp_path / "reference").read_text().upper())
    flags = [f"--hypotheses=capitals={capitals}", f"--hypotheses=moses={tmp_path / 'moses'}"]
    flags += [f"--source={tmp_path / 'source'}", "--ignore_case", "--tokenize=none"]
    rows = run(tmp_path, capsys, *flags)
    says(rows[0], "case:lc tok:none")
    assert "case:lc" in rows[1]
    row = table(rows)["capitals"]
    assert {float(cell) for title, cell in row.items() if title != "p"} == {100.0}


def test_the_tokenizer_is_chosen_by_the_script_of_the_references(tmp_path, capsys, monkeypatch):
    """13a does not split Japanese, so that BLEU is 0."""
    monkeypatch.setattr(scores, "find_spec", lambda name: None)
    files = {
        "reference": ["今日は天気がとても良いです。", "犬が公園を走っている。"],
        "ours": ["今日は天気が良いです。", "犬は公園を走っている。"],
    }
    for name, rows in files.items():
        write_lines(tmp_path / name, rows)
    flag = f"--hypotheses={tmp_path / 'ours'}"
    (by_char, _), (by_blanks, _) = (
        run(tmp_path, capsys, flag, *more) for more in ([], ["--tokenize=13a"])
    )
    for row, tokenize in ((by_char, "char"), (by_blanks, "13a")):
        wanted = sacrebleu.corpus_bleu(files["ours"], [files["reference"]], tokenize=tokenize).score
        assert f"|tok:{tokenize}|" in row
        assert f"= {wanted:.2f} " in row
    assert "= 0.00 " in by_blanks
    main(["evaluate", f"--reference={tmp_path / 'reference'}", flag])
    assert capsys.readouterr().err == ("--tokenize=char, which fits the script of the references\n")


def test_raw_output_against_tokenized_references_gets_a_warning(tmp_path, capsys):
    tokenized = "今日 は 天気 が とても 良い です 。\n"
    raw = tokenized.replace(" ", "")
    for name, text in {"reference": tokenized, "words": tokenized, "raw": raw}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    flags = [f"--hypotheses={tmp_path / name}" for name in ("words", "raw")]
    reference = f"--reference={tmp_path / 'reference'}"
    assert main(["evaluate", reference, *flags]) == 0
    out, err = capsys.readouterr()
    cells = table(out.split("\n")[:-1])
    assert (cells["words"]["BLEU"], cells["raw"]["BLEU"]) == ("100.00", "0.00")
    assert err.split("\n")[1:] == [
        "raw is not tokenized like the references: --tokenize=char can compare them",
        "",
    ]
    cells = table(run(tmp_path, capsys, *flags, "--tokenize=char"))
    assert cells["raw"]["BLEU"] == "100.00"


def test_an_interrupt_keeps_the_translations_so_far(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(evaluate, "WINDOW", 25)
    copier, windows = Copier(), []

    def interrupted(lines: list[str], **_: object) -> list[Translation]:
        windows.append(lines)
        if len(windows) > 2:
            raise KeyboardInterrupt
        return Copier.translate(copier, lines)

    copier.translate = interrupted
    monkeypatch.setattr(files, "load_translator", lambda _: copier)
    output = tmp_path / "output"
    output.write_text("of an earlier run\n")
    flags = [f"--{name}={tmp_path / name}" for name in ("source", "reference", "output")]
    assert main(["evaluate", "--model_dir=m", *flags]) == 130
    assert output.read_text() == "of an earlier run\n"
    kept = output.with_name("output.part").read_text().split("\n")
    assert kept == [*corpus["source"][:50], ""]
    messages = capsys.readouterr().err
    assert "50/60 lines, " in messages or "25/60 lines, " in messages
    assert f"{output}.part has 50 translations\n" in messages


def test_a_missing_package_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)  # as if it were missing
    scores._first_metric.cache_clear()  # of earlier tests
    (tmp_path / "text").write_text("one\n")
    flags = [f"--{name}={tmp_path / 'text'}" for name in ("hypotheses", "reference")]
    assert main(["evaluate", *flags]) == 2
    assert capsys.readouterr().err.endswith(": pip install sacrebleu\n")


@pytest.mark.parametrize("tokenize", ["ja-mecab", "ko-mecab"])
def test_a_tokenizer_without_its_package_is_refused_at_once(tmp_path, capsys, tokenize):
    """Before the lines, whose counts differ, are read."""
    if find_spec("MeCab") or find_spec("mecab_ko"):
        pytest.skip("it is installed here")
    flags = [f"--reference={write_lines(tmp_path / 'one', ['one'])}"]
    flags += [f"--hypotheses={write_lines(tmp_path / 'two', ['one', 'two'])}"]
    said = f"tokenize is '{tokenize}'", f"pip install sacrebleu[{tokenize[:2]}]"
    messages = fails(capsys, ["evaluate", *flags, f"--tokenize={tokenize}"], *said)
    assert messages.count("\n") == 1


def test_bad_flags_and_files_are_reported_in_one_line(corpus, tmp_path, capsys):
    reference = f"--reference={tmp_path / 'reference'}"
    short = tmp_path / "short"
    short.write_text("one\n")
    source, moses = [f"--source={tmp_path / 'source'}"], [f"--hypotheses={tmp_path / 'moses'}"]
    for flags, said in (
        ([f"--hypotheses=x={short}"], f"--hypotheses=x={short} has 1 line and"),
        ([f"--hypotheses=x={tmp_path / 'absent'}"], "absent"),
        (["--hypotheses=x", "--model_dir=m"], "--source is missing"),
        ([*moses, *moses], "'moses' is taken"),
        ([*moses, "--output=x"], "--output is not used without --model_dir"),
        (["--tokenize=soup"], "--source (with --model_dir)"),
        ([*moses, "--tokenize=soup"], "tokenize is 'soup', wanted one of"),
        (["--n_best=2"], "--n_best is not a flag"),
        ([*moses, "--metrics=perplexity,bleu"], "--source is missing"),
        ([*source, *moses, "--metrics=bleu,perplexity"], "--model_dir is missing"),
        (
            [*source, *moses, "--model_dir=m", "--metrics=perplexity"],
            "--hypotheses is not used with --metrics=perplexity alone",
        ),
    ):
        assert main(["evaluate", reference, *flags]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert said in err
        assert err.count("\n") == 1


def test_lengths_are_counted_as_in_training(tmp_path):
    """In the tokens of a model; in words if several models differ."""
    path = tmp_path / "text"
    path.write_text("red cat sits on mat\nblue dog runs\n" * 9)
    pieces = SubwordTokenizer.train([path], 285)
    lines = ["red catdog", "a, b"]
    counted = [len(row) - 1 for row in pieces.tokenize(lines).to_list()]
    assert counted[0] > 2
    assert source_lengths([pieces], lines) == (counted, "sub-words")
    for kind, counts, unit in (("char", [7, 3], "characters"), ("space", [2, 1], "symbols")):
        own = SubwordTokenizer.train([path], 285, kind)
        assert source_lengths([own], ["red cat", "dog"]) == (counts, unit)
    words = WordTokenizer(Vocabulary(["[PAD]", "[UNK]", "[END]"]))
    assert source_lengths([pieces, words], lines) == ([2, 3], "tokens")
    assert source_lengths([], lines) == ([2, 2], "words between spaces")
    by_words = source_lengths([pieces, words], lines, by_words=True)
    assert by_words == ([2, 2], "words between spaces")
