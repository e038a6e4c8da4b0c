"""`bahdanau-tf translate` with a fake translator that needs no time."""

import gzip
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from comparisons import aligned
from hypothesis import given, strategies as st
from refusals import fails, refused, says
from toys import with_alternatives

from bahdanau_tf.commands import files
from bahdanau_tf.commands.main import main
from bahdanau_tf.options import Decoding
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.translation import Translation, sentence_splitting
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.result import Doubt
from bahdanau_tf.translation.sentence_splitting import (
    has_several,
    pieces_of,
    split_sentences,
    translate_lines,
    unframed,
)


class Shouter:
    """A translator: words in capitals and reverse order; score -length.

    A translation with a word "cut" is not finished, "nothing" is left out. The
    second best has one "!" more and a score lower by 1.
    """

    def __init__(
        self,
        n_best: int = 1,
        attention: bool = True,
        reverse_target: bool = False,
        longest: int | None = None,
        **habits: bool,
    ) -> None:
        self.model_name, self.has_alignment = "Shouter", attention
        self.target_text = SimpleNamespace(reverse=reverse_target)
        self.n_best, self.habits, self.decoding = n_best, Habits(longest, **habits), Decoding()
        self.memory: dict[str, str] = {}
        self.windows: list[int] = []
        self.prefixes: list[str] = []
        self.terms: dict[str, str] = {}

    def translate(
        self,
        lines: list[str],
        batch_size: int = 64,
        prefixes: list[str] | None = None,
        split_sentences: bool | None = None,
        terms: dict[str, str] | None = None,
        mbr: str | None = None,
    ) -> list[Translation]:
        self.windows.append(len(lines))
        assert split_sentences is not True  # which the command does
        self.terms = terms or {}
        self.prefixes += prefixes or [""] * len(lines)
        return [self._translate(line) for line in lines]

    def _translate(self, line: str) -> Translation:
        best, *others = (self._one(line, n) for n in range(self.n_best))
        return replace(best, alternatives=others) if line.split() else Translation(line)

    def _one(self, line: str, rank: int) -> Translation:
        words = line.split()
        said = [word.upper() for word in reversed(words) if word != "nothing"]
        tokens = said + ["!"] * rank
        finished = "cut" not in words
        n = len(words)
        weights = np.zeros((len(tokens) + finished, n + 1), np.float32)
        for row in range(n):
            weights[row, n - 1 - row] = 1
        weights[n:, n] = 1
        doubts = [Doubt("number", x) for x in "12" * ("doubt" in words)]
        doubts += [Doubt("long")] * (n > (self.habits.longest or n))
        return aligned(
            line,
            " ".join(tokens),
            words,
            tokens,
            score=-float(n + rank),
            log_prob=-2.0 * (n + rank),
            finished=finished,
            weights=weights if self.has_alignment else None,
            doubts=(*doubts,),
        )


@pytest.fixture(autouse=True)
def model(monkeypatch) -> Shouter:
    """What the command loads."""
    model = Shouter()
    monkeypatch.setattr(files, "load_translator", lambda _: model)
    return model


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs the command on text and returns what it wrote."""

    def call(text: str, *flags: str, **options) -> str:
        model = Shouter(**options)
        call.model = model
        monkeypatch.setattr(files, "load_translator", lambda _: model)
        source, output = tmp_path / "source", tmp_path / "output"
        source.write_text(text, "utf-8", newline="\n")
        own = [f"--input={source}", f"--output={output}"]
        assert main(["translate", "--model_dir=x", *own, *flags]) == 0
        assert not list(tmp_path.glob("*.part"))
        return output.read_bytes().decode("utf-8")

    return call


def test_lines_stay_in_order_over_windows(run):
    lines = [f"line {n}" if n % 7 else "" for n in range(50)]
    output = run("".join(f"{line}\n" for line in lines), "--window=8")
    wanted = [f"{n} LINE" if n % 7 else "" for n in range(50)]
    assert output == "".join(f"{line}\n" for line in wanted)
    assert run.model.windows == [8] * 6 + [2]


def test_flags_of_the_search_reach_the_model(model, monkeypatch, tmp_path):
    monkeypatch.undo()  # what is loaded gets them
    monkeypatch.setattr("bahdanau_tf.translator.Translator.load", lambda _: model)
    source, words = tmp_path / "source", tmp_path / "words"
    source.write_text("a\n")
    words.write_text("cat\tchat\n")
    flags = [f"--input={source}", f"--output={tmp_path / 'output'}"]
    flags += ["--unknown=replace", f"--dictionary={words}", "--beam_size=3"]
    assert main(["translate", "--model_dir=x", *flags]) == 0
    assert (model.decoding.unknown, model.decoding.beam_size) == ("replace", 3)
    assert model.dictionary.entries == (("cat", "chat"),)


def test_each_line_has_its_prefix(run, tmp_path):
    """Also in later windows; a split line uses it for its first sentence."""
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("P0\n\nP2\nP3\n", "utf-8")
    run("a\nb\nc d. e f. g\nh\n", f"--prefixes={prefixes}", "--window=3")
    assert run.model.prefixes == ["P0", "", "P2", "P3"]
    run("a\n\nC d. E f. G\nh\n", f"--prefixes={prefixes}", "--split_sentences")
    assert run.model.prefixes == ["P0", "", "P2", "", "", "P3"]


def test_tokens_in_json_begin_without_a_space():
    offsets = [(0, 3), (3, 8), (8, 9)]
    x = Translation("猫\u3000ab ", "K AE", ["K", " AE"], source_tokens=["猫", "\u3000ab", " "])
    places = {"source_offsets": offsets, "target_offsets": [(0, 1), (1, 4)]}
    x = replace(x, **places, weights=np.ones([3, 4]))
    line = json.loads(files.json_line(x, True))
    assert (line["tokens"], line["source_tokens"]) == (["K", "AE"], ["猫", "ab", " "])
    for text, side, name in ((x.source, "source", "source_tokens"), (x.text, "target", "tokens")):
        assert [text[start:end] for start, end in line[f"{side}_spans"]] == line[name]
        data = [text.encode()[start:end].decode() for start, end in line[f"{side}_offsets"]]
        assert data == line[name]


def test_of_a_table_the_first_column_is_translated(run, tmp_path):
    table, prefixes = tmp_path / "words.tsv", tmp_path / "prefixes"
    table.write_text("a b\tx y\n\nc\nd\te\tf\n", "utf-8")
    prefixes.write_text("P0\n\n\n\n", "utf-8")
    for flags in ([], [f"--prefixes={prefixes}"], ["--markup"]):
        assert run("", f"--input={table}", *flags) == "B A\n\nC\nD\n"
    assert run("a\tb\n") == "B A\n"  # no table


@pytest.mark.parametrize(
    ("text", "prefix", "said", "options"),
    [
        ("a\nb\n", "P0", "--input", {}),
        ("", "P0", "--prefixes", {}),
        ("a\n", "", "--prefixes model", {"reverse_target": True}),  # though all are blank
    ],
)
def test_prefixes_that_do_not_fit_are_refused(run, tmp_path, capfd, text, prefix, said, options):
    prefixes = tmp_path / "prefixes"
    prefixes.write_text(f"{prefix}\n", "utf-8")
    with pytest.raises(AssertionError):  # the command does not return 0
        run(text, f"--prefixes={prefixes}", **options)
    says(capfd.readouterr().err, said)


def test_unusual_input_is_translated(run):
    assert run("") == ""
    assert run("no end") == "END NO\n"
    assert run("\n\n") == "\n\n"
    # Only a line feed ends a line.
    assert run("a\u2028b\x85c\rd\n").count("\n") == 1


def test_moses_n_best_lists_are_written(run):
    output = run("a b\n\nc\n", "--n_best=2", n_best=2)
    assert output == (
        "0 ||| B A ||| Shouter0= -4.0000 ||| -2\n"
        "0 ||| B A ! ||| Shouter0= -6.0000 ||| -3\n"
        "1 |||  ||| Shouter0= 0.0000 ||| 0\n"
        "2 ||| C ||| Shouter0= -2.0000 ||| -1\n"
        "2 ||| C ! ||| Shouter0= -4.0000 ||| -2\n"
    )
    single = run("a b\n", "--format=moses", "--alignments")
    assert single.endswith("||| -2 ||| 0-1 1-0\n")


def test_alignments_are_written_after_the_text(run):
    output = run("a b c\n\n", "--alignments")
    assert output == "C B A ||| 0-2 1-1 2-0\n ||| \n"


def test_bars_in_a_text_do_not_separate_fields(run):
    """As in Moses; without further fields the text is as it is."""
    for flags in (["--alignments"], ["--format=moses"]):
        output = run("a ||| b\n", *flags)
        assert "B &#124;&#124;&#124; A |||" in output
    assert run("a ||| b\n") == "B ||| A\n"


def test_json_lines_are_written(run):
    output = run("é b\n\n", "--format=json", "--n_best=2", n_best=2)
    first, second = map(json.loads, output.split("\n")[:-1])
    assert first == {
        "source": "é b",
        "text": "B É",
        "score": -2.0,
        "log_prob": -4.0,
        "finished": True,
        "truncated": False,
        "confidence": None,
        "doubts": [],
        "alternatives": [{"text": "B É !", "score": -3, "log_prob": -6, "finished": True}],
    }
    assert (second["text"], second["alternatives"]) == ("", [])
    line = json.loads(run("é b\n", "--format=json", "--alignments"))
    assert line["alignment"] == [[0, 1], [1, 0]]
    assert (line["source_tokens"], line["tokens"]) == (["é", "b"], ["B", "É"])
    assert line["source_offsets"] == [[0, 2], [3, 4]]
    assert line["source_spans"] == line["target_spans"] == [[0, 1], [2, 3]]
    assert line["weights"] == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("split", [False, True])
def test_markup_is_put_back(run, tmp_path, split):
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("<i>P</i>\n\n", "utf-8")
    text = "<b>one</b> two %s\nsaid <i>no. Well</i> done\n"
    flags = ["--markup", f"--prefixes={prefixes}", f"--split_sentences={split}"]
    first, second = run(text, *flags).split("\n")[:-1]
    assert first == "TWO <b>ONE</b> %s"
    assert second == ("<i>NO.</i> SAID DONE WELL" if split else "DONE <i>WELL NO.</i> SAID")
    assert [*filter(None, run.model.prefixes)] == ["P"]
    line = json.loads(run(text, *flags, "--format=json", "--alignments").split("\n")[0])
    assert line["source"] == "<b>one</b> two %s"
    assert line["source_tokens"] == ["one", "two"]
    assert line["source_spans"] == [[3, 6], [11, 14]]
    assert line["target_spans"] == [[0, 3], [7, 10]]
    assert line["alignment"] == [[0, 1], [1, 0]]


def test_scripts_and_comments_may_have_several_lines(run, tmp_path):
    text = "<Style>\np {}\n</style> one two<!-- three\n--> one <script>x</script> two <script\nx"
    wanted = (
        "<Style>\np {}\n</style> TWO ONE<!-- three\n--> <script>x</script> TWO ONE <script\nx\n"
    )
    for window in ([], ["--window=1"]):
        assert run(f"{text}\n", "--markup", *window) == wanted
    (tmp_path / "in").write_text(text, "utf-8")
    flags = ["translate", "--model_dir=x", "--markup", f"--input={tmp_path}/in", "--shard=2/2"]
    assert main([*flags, f"--output={tmp_path}/out"]) == 0
    assert (tmp_path / "out-2-of-2").read_text() == "".join(wanted.splitlines(True)[2:])


def test_terms_are_read_from_a_file(run, tmp_path, capsys):
    terms = tmp_path / "terms.tsv"
    terms.write_bytes("\ufeffone\tuno\r\n\ncredit card\tcarte bancaire\none\tuno\n".encode())
    assert run("one two\n", f"--terms={terms}") == "TWO ONE\n"
    assert run.model.terms == {"one": "uno", "credit card": "carte bancaire"}
    assert capsys.readouterr().err == "1 term in no line: credit card\n"
    words = ["translate", "--model_dir=x", f"--terms={terms}", f"--input={terms}"]
    for line in ("two", "two\tdue\ttre", "two\t"):
        terms.write_text(f"one\tuno\n{line}\n")
        fails(capsys, words, f"{terms}, line 2 is", "a source term, a tab")
    terms.write_text("one\tuno\n\none\tun\n")
    fails(capsys, words, f"{terms}, lines 1 and 3 begin with 'one'")


def test_a_truncated_gz_keeps_the_translations_so_far(tmp_path, capsys):
    source, output = tmp_path / "s.gz", tmp_path / "o"
    lines = [f"{number} {number * number}" for number in range(10_000)]
    source.write_bytes(gzip.compress("\n".join(lines).encode())[:-9])
    flags = [f"--input={source}", f"--output={output}", "--window=100"]
    said = f"{source} is not a whole gzip file"
    err = fails(capsys, ["translate", "--model_dir=x", *flags], said)
    done = (tmp_path / "o.part").read_text().split("\n")[:-1]
    assert err.startswith(f"{output}.part has {amount(len(done), 'translation')}\n")
    assert err.count("\n") == 2
    assert done == [" ".join(line.split()[::-1]) for line in lines[: len(done)]]
    assert len(done) > 5000
    assert not output.exists()


@pytest.mark.parametrize("window", [1, 2, 1000])
def test_an_error_keeps_the_old_output_and_the_translations_so_far(tmp_path, capsys, window):
    """All lines before the one that is not text, whatever the window."""
    source, output = tmp_path / "source", tmp_path / "output"
    source.write_bytes(b"a b\nc d\ne\n\xff\nf\n")
    output.write_text("old\n")
    flags = [f"--input={source}", f"--output={output}", f"--window={window}"]
    said = f"{output}.part has 3 translations\n", "line 4 is not UTF-8"
    fails(capsys, ["translate", "--model_dir=x", *flags], *said)
    assert output.read_text() == "old\n"
    assert (tmp_path / "output.part").read_text() == "B A\nD C\nE\n"


@pytest.mark.parametrize("done", [0, 4])
def test_ctrl_c_tells_where_the_translations_so_far_are(tmp_path, model, capsys, done):
    seen: list[str] = []

    def interrupted(lines: list[str], **options) -> list[Translation]:
        if len(seen) == done:
            raise KeyboardInterrupt
        seen.extend(lines)
        return Shouter.translate(model, lines, **options)

    model.translate = interrupted
    source, output = tmp_path / "source", tmp_path / "output"
    source.write_text("a b\n" * 7)
    flags = [f"--input={source}", f"--output={output}", "--window=2"]
    assert main(["translate", "--model_dir=x", *flags]) == 130
    messages = capsys.readouterr().err
    part = tmp_path / "output.part"
    if done:
        assert f"{part} has {amount(done, 'translation')}\n" in messages
        assert part.read_text() == "B A\n" * done
    else:
        assert ".part has" not in messages
        assert not part.exists()


def test_lines_with_unfinished_translations_are_named(run, capsys):
    run("a\na cut\nb\nc cut\ncut\n", "--window=3")
    assert capsys.readouterr().err == ("lines 2, 4-5: translation cut off at the length limit\n")


def test_doubtful_lines_are_named_by_reason(run, capsys):
    run("a\ndoubt\n\ndoubt\ndoubt cut\n")
    assert capsys.readouterr().err == (
        "3 of 5 lines may be wrong; --format=json has the doubts of each\n"
        "lines 2, 4-5: a number is missing\n"
        "line 5: translation cut off at the length limit\n"
    )


def test_emoji_are_no_sentence():
    assert [has_several(x) for x in ("A! \u263a\u263a", "! ?", "A! B.")] == [False, False, True]


def test_rows_of_a_memory_with_a_blank_cell_are_none(run, tmp_path):
    (tmp_path / "memory").write_text(" \tghost\na b\t \nc d\told\nc d\tnew\nc d\tnew\n")
    run("", f"--memory={tmp_path / 'memory'}")
    assert run.model.memory == {"c d": "new"}


def test_empty_translations_of_lines_with_words_are_named(run, capsys):
    assert run("a\n\n \nnothing\nb\n") == "A\n\n\n\nB\n"
    assert capsys.readouterr().err == "line 4: translation is empty\n"


def test_lines_longer_than_those_of_the_training_are_named_and_translated_whole(run, capsys):
    text = "a b\na b c d\na b. C d e.\n"
    assert run(text, longest=3) == "B A\nD C B A\nE. D C B. A\n"
    assert capsys.readouterr().err.endswith("\nlines 2-3: longer than in training\n")
    run(text, longest=5)
    run("a b c d\n" * 3)
    assert "longer" not in capsys.readouterr().err


def test_a_line_has_neither_line_feeds_nor_nul():
    assert Translation("", "a\0b\nc\td").line == "ab c\td"


def test_lines_of_several_sentences_are_split_if_the_model_knows_single_ones(run, capsys):
    assert run("a. B.\n") == "B. A.\n"
    assert run("a. B.\n", "--split_sentences") == "A. B.\n"
    assert run("a. B.\n", "--nosplit_sentences", singly=True) == "B. A.\n"
    text = "a b\na b c d\n\na b. C d e. F g h i.\nA. Z b.\n \n"
    whole = "B A\nD C B A\n\nB. A E. D C I. H G F\nB. Z A.\n\n"
    capsys.readouterr()
    assert run(text, singly=True) == whole
    several = (
        "1 of 6 lines: several sentences, each translated by itself; --nosplit_sentences "
        "translates such lines as a whole\n"
    )
    assert capsys.readouterr().err == several
    assert run(text, longest=3, singly=True) == whole
    assert capsys.readouterr().err.endswith(f"{several}lines 2, 4: longer than in training\n")


def test_translations_of_the_parts_of_a_line_are_joined():
    """Offsets, alignments, scores and n-best of a line split in three."""
    line = "Où est là. Été. Cut cut d."
    model = Shouter(n_best=2)
    (x,) = translate_lines(model.translate, [line])
    source, target = line.encode(), x.text.encode()
    assert [source[a:b].decode() for a, b in x.source_offsets] == x.source_tokens
    assert [target[a:b].decode() for a, b in x.target_offsets] == x.tokens
    assert (x.source, x.text) == (line, "LÀ. EST OÙ ÉTÉ. D. CUT CUT")
    assert x.tokens == x.text.split()
    assert x.pharaoh == "0-2 1-1 2-0 3-3 4-6 5-5 6-4"
    assert (x.score, x.log_prob, x.finished) == (-7, -14, False)
    assert x.weights.shape == (7, 8)
    np.testing.assert_array_equal(x.weights.sum(1), 1)
    (second,) = x.alternatives
    assert second.score == -8
    assert sorted(second.tokens) == sorted([*x.tokens, "!"])
    # "!" was aligned to the end of its part, so now to the end of the line.
    assert second.weights[second.tokens.index("!"), -1] == 1


def test_a_long_text_has_the_alignments_of_its_sentences(monkeypatch):
    """Their matrix would take more memory than all else."""
    monkeypatch.setattr(sentence_splitting, "MOST", 25)
    lines = translate_lines(Shouter().translate, ["A b. C d.", "A b. C d. E."])
    short, long = lines
    assert short.weights is not None
    assert long.weights is None
    assert [part.text for part in long.parts] == ["B. A", "D. C", "E."]
    assert long.pharaoh == "0-1 1-0 2-3 3-2 4-4"
    assert all(part.text in long.view() for part in long.parts)
    refused(lambda: long.word_weights, "no alignment", "shorter text")


def test_a_split_line_that_is_not_finished_has_no_row_of_the_end():
    """Although its last part is finished."""
    (translation,) = translate_lines(Shouter().translate, ["cut a. B b."])
    assert not translation.finished
    assert len(translation.weights) == len(translation.tokens) == 4


def test_n_best_of_a_split_line_have_the_best_sums():
    line = "A a. B b. C c."
    model = Shouter(n_best=3)
    (translation,) = translate_lines(model.translate, [line])
    every = with_alternatives(translation)
    assert [x.score for x in every] == [-6, -7, -7]
    assert len({x.text for x in every}) == 3


def test_a_finished_translation_of_a_part_is_better_than_one_cut_off():
    """As in search, whatever their scores."""
    model = Shouter(n_best=2)
    whole = model.translate(["A b. "])[0]
    cut = replace(whole, score=0.0, finished=False, alternatives=[])
    model.translate = lambda lines, **_: [
        replace(whole, source=line, alternatives=[cut]) for line in lines
    ]
    (translation,) = translate_lines(model.translate, ["A b. C d."])
    assert translation.finished
    assert translation.score == 2 * whole.score
    assert translation.score < translation.alternatives[0].score


def test_no_blank_is_put_after_a_mark_of_japanese():
    model = Shouter()
    model.translate = lambda lines, **_: [
        Translation(line, "猫だ。", ["猫", "だ。"], target_offsets=[(0, 3), (3, 9)])
        for line in lines
    ]
    (translation,) = translate_lines(model.translate, ["A b. C d. "])
    assert translation.text == "猫だ。猫だ。"
    text = translation.text.encode()
    assert [text[a:b].decode() for a, b in translation.target_offsets] == translation.tokens


def test_bad_flags_and_files_are_reported_in_one_line(tmp_path, model, capsys):
    model.has_alignment = False
    source = tmp_path / "source"
    source.write_text("a\n")
    for flags, said in (
        (["--format=xml"], "--format"),
        (["--alignments", f"--input={source}"], "attention"),
        (["--markup", f"--input={source}"], "attention"),
        ([f"--terms={os.devnull}", f"--input={source}"], "--terms needs a model with attention"),
        ([f"--terms={source}", "--sampling"], "--terms"),
        ([f"--terms={source}", "--mbr=bleu"], "--terms is not used with --mbr"),
        ([f"--memory={source}", "--markup"], "--markup is not used with --memory"),
        ([f"--memory={source}", f"--terms={source}"], "--terms is not used with --memory"),
        ([f"--memory={source}", f"--input={source}"], "line 1 has no tab"),
    ):
        fails(capsys, ["translate", "--model_dir=x", *flags], said)
    assert model.windows == []  # before any line is translated


def test_a_line_without_end_is_refused_and_the_flag_allows_it(tmp_path, capsys):
    source = tmp_path / "source"
    source.write_text("the cat\n" + "the " * 20 + "\n")
    words = ["translate", "--model_dir=x", f"--input={source}"]
    assert main([*words, "--max_line_bytes=80"]) == 2
    out, err = capsys.readouterr()
    assert out == "CAT THE\n"  # the line before it
    says(err, f"{source}: 2 80 bytes --max_line_bytes")
    assert main([*words, "--max_line_bytes=81"]) == 0


def test_on_a_terminal_each_line_is_translated_at_once(model, monkeypatch, capsys):
    typed = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a b\nc\n")))
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    assert main(["translate", "--model_dir=x"]) == 0
    assert model.windows == [1, 1]
    out, err = capsys.readouterr()
    assert out == "B A\nC\n"
    assert err == "type a line and press Enter; Ctrl-D ends\n"


STREAM = """
import resource
import sys
from dataclasses import replace
sys.path.insert(0, sys.argv.pop())
from test_translate import Shouter
from bahdanau_tf.commands import files
from bahdanau_tf.commands.main import main
class Fast(Shouter):
    def _translate(self, line):
        from bahdanau_tf.translation import Translation
        return Translation(line, line.upper(), finished="7" not in line)
files.load_translator = lambda _: Fast()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
status = main([*sys.argv[1:], "--model_dir=x"])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(after - before, "KiB", file=sys.stderr)
sys.exit(status)
"""


def stream(*flags: str, **options) -> subprocess.CompletedProcess[str]:
    here = str(Path(__file__).parent)
    paths = [str(folder) for folder in Path(__file__).parents[1:3]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("PYTHONUNBUFFERED", None)  # as in a user's shell
    return subprocess.run(
        [sys.executable, "-c", STREAM, "translate", "--model_dir=x", *flags, here],
        check=False,
        text=True,
        env=environment,
        **options,
    )


def test_a_closed_output_pipe_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    done = stream(input="a\n" * 3000, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.returncode == 0
    assert done.stderr.endswith(" KiB\n")  # it ran to the end
    for word in ("Traceback", "Exception", "BrokenPipe"):
        assert word not in done.stderr


@pytest.mark.slow
def test_memory_does_not_grow_with_lines(tmp_path):
    """A million lines, every fourth of them reported on standard error."""
    source = tmp_path / "source"
    with source.open("w") as lines:
        lines.writelines(f"line {n} of many\n" for n in range(1_000_000))
    with (tmp_path / "said").open("w") as said:
        done = stream(f"--input={source}", f"--output={tmp_path / 'out'}", stderr=said)
    assert done.returncode == 0
    with (tmp_path / "out").open() as lines:
        for number, line in enumerate(lines):
            assert line == f"LINE {number} OF MANY\n"
    assert number == 999_999
    last = (tmp_path / "said").read_text().split("\n")[-2]
    assert int(last.split()[0]) < 20_000


def test_lines_that_take_long_are_named_before(run, capsys, monkeypatch):
    said = []

    def translated(model: Shouter, lines: list[str], **_) -> list[Translation]:
        said.append(capsys.readouterr().err)
        return [Translation(line) for line in lines]

    monkeypatch.setattr(Shouter, "translate", translated)
    run(f"a\n{'x' * 5001}\nb\nc\n{'y' * 5000}\n", "--window=3")
    assert said == ["line 2: more than 5,000 characters; this will take a while\n", ""]


@pytest.mark.parametrize("split", [False, True])
def test_of_a_line_that_is_far_too_long_only_the_start_is_read(run, capsys, monkeypatch, split):
    """Before memory grows with it; a line of many sentences is as long as they are."""
    read = []

    def translated(_: Shouter, lines: list[str], **__) -> list[Translation]:
        read.extend(lines)
        return [Translation(line, "x", alternatives=[Translation(line)]) for line in lines]

    monkeypatch.setattr(Shouter, "translate", translated)
    long = f"{'x' * 999_999} end."
    flags = ["--format=json", "--max_length=3", "--n_best=2", f"--split_sentences={split}"]
    out = run(f"a\n{long} B.\n", *flags)
    assert read == ["a", "x" * 192, *["B."][:split]]
    values = [(x["source"], x["truncated"]) for x in map(json.loads, out.splitlines())]
    assert values == [("a", False), (f"{long} B.", True)]
    assert "line 2: only its start was translated\n" in capsys.readouterr().err


def test_split_sentences_splits_known_examples():
    for text in (
        "Mr. Smith left. | Why? | He knew!",
        "J. R. R. Tolkien wrote it. | It sold.",
        "It costs 3.50 dollars. | Really?! | Yes...",
        'He said "Go." | Then he left (quickly). | "Fine," she said.',
        "« Bonjour ! » | Il entre. | M. Dupont dort, cf. la page.",
        "« Bonjour ! » dit-il.",
        "See No. 5. | The U.S. Army came at 5 p.m. today.",
        "これは本です。|「はい。」と言った。|本当！？|ええ。",
        "한국어입니다. | 네.",
        "Hello . | How are you ? | Fine !",
        "Non ! ! | Si",
        "I know.|Let's go!|I will.",
        "Really?|Yes, e-mail Tom.Smith@b.org or see www.Google.Com in St.Louis",
        "1. Introduction",
        "Tom: | Where is it? | Mary: | At home.",
        "Step 2: (Open it.) | Mr. de Li: | Yes! | A: No.",
        "Note: it is 5:30, He said Tom said: Go.",
        "**My note:** | **Ab** is here. | __No:__ | _Yes_.",
        "...",
        "no end at all",
    ):
        wanted = [part.strip() for part in text.split("|")]
        parts = split_sentences(text.replace("|", "").replace("  ", " "))
        assert [part.strip() for part in parts] == wanted


def test_what_a_sentence_of_a_list_begins_with_stays():
    """Unless its prefix has it, or a memory."""
    read = []

    def translate(lines, prefixes=None):
        read.extend(lines)
        return [Translation(x, x.strip().upper(), finished=True) for x in lines]

    def translated(*lines, **options):
        read.clear()
        return [x.text for x in translate_lines(translate, lines, **options)]

    kept = ["1. A CAT", "(2) A", " - [x] A", "• A", "## A", "> > 1) A", "Q: A? - B", "・猫"]
    assert translated(*(x.lower().replace("q:", "Q:") for x in kept)) == kept
    assert read == [*["a cat", *"aaaaa"], "a? ", "b", "\u732b"]
    for text in ["1.", "A. Li left", "3.14 is", "- 5 km", "-- a", "#tag", "・・・", "1945. a"]:
        assert [*translated(text), *read] == [text.upper(), text]
    assert translated("1. a. - B", prefixes=["x"]) == ["1. A. - B"]
    assert read == ["1. a. ", "B"]
    assert [*translated("1. a", remembered={"1. a"}), *read] == ["1. A", "1. a"]
    (row,) = translate_lines(translate, ["1. a. B"])
    assert row.source == "1. a. B"
    assert translated("-Ab. -5. \u2014b") == ["-AB. -5. \u2014B"]
    assert read == ["Ab. ", "-5. ", "\u2014b"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ('"ab"', ['"', "ab", '"']),
        (" ( ab c ) \n", [" ( ", "ab c", " ) \n"]),
        ("\u00ab\u00a0ab\u00a0\u00bb", ["\u00ab\u00a0", "ab", "\u00a0\u00bb"]),
        ("- **'Don't go.'**", ["- **'", "Don't go.", "'**"]),
        ("[1. ab]", ["[1. ", "ab", "]"]),
        ("\u2018It\u2019s ab\u2019!", ["\u2018", "It\u2019s ab", "\u2019!"]),
        *((text, ["", text, ""]) for text in ('"a" or "b"', "(ab) (cd)", "(a)", '"ab', "ab (cd)")),
        *((text, ["", text, ""]) for text in ('""', "'tis a boys' club", "[ab](cd)", "", "_a_b_")),
    ],
)
def test_what_frames_a_text_is_no_part_of_it(text, pieces):
    assert [*unframed(text)] == pieces
    (row,) = translate_lines(lambda x, **_: [Translation(y, y.upper()) for y in x], [text])
    before, inside, after = pieces
    assert row.source == text
    assert row.text == before + inside.upper() + after.rstrip()


def shouted(text: str, **options: object) -> Translation:
    (row,) = translate_lines(
        lambda lines, **_: [Translation(x, x.strip().upper()) for x in lines], [text], **options
    )
    return row


def test_frames_are_those_of_a_line_or_of_its_sentences():
    text = '(A bc. "De." Fg: "Hi.")\n\u201cJk?\u201d lm'
    wanted = ["(A BC.", '"DE."', "FG:", '"HI.")\n\u201cJK?\u201d LM']
    assert shouted(text).text == " ".join(wanted)
    assert shouted(text).source == text
    pieces = [("(", "A bc. ", ""), ('"', "De.", '" '), ("", "Fg", ": "), ('"', "Hi.", '")\n')]
    assert pieces_of(text)[:4] == pieces
    for source, wanted in (("(Ab).", "(AB)."), ("(Ab!).", "(AB!)"), ("**Ab:** Cd", "**AB:** CD")):
        assert (shouted(source).text, shouted(source).source) == (wanted, source)


def test_marks_that_stay_are_tokens_which_are_aligned():
    inner = Translation(
        **{"source": "ab c", "text": "d", "tokens": ["d"], "source_tokens": ["ab", " c"]},
        **{"source_offsets": [(0, 2), (2, 4)], "target_offsets": [(0, 1)]},
        weights=np.array([[0.7, 0.2, 0.1], [0, 0, 1]], np.float32),
    )
    (row,) = translate_lines(lambda lines, **_: [inner], [" \u00ab\u00a0ab c\u00a0\u00bb. "])
    assert row.text == " \u00ab\u00a0d\u00a0\u00bb."
    assert [row.source[a:b] for a, b in row.source_spans] == row.source_tokens
    assert [row.text[a:b] for a, b in row.target_spans] == row.tokens == ["\u00ab", "d", "\u00bb."]
    wanted = np.zeros([4, 5])
    wanted[[0, 2, 3], [0, 3, 4]] = 1
    wanted[1, [1, 2, 4]] = 0.7, 0.2, 0.1
    np.testing.assert_allclose(row.weights, wanted, rtol=1e-6)
    lines = ["(ab c)", "(ab c) d"]
    (alone, both) = translate_lines(lambda x, **_: [replace(inner, weights=None)] * len(x), lines)
    assert alone.weights is both.weights is None


@pytest.mark.parametrize(
    ("code", "text"),
    [("fr", "TOM : AB"), ("ja", "TOM\uff1aAB"), ("ko", "TOM: AB"), ("", "TOM: AB")],
)
def test_a_label_has_the_colon_of_the_target(code, text):
    habits = Habits(languages=("en", code) if code else ())
    assert shouted("Tom: Ab", colon=habits.target.colon).text == text


def test_lines_and_sentences_of_a_memory_are_whole():
    assert pieces_of("- Ab\n- Cd", remembered={"- Ab"}) == [("", "- Ab\n", ""), ("- ", "Cd", "")]
    assert pieces_of('Ab. "Cd."', remembered={'"Cd."'}) == [("", "Ab. ", ""), ("", '"Cd."', "")]
    assert pieces_of("Ab. Cd.", remembered={"Ab. Cd."}) == [("", "Ab. Cd.", "")]


@given(st.text(st.sampled_from("a \n\t.B"), max_size=20))
def test_each_line_with_words_is_translated_and_line_breaks_stay(text):
    read = []
    (row,) = translate_lines(
        lambda lines, **_: read.extend(lines) or [Translation(x, x.strip()) for x in lines], [text]
    )
    assert "".join(read) == row.source == text
    assert row.text.split() == text.split()
    assert all(line.strip() for line in read) or not text.strip()
    inner = text.strip()
    assert row.text.count("\n") == inner.count("\n")


@given(st.text(st.sampled_from('aA1 .!?…。！"»)「」\u00a0\nMr'), max_size=60))
def test_split_sentences_keeps_every_character(text):
    parts = split_sentences(text)
    assert "".join(parts) == text
    assert all(parts)
