"""`bahdanau-tf ensembles`, and --model_dir with several folders."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from oracle import randomized

from bahdanau_tf import RNNSearch, Seq2SeqLSTM, Translator, WordTokenizer
from bahdanau_tf.commands.main import main
from bahdanau_tf.corpora import grammar
from bahdanau_tf.options import Decoding
from bahdanau_tf.report import results

pytestmark = pytest.mark.usefixtures("eager_search")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    grammar.write_corpus(folder, train=80, dev=4, test=4, max_words=6)
    return folder


@pytest.fixture(scope="module")
def models(corpus, tmp_path_factory) -> dict[str, str]:
    """Untrained models, two of which read the source reversed."""
    folder = tmp_path_factory.mktemp("models")
    target = WordTokenizer.train([corpus / "train.fr"], 60)
    lstm = partial(Seq2SeqLSTM, layers=1)
    makers = {"forward": lstm, "reversed-1": lstm, "reversed-2": lstm, "rnnsearch": RNNSearch}
    for seed, (name, make) in enumerate(makers.items()):
        reverse = name.startswith("reversed")
        source = WordTokenizer.train([corpus / "train.en"], 50, reverse=reverse)
        sizes = source.vocabulary_size, target.vocabulary_size
        model = randomized(make(*sizes, units=8, embedding_dim=8), seed)
        Translator(model, source, target).save(folder / name)
    return {path.name: str(path) for path in folder.iterdir()}


def run(models: dict[str, str], corpus: Path, *flags: str) -> int:
    """Runs the command with flags that name models."""
    text = [f"--source={corpus / 'test.en'}", f"--reference={corpus / 'test.fr'}"]
    return main(["ensembles", *text, *(flag.format_map(models) for flag in flags)])


def test_rows_with_enough_models_are_scored(models, corpus, capsys):
    flags = ["--forward={forward}", "--reversed={reversed-1},{reversed-2}", "--max_length=8"]
    assert run(models, corpus, *flags) == 0
    *rows, signature = capsys.readouterr().out.rstrip("\n").split("\n")
    assert signature.startswith("BLEU|nrefs:1|case:mixed")
    scores = dict(re.split("  +", row) for row in rows)
    assert [*scores] == [
        "Single forward, beam size 12",
        "Single reversed, beam size 12",
        "Ensemble of 5 reversed, beam size 1",
        "Ensemble of 2 reversed, beam size 12",
        "Ensemble of 5 reversed, beam size 2",
        "Ensemble of 5 reversed, beam size 12",
    ]
    for row, score in scores.items():
        assert score == "not run" if "of 5" in row else 0 <= float(score) <= 100


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--reversed={forward}", "reads the source forward"),
        ("--reversed={reversed-1},{forward}", "reads the source forward"),
        ("--forward={reversed-1}", "reads the source reversed"),
        ("--forward={forward},{rnnsearch}", "wanted models of one kind"),
        ("--reversed={rnnsearch}", "RNNSearch of"),
    ],
)
def test_models_that_do_not_match_their_flag_are_refused(models, corpus, capsys, flags, complaint):
    status = run(models, corpus, flags)
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert complaint in err


def test_translate_with_several_folders_uses_an_ensemble(models, corpus, tmp_path):
    folders = f"--model_dir={models['forward']},{models['reversed-1']}"
    output = tmp_path / "output"
    common = [f"--input={corpus / 'test.en'}", f"--output={output}"]
    common += ["--max_length=8", "--average=log_probability"]
    assert main(["translate", folders, *common]) == 0
    members = [Translator.load(models[n]) for n in ("forward", "reversed-1")]
    joined = Translator.ensemble(members, "log_probability")
    lines = (corpus / "test.en").read_text().splitlines()
    how = replace(joined.decoding, max_length=8)
    wanted, first = ([x.text for x in y.translate(lines, how)] for y in (joined, members[0]))
    assert output.read_text().splitlines() == wanted != first


class Named:
    """Says who translates, and how."""

    def __init__(self, name):
        self.name = name

    def translate(self, sources, how, split_sentences):
        said = f"{self.name} {how.beam_size} {how.n_best} "
        return [SimpleNamespace(text=said + line) for line in sources]


def test_each_row_has_its_models_and_its_beam_size(monkeypatch):
    def joined(chosen, average):
        return Named(f"{average} of {', '.join(model.name for model in chosen)}")

    monkeypatch.setattr(results.Translator, "ensemble", joined)
    members = {"a": [Named("1"), Named("2"), Named("3")], "b": [Named("4")]}
    rows = [("a", 1, 12), ("a", 2, 3), ("b", 2, 1), ("b", 1, 1)]
    how = Decoding(beam_size=7, n_best=3)
    wanted = [["1 12 1 x"], ["mean of 1, 2 3 1 x"], None, ["4 1 1 x"]]
    translated = results.translate_rows(rows, members, ["x"], how, "mean")
    assert list(translated) == list(zip(rows, wanted, strict=True))
