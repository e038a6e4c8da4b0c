"""README.md and the pages of docs/ are correct.

Their Python and shell blocks run, with a small corpus and small models. A block after the comment
`<!-- not run: reason -->` is not run, but its commands, flags and files must exist. So must all
links and files in the text.
"""

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from comparisons import write_lines
from letters import stand_in_step
from notebooks import FOLDER, NOTEBOOKS, REPOSITORY, read_notebook, run_blocks, source
from toys import search_eagerly

import bahdanau_tf
from bahdanau_tf import Translator
from bahdanau_tf.commands.main import COMMANDS, defined_flags, main, parse_with_recipe
from bahdanau_tf.commands.train import asked
from bahdanau_tf.corpora import write_corpus
from bahdanau_tf.options.facts import TYPICAL
from bahdanau_tf.training import update

# README.md in another language, whose blocks are those of README.md; the first one may translate
# another sentence into another language.
TRANSLATED = sorted((REPOSITORY / "docs").glob("README_*.md"))
PACKAGE = Path(bahdanau_tf.__file__).parent
PAGES = [REPOSITORY / "README.md", *sorted({*(REPOSITORY / "docs").glob("*.md")} - {*TRANSLATED})]
# All pages of the site, whose links must work there and in the repository.
SITE = [
    *PAGES,
    *TRANSLATED,
    *sorted((REPOSITORY / "docs" / "reference").glob("*.md")),
    *(REPOSITORY / folder / "README.md" for folder in ("colab", "export", "benchmarks")),
    *(REPOSITORY / f"{name}.md" for name in ("BUILD", "CHANGELOG")),
    REPOSITORY / "CONTRIBUTING.md",
]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>.+?) -->\n)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    flags=re.MULTILINE | re.DOTALL,
)
# Replace the sizes in a page: keyword arguments in Python, and flags that are
# added after those of the page.
MODEL_SIZES = dict.fromkeys(("units", "embedding_dim", "attention_units", "maxout_units"), 8)
SIZES = {
    **MODEL_SIZES,
    "epochs": 1,
    "vocabulary_size": 400,
    "train": 60,
    "steps_per_epoch": 2,
    "minutes": 0.01,
}
FLAGS = {
    "train": [
        *(f"--{name}={size}" for name, size in MODEL_SIZES.items()),
        *("--epochs=1", "--source_vocabulary_size=400", "--target_vocabulary_size=400"),
    ],
    "select": ["--pairs=10"],
    "ensembles": ["--reversed=r1,r2"],
}
# The folder of a model in code and commands.
MODEL = re.compile(r"[\"'=, ](model\d?|forward|r\d)[\"'/, \n]")
# Other programs that pages may call; they are never run.
PROGRAMS = {"curl", "docker", "eval", "jq", "make", "pip", "python", "split", "taskset", "xdg-open"}


class Block(NamedTuple):
    """A block of a page; `reason` says why it is not run, or is None."""

    name: str
    language: str
    text: str
    reason: str | None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            f"{page.name}:{text.count(chr(10), 0, block.start('text')) + 1}",
            *block.group("language", "text", "reason"),
        )
        for block in BLOCK.finditer(text)
    ]


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a shell block, without comments."""
    for line in text.replace("\\\n", " ").split("\n"):
        words = shlex.split(line, comments=True)
        while words and words[0] in ("do", "then"):
            words = words[1:]
        if words and words[0] not in ("for", "done"):
            yield words


every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
every_page_of_the_site = pytest.mark.parametrize(
    "page", SITE, ids=lambda page: str(page.relative_to(REPOSITORY))
)
with_python = pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.language == "python" for block in blocks_of(page))],
    ids=lambda page: page.stem,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """The files that the pages name."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, train=96, dev=6, test=6, max_words=6)
    for language in ("en", "fr"):
        for name, copy in (("train", "all"), ("dev", "mine")):
            shutil.copy(folder / f"{name}.{language}", folder / f"{copy}.{language}")
    for program in ("moses", "other"):
        shutil.copy(folder / "test.fr", folder / f"{program}.out.fr")
    references = enumerate((folder / "test.fr").read_text("utf-8").splitlines())
    lists = (f"{number} ||| {line} ||| f= -1 ||| -1" for number, line in references)
    write_lines(folder / "moses.nbest", lists)
    for name in ("dictionary.tsv", "terms.tsv"):
        write_lines(folder / name, ["queen\treine"])
    write_lines(folder / "test.links", ["0-0"] * 6)
    return folder


@pytest.fixture(scope="module")
def models(corpus, tmp_path_factory) -> Path:
    """The models that the pages name."""
    folder = tmp_path_factory.mktemp("models")
    train = ["train", f"--data_dir={corpus}", "--train_source=train.en"]
    train += ["--train_target=train.fr", f"--model_dir={folder / 'model'}"]
    assert main([*train, "--recipe=paper", *FLAGS["train"]]) == 0
    for name in ("model1", "model2", "forward"):
        shutil.copytree(folder / "model", folder / name)
    translator = Translator.load(folder / "model")
    translator.source_text.reverse = True
    for name in ("r1", "r2", "r3", "r4", "r5"):
        translator.save(folder / name)
    return folder


@pytest.fixture
def prepare(request, corpus, tmp_path, monkeypatch) -> Callable[[Path, str], list[Block]]:
    """Makes the files that a page's blocks of a language need; returns these.

    If the page trains a model itself, that model is not made.
    """

    def prepare_page(page: Path, language: str) -> list[Block]:
        blocks = [
            block for block in blocks_of(page) if block.language == language and not block.reason
        ]
        shutil.copytree(corpus, tmp_path, dirs_exist_ok=True)
        if any(MODEL.search(block.text) for block in blocks):
            models = request.getfixturevalue("models")
            shutil.copytree(models, tmp_path, dirs_exist_ok=True)
        trains = "bahdanau-tf train --model_dir=model "
        if trains in page.read_text(encoding="utf-8"):
            shutil.rmtree(tmp_path / "model", ignore_errors=True)
        if page.stem == "groundhog":
            write_groundhog(tmp_path)
        monkeypatch.chdir(tmp_path)
        # Set for the processes that commands start.
        package = Path(bahdanau_tf.__file__).parents[1]
        monkeypatch.setenv("PYTHONPATH", str(package))
        return blocks

    return prepare_page


def write_groundhog(folder: Path) -> None:
    """Writes a parameter file and vocabularies in the format of GroundHog."""
    import pickle

    import numpy as np

    from bahdanau_tf.models import RNNSearch, groundhog

    model = RNNSearch(9, 9, 4, 3, 4, 2)
    arrays = {}
    for weight, names, is_transposed in groundhog.named_weights(model):
        value = weight.numpy().T if is_transposed else weight.numpy()
        parts = np.split(value, len(names), axis=-1)
        arrays.update(zip(names, parts, strict=True))
    np.savez(folder / "search_model.npz", **arrays)
    for language, text in (("en", "the queen sleeps"), ("fr", "la reine dort")):
        ids = {word: number for number, word in enumerate(text.split(), 2)}
        (folder / f"vocab.{language}.pkl").write_bytes(pickle.dumps(ids, protocol=2))


def small(text: str) -> str:
    """Python code with the sizes of a test."""
    for name, size in SIZES.items():
        text = re.sub(rf"\b{name}=[\d.]+", f"{name}={size}", text)
    return text


@pytest.mark.slow
@with_python
def test_python_blocks_run(page, prepare):
    blocks = prepare(page, "python")
    run_blocks((block.name, small(block.text)) for block in blocks)


def test_python_blocks_of_the_readme_run_with_a_stand_in_for_the_update(prepare, monkeypatch):
    monkeypatch.setattr(update, "train_step", stand_in_step)
    search_eagerly(monkeypatch, max_length=3)
    test_python_blocks_run(PAGES[0], prepare)


@pytest.mark.slow
@every_page
def test_shell_blocks_run(page, prepare):
    for block in prepare(page, "sh"):
        for words in commands(block.text):
            assert run_command(words) == 0, (block.name, words)


def run_command(words: list[str]) -> int:
    """Runs one command of this package, as a shell would."""
    output = None
    if ">" in words:
        *words, _, output = words
    if "<" in words:
        *words, _, name = words
        words.append(f"--input={name}")
    program, command, *flags = words
    if program != "bahdanau-tf":
        raise ValueError(f"{program} is run: mark its block as not run")
    if any(flag.startswith("--init_from") for flag in flags):
        flags.append("--epochs=1")  # the sizes are those of that model
    else:
        unused = "--target_vocabulary" if "--joint" in flags else "--none"
        flags += [flag for flag in FLAGS.get(command, []) if not flag.startswith(unused)]
    if output is None:
        return main([command, *flags])
    with open(output, "w", encoding="utf-8") as file, redirect_stdout(file):
        return main([command, *flags])


@every_page
def test_commands_flags_and_files_exist(page):
    for block in blocks_of(page):
        if block.language in ("sh", "bash"):
            for words in commands(block.text):
                check_command(block.name, words)


def check_command(name: str, words: list[str]) -> None:
    program, *rest = words
    if program == "bahdanau-tf":
        if not rest[0].startswith("-"):
            check_flags(name, *rest)
        return
    assert program in PROGRAMS, (name, words)
    if program == "make":
        makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
        for target in (word for word in rest if "=" not in word):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), name
    for word in rest:
        path = word.partition("=")[2] or word
        if path.endswith((".py", ".yml")):
            assert (REPOSITORY / path).is_file(), (name, path)


def check_flags(name: str, command: str, *words: str) -> None:
    assert command in COMMANDS, (name, command)
    flags = defined_flags(command)
    for word in words:
        if word.startswith("--"):
            flag = word[2:].partition("=")[0]
            assert flag in flags or flag.removeprefix("no") in flags, (name, word)
    line = " ".join(words)
    if command == "train" and "--flagfile" not in line and "$" not in line:
        parse_with_recipe("train", [*words], flags)
        _ = asked(flags).chosen(TYPICAL).recipe  # raises if the model does not use a flag


@every_page_of_the_site
def test_linked_files_and_headings_exist(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([\w-]*))?\)", text):
        if target.startswith("https://"):
            continue
        path = page.parent / target if target else page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings]
            assert anchor in anchors, (target, anchor)


@every_page_of_the_site
def test_files_in_the_text_exist(page):
    """Paths such as `bahdanau_tf/x.py` or `text/x.py` between backticks."""
    text = page.read_text(encoding="utf-8")
    folders = "bahdanau_tf|benchmarks|colab|docs|export|tests"
    for path in re.findall(rf"`((?:{folders})/[\w/.]*(?<!NAME)|\w+/[\w/]+\.py)`", text):
        assert any((folder / path).exists() for folder in (REPOSITORY, PACKAGE)), path


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda page: page.stem)
def test_a_translated_readme_has_the_blocks_and_figures_of_the_english_one(page):
    blocks, figures = zip(*map(blocks_and_figures, (PAGES[0], page)), strict=True)
    assert blocks[0] == blocks[1]
    assert figures[0] == figures[1]


def blocks_and_figures(page: Path) -> tuple[list[tuple[str | None, ...]], list[str]]:
    """The blocks of a page without their names, and the decimal numbers of its text."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    blocks = [block[1:] for block in blocks_of(page)]
    blocks[0] = (re.sub(r'"[^"]*"|#.*', "", blocks[0][1]),)
    return blocks, sorted(re.findall(r"\d+\.\d+", text))


@pytest.mark.parametrize(
    ("folder", "paths"),
    [(REPOSITORY, [*PAGES[1:], *TRANSLATED]), (FOLDER, NOTEBOOKS)],
    ids=["pages", "notebooks"],
)
def test_a_readme_links_to_every_page_and_notebook(folder, paths):
    text = (folder / "README.md").read_text(encoding="utf-8")
    for path in paths:
        assert f"({path.relative_to(folder).as_posix()})" in text, path


def test_the_readme_is_short():
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 150


def test_notebooks_name_notebooks_that_exist():
    names = {path.stem for path in NOTEBOOKS}
    for path in NOTEBOOKS:
        for cell in read_notebook(path)["cells"]:
            assert {*re.findall(r"`(\d\d_\w+)`", source(cell))} <= names, path.name
