"""The page that translates by itself: in Node as `Translator`, in Chromium without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from engines import LINES, MODELS, TEXT, in_node, on_node, subwords as translator
from refusals import refused
from toys import english, french, toy_translator

from bahdanau_tf import SubwordTokenizer, Translation, Translator, beam_tree, trace
from bahdanau_tf.commands import main as cli
from bahdanau_tf.runtime.page import ENGINE, HTML, joined, page_of, read
from bahdanau_tf.translation.capitals import names_alone, readings
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.sentence_splitting import (
    ABBREVIATIONS,
    CANDIDATE,
    FRAMES,
    LISTED,
    NUMBERING,
    pieces_of,
    split_sentences,
)

pytestmark = pytest.mark.usefixtures("eager_search")
pytest.importorskip("tensorflow_text", reason="needs tensorflow-text")

TOKENIZERS = {
    "BPE": {"vocabulary_size": 330},
    "BPE, reversed": {"vocabulary_size": 330, "reverse": True, "true_case": True},
    "unigram": {"vocabulary_size": 310, "model_type": "unigram", "lowercase": True},
    "unigram, NFKC": {
        **{"vocabulary_size": 50, "model_type": "unigram", "normalization": "nmt_nfkc_cf"},
        "byte_fallback": False,
    },
    "characters": {"vocabulary_size": 330, "model_type": "char"},
    "characters, NFD": {"vocabulary_size": 330, "model_type": "char", "normalization": "nfd"},
    "between spaces": {"vocabulary_size": 270, "model_type": "space", "byte_fallback": False},
    "BPE, identity": {"vocabulary_size": 70, "normalization": "identity", "byte_fallback": False},
}
READ = Habits(
    vocabulary="a abc b big cat don ete i in is it my not of s sees t that the to tom was you été",
    capitals="ABC Anna B Big_Cat I Oslo Tom été",
    begins=True,
    translated="Anna Tom",
    counterparts={"Anna": "\u30a2", "Oslo": "oslo", "Zorb": "zorb \u30a3", "Lee": "\u4eac"}
    | {"Kim": "\uae40", "Spain": "\u30b9", "Spanish": "\u30b9", "Joe": "4"},
    spellings={"mia": "ミア", "lee": "リー", "tom": "トム"},
    languages=["en", "ja"],
)
SENTENCES = ["the red cat.", "", "\u200b", "un", "a dog é猫 sleeps", "x x x x"]
DEV = sorted(Path(__file__).parents[3].glob("shared/data/*/dev.??"))


def odd_rows(count: int) -> list[str]:
    ranges = ((32, 127), (0xA0, 0x180), (0x300, 0x330), (0x1100, 0x1200), (0xAC00, 0xAC40))
    ranges += ((0x3040, 0x3100), (0x590, 0x6FF), (0xFF00, 0xFFEF), (0x1F600, 0x1F640))
    kinds = [[*map(chr, range(*codes))] for codes in ranges]
    kinds += [list(" \t\n\u3000\u00a0\u2028\u200b\u200d\ufeff\u2581\0\u00ad"), LINES]
    kinds += [["ABC", "THE BIG", "<0x41>", "[END]", "ﬁ", "Ⅷ", "İ", "ß", "Σ", "e\u0323\u0302"]]
    kinds += [[*"\"'“”«»()[]*_-:", "Don't", "Tom: ", "A big b. ", "\n"]] * 3
    kinds += [[*'aA1 .!?…。！"»)「」', "Mr. ", "No. ", "U.S. ", "p.m. ", " J. ", "a? ", "é! B"]] * 3
    rows = ["", " ", "A BIG DOG.", "ÉTÉ À PARIS!", "THE İSTANBUL", "\0", "▁▁a", "x" * 999]
    rows.append("A" * 2500 + " 1" * 1250)  # slow for a pattern that tries every split
    while len(rows) < count:
        chosen = random.choices(kinds, k=random.randint(1, 4))
        length = random.randint(1, 30)
        rows.append("".join(random.choice(random.choice(chosen)) for _ in range(length)))
    return rows


def test_the_page_splits_by_the_rules_of_the_package():
    script = re.sub(r'" \+\s*"|`,\s*String\.raw`', "", read("sentences.js"))
    ends = CANDIDATE.pattern.replace("(?P<", "(?<").replace(r"\s", r"[^\S\ufeff]")
    assert f"String.raw`{ends}`" in script
    listed = LISTED.pattern.replace(r"\s", r"[^\S\ufeff]").replace(r"(?=\S)", r"(?=[\S\ufeff])")
    assert f"String.raw`^{listed}`" in script
    assert json.dumps(" ".join(FRAMES), ensure_ascii=False) in script
    for words in (ABBREVIATIONS, NUMBERING):
        assert f'"{" ".join(sorted(words))}"' in script


@pytest.mark.parametrize("name", TOKENIZERS)
def test_ids_and_offsets_are_those_of_tensorflow_text(tmp_path, name):
    text = SubwordTokenizer.train([LINES], **TOKENIZERS[name])
    rows = odd_rows(400)
    rows += [x for path in DEV for x in path.read_text("utf-8").split("\n")[:300]]
    rows += [case(x) for case in (str.title, str.lower, str.upper) for x in rows[-300:]]
    rows += ["Cat", "big.", "TOM", "Don\u2019t", "tom's cat", "The Cat Sees A_1 İ", "2 a. Big cat"]
    rows += ["i see the big cat", "The BIG CAT is Big cat", "anna", "Anna!", "Tom", "Tom Anna"]
    rows += ["OSLO", "tom-oslo.", "Zorb", "zorb", "Zorb O'Brien", "Tom Big", "Tom 3", "TOM a@b.c"]
    rows += ["Lee", "Lee.", "Kim", "Spain", "Spanish!", "Joe", "Mia", " mia  Lee!", "Mia Joe"]
    read = text.tokenize(rows)
    ids, written = read.to_list(), text.detokenize(read).numpy()
    starts, ends = (x.to_list() for x in text.tokenize_with_offsets(rows)[1:])
    page = page_of(translator(text, text, None).graph, habits=READ)
    results = in_node(page, tmp_path, read=True, texts=rows)
    for row, result in enumerate(results):
        assert result["ids"] == ids[row], ascii(rows[row])
        assert result["sentences"] == split_sentences(rows[row]), ascii(rows[row])
        if rows[row] == rows[row].strip() != "":
            assert [*map(tuple, result["pieces"])] == pieces_of(rows[row]), ascii(rows[row])
        assert result["forms"] == readings(rows[row], READ), ascii(rows[row])
        assert result["names"] == names_alone(rows[row], READ), ascii(rows[row])
        places = [*map(list, zip(starts[row], ends[row], strict=True))]
        assert result["offsets"] == places, ascii(rows[row])
        assert result["written"]["text"] == written[row].decode(), ascii(rows[row])


def test_a_page_of_the_pretrained_model(tmp_path, capsys):
    own = Translator.from_preset("tatoeba-en-fr")
    own.memory = {}  # a page has none
    path = tmp_path / "page.html"
    assert cli.main(["page", "--model_dir=tatoeba-en-fr", f"--output={path}"]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    html = path.read_text("utf-8")
    assert len(html) < 8e6
    texts = ["I am happy.", "Where is the station?", "The cat sleeps."]
    results = in_node(html, tmp_path, texts=texts, options={"beam_size": 2, "n_best": 1})
    for x, result in zip(own.translate(texts, beam_size=2), results, strict=True):
        (best,) = result["translations"]
        assert best["text"] == x.text
        assert best["offsets"] == [*map(list, x.target_offsets)]
    texts = ["a" * 3000, "a" * 127]  # a token each
    long, short = in_node(html, tmp_path, texts=texts, options={"beam_size": 1, "n_best": 1})
    assert long["truncated"]
    assert len(long["offsets"]) == len(short["offsets"]) == 127
    assert long["translations"] == short["translations"]


# Products of a matrix of bytes, and their softmax.
PRODUCT = """
import { readFileSync } from "node:fs";
const { weights, scales, bias, vectors, rows } = JSON.parse(readFileSync(process.argv[2]));
const outputs = weights.length, inputs = weights[0].length;
const bytes = new Uint8Array(outputs * (inputs + 8));
new Float32Array(bytes.buffer, 0, 2 * outputs).set([...scales, ...bias]);
new Int8Array(bytes.buffer, 8 * outputs).set(weights.flat());
const shape = [outputs, inputs], shapes = { matrix: shape, keys: shape, terms: shape };
const { buffer, start, compiled } = await placed(bytes, shapes);
const matrix = {
  weights: new Int8Array(buffer, start + 8 * outputs), inputs, outputs, compiled,
  scales: new Float32Array(buffer, start, outputs),
  bias: new Float32Array(buffer, start + 4 * outputs, outputs),
};
const results = [undefined, vectors.map(() => 3)].map((x) => product(vectors, matrix, rows, x));
console.log(JSON.stringify([!!compiled, results.map((all) => all.map((x) => [...x]))]));
"""


@pytest.mark.parametrize("shape", [(9, 5), (7, 5000), (12, 16)])
def test_products_in_webassembly_are_those_of_numpy(tmp_path, shape):
    rng = np.random.default_rng(7)
    weights, vectors = rng.integers(-63, 64, shape), rng.normal(size=(7, shape[1]))
    weights[1], vectors[1] = 63, 1.0  # the largest sum
    vectors[2] = 0.0
    scales, bias = rng.uniform(0, 0.1 / shape[1], (2, shape[0]))
    rows = [0, 1, 1, 6, 3]
    arrays = {"weights": weights, "scales": scales, "bias": bias, "vectors": vectors}
    task = {name: array.tolist() for name, array in arrays.items()} | {"rows": rows}
    script, data = tmp_path / "a.mjs", tmp_path / "a.json"
    script.write_text(joined(*ENGINE) + PRODUCT, "utf-8")
    data.write_text(json.dumps(task), "utf-8")
    is_compiled, (products, logs) = json.loads(on_node(script, data))
    assert is_compiled
    wanted = (vectors @ (weights * scales[:, None]).T + bias)[:, rows]
    np.testing.assert_allclose(products, wanted, atol=1e-4 * abs(wanted).max())
    shares = np.exp(wanted)
    wanted = np.log(shares / shares.sum(1, keepdims=True) / 3)
    np.testing.assert_allclose(logs, wanted, atol=1e-3)


def test_a_page_without_webassembly_translates_with_its_scripts(tmp_path):
    """They give the results of Python. In WebAssembly features are rounded to 16 bits."""
    html = page_of(translator(maxout_units=5, step_order="conditional").graph)
    task = {
        "texts": SENTENCES,
        "options": {"beam_size": 12, "n_best": 12, "max_length": 7, "shortlist": True},
    }
    results = in_node(html, tmp_path, **task)
    plain = in_node(html, tmp_path, **task, plain=True)
    assert results != plain  # they are not computed in the same way
    for x, y in zip(results, plain, strict=True):
        for first, second in zip(x["translations"], y["translations"], strict=True):
            assert first["text"] == second["text"]
            assert first["score"] == pytest.approx(second["score"], abs=1e-3)


def test_the_products_of_the_page_are_compiled_from_their_source(tmp_path):
    root = Path(__file__).parents[2]
    if not (root / ".venv-wasm" / "installed").exists():
        pytest.skip("needs .venv-wasm, which `make wasm` creates")
    again = tmp_path / "products.wasm"
    command = ["make", "-s", "-o", ".venv-wasm/installed", "wasm", f"WASM={again}"]
    subprocess.run(command, cwd=root, check=True)
    assert again.read_bytes() == (HTML / "products.wasm").read_bytes()


# What the lines of docs/serve.md need of a browser, before and after them.
BROWSER = """
import {{ readFileSync }} from "node:fs";
globalThis.fetch = async (name) => new Response(readFileSync(new URL(name, import.meta.url)));
const elements = {{ text: {{}}, translation: {{}} }};
globalThis.document = {{ getElementById: (id) => elements[id] }};
{}
await elements.text.onchange({{ target: {{ value: process.argv[2] }} }});
console.log(elements.translation.textContent);
"""


def test_a_page_of_ones_own_translates_with_the_module(tmp_path):
    own = Translator.from_preset("tatoeba-en-fr")
    own.memory = {}  # a page has none
    folder = own.page(tmp_path / "app", module=True)
    types = (folder / "translator.d.mts").read_text("utf-8")
    exported = set(re.findall(r"^export function (\w+)", types, re.MULTILINE))
    assert "export {{ {} }};".format(", ".join(sorted(exported))) in (
        folder / "translator.mjs"
    ).read_text("utf-8")
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text("utf-8")
    (lines,) = re.findall(r'<script type="module">\n(.*?)</script>', page, re.DOTALL)
    (folder / "app.mjs").write_text(BROWSER.format(lines), "utf-8")
    text = "Where is the station?"
    assert on_node(folder / "app.mjs", text).decode() == own.translate(text).text + "\n"


DOUBTED = [
    "I am happy.",
    "Zo\xeb, asdfgh qwertz m\xfcde \U0001f382!",
    "He said \u201cno\u201d.",
    "Open x_1.csv at http://a.org/?b=c",
    "There are 347 books.",
    "14,000 at 9:45",
    "I arrived at 10 p.m. on March 14, 1987 with 6 of 9 men.",
    "\uc548\ub155 \uff41b \u201cno\u201d \u263a",
    "",
    "\xa0x",
    "\ufeffI a\xadm at the cafe\u0301\u200b.",
    "He said \u201cStop\u201d to Zs\xf3fia\u2019s dog in London. Well, the bus, the xylograph.",
    "The Lord Of The Rings",
    "I saw the Xylograph in Rene\u0301\u2019s hotel, OK?",
    "I am Barbara Schmidt.",
    "It is 6 in March.",
    "3 of 10 on the 4th",
    "2 p.m. 3\u65e5",
    "9 \uff13\u67088",
    "The \u732b\u306fcat\u304c, \u30ab\u30d5\u30a7Oslo Tom\uc740",
    "Visit https://a.org for more.",
    "Visit Visit Oslo",
    "Hello Visit",
    "Mail me@firm.org {cat} a_b.pdf, %s cat",
    "Hello! \U0001f600 ?",
    "Hello \U0001f382.",
    "Mr.",
    "London.",
    "https://a.org.",
    "Go! Go! Go! Go!",
    "One. Two. Three. Four.",
    "very " * 30,
    "no no no",
    "very, very, very good",
    "Tom is here.",
    "A cat. A dog? No.",
    "It's 5 p.m. Tom has 3 kg of a_b.pdf.",
    "1000000000000000",
    "\u0663\u0664\u0667 cats, \U00020bb7 \xd7 3\xd74",
    'A cat. "A dog."',
]


def check_doubts(own: Translator, texts: list[str], options: dict, folder: Path) -> set[str]:
    """Compares a page with Python; returns the kinds of doubts."""
    kinds = set()
    html = page_of(own.graph, int8=False, habits=own.habits)
    rows = in_node(html, folder, texts=texts, options=options)
    for x, row in zip(own.translate(texts, **options, split_sentences=False), rows, strict=True):
        assert [(y["kind"], str(y["detail"])) for y in row["doubts"]] == [*map(tuple, x.doubts)]
        assert row.get("confidence") == pytest.approx(x.confidence, abs=1e-3)
        assert "\u200b" not in x.source or "characters" not in {doubt.kind for doubt in x.doubts}
        kinds.update(doubt.kind for doubt in x.doubts)
    return kinds


def test_the_doubts_of_a_page_are_those_of_python(tmp_path):
    own = Translator.from_preset("tatoeba-en-fr")
    own.memory = {}  # a page has none
    counterparts = {"March": "mars", "6": "6 six", "very": "tr\u00e8s", "Tom": "x"}
    own.habits = Habits(
        longest=9,
        kept="bus table",
        vocabulary="a and cat dog i is it my name of the to where you",
        translated="London",
        replaced="visit hello",
        counterparts=counterparts,
        ends=True,
    ).measured(np.linspace(-8, -1, 400), [*range(2, 12)] * 40, [0.4])
    options = {"beam_size": 2, "n_best": 1, "max_length": 12}
    kinds = check_doubts(own, DOUBTED, options, tmp_path)
    own.habits = replace(own.habits, changed=("number", "code"))
    changed = {"number", "added", "code"}
    assert not changed & check_doubts(own, DOUBTED, options, tmp_path)
    own.habits = replace(own.habits, is_short=True)
    assert {"end", "number"} < kinds - check_doubts(own, DOUBTED, options, tmp_path)
    every = "characters words number code cut long unlikely untranslated dropped end sentences"
    assert kinds >= {*every.split()}


def test_a_page_takes_the_reading_that_python_takes(tmp_path):
    """It depends on what training replaces."""
    own = Translator.from_preset("tatoeba-en-fr")
    own.memory = {}  # a page has none
    texts = ["Ten Tips for Better Sleep", "Hi Bill", "UMBRELLA", "Umbrella", "The Little Cat"]
    options = {"beam_size": 2, "n_best": 1, "max_length": 20}
    seen = []
    for replaced in (own.habits.replaced, "bill"):
        own.habits = replace(own.habits, replaced=replaced)
        html = page_of(own.graph, int8=False, habits=own.habits)
        rows = in_node(html, tmp_path, texts=texts, options=options)
        translations = own.translate(texts, **options, split_sentences=False)
        assert [row["translations"][0]["text"] for row in rows] == [x.text for x in translations]
        seen.append([x.text for x in translations])
    assert seen[0] != seen[1]


def test_a_source_that_is_read_in_part_is_doubted(tmp_path):
    """Although the translation is finished."""
    own = Translator.from_preset("tatoeba-en-fr")
    own.memory = {}  # a page has none
    html = page_of(own.graph, int8=True, habits=own.habits)
    long = f"Hello {'very ' * 140}much."
    options = {"beam_size": 1, "n_best": 1, "max_length": 400}
    (row,) = in_node(html, tmp_path, texts=[long], options=options)
    assert row["truncated"]
    assert {"cut", "end"} & {doubt["kind"] for doubt in row["doubts"]} == {"cut"}


@pytest.mark.parametrize("name", ["original", "appendix", "main-text", "conditional"])
def test_the_steps_and_the_tree_of_a_page_are_those_of_python(tmp_path, name):
    own = MODELS[name]()
    html = page_of(own.graph, int8=False)
    texts = ["the red cat sleeps.", "a dog é猫 sleeps", ""]
    options = {"beam_size": 4, "shrink": name == "original", "n_best": 2}
    results = in_node(html, tmp_path, texts=texts, options={**options, "inside": True})
    for text, result in zip(texts, results, strict=True):
        tree, pages = beam_tree(own, text, **options), result["inside"]["tree"]
        for level, row in zip(tree.steps, pages, strict=True):
            for x, y in zip(level, row, strict=True):
                wanted = (x.token, x.parent, x.cut, x.is_best)
                assert (y["token"], y["parent"], y["cut"], y["isBest"]) == wanted
                assert y["logProb"] == pytest.approx(x.log_prob, abs=1e-4)
                assert y.get("score") == pytest.approx(x.score, abs=1e-4)
    weights = own.translate(texts[0], beam_size=1).weights
    weights[1] = np.roll(weights[1], 2)  # as if step 1 attended to other words
    forced = {} if own.target_text.reverse else {"attention": {1: weights[1]}}
    rows = {i: row.tolist() for x in forced.values() for i, row in x.items()}
    options = {"attention": rows, "beam_size": 3, "n_best": 1, "inside": True}
    (result,) = in_node(html, tmp_path, texts=texts[:1], options=options)
    own.decoding = replace(own.decoding, beam_size=3)
    assert result["translations"][0]["text"] == own.translate(texts[0], **forced).text
    steps = trace(own, texts[0], **forced).steps
    for x, y in zip(steps, result["inside"]["steps"], strict=True):
        assert y["token"] == x.token
        assert y["probability"] == pytest.approx(x.probability, abs=1e-5)
        for theirs, ours in zip(y["candidates"], x.candidates, strict=True):
            assert theirs["token"] == ours.token
            assert theirs["probability"] == pytest.approx(ours.probability, abs=1e-5)
        np.testing.assert_allclose(y["weights"], x.weights, atol=1e-5)
        assert y["gates"] == pytest.approx({k: g.mean for k, g in x.gates.items()}, abs=1e-5)


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        self.texts.setdefault(attributes.get("type") or tag, data)


def test_the_page_loads_nothing_and_writes_no_html():
    own = translator()
    html = page_of(own.graph, "</script><script>alert(1)</script><img src=x>")
    elements = Elements(html)
    assert [tag for tag, _ in elements.tags].count("script") == 2
    assert not any({"src", "action"} & {*attributes} for _, attributes in elements.tags)
    assert [x.get("href") for _, x in elements.tags if "href" in x] == ["data:,"]
    (policy,) = (x["content"] for _, x in elements.tags if "http-equiv" in x)
    assert policy.startswith("default-src 'none'; connect-src 'none'; ")
    assert re.findall(r"\S*unsafe\S*", policy) == ["'wasm-unsafe-eval';"]
    for tag in ("module", "style"):
        digest = hashlib.sha256(elements.texts[tag].encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy
    # What puts text in as HTML, runs text or connects.
    assert not re.findall(
        r"\.(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|\bfetch\(|"
        r"XMLHttpRequest|WebSocket|EventSource|sendBeacon|\bimport\b|://|url\(|@import",
        elements.texts["module"] + elements.texts["style"],
    )


def test_what_the_page_lacks_is_refused(tmp_path, capfd):
    refused(
        lambda: page_of(toy_translator(english(), french()).graph),
        "tokenizer is WordTokenizer",
        "page",
    )
    for flag in ("--average=probability", "--model_dir=a,b"):
        assert cli.main(["page", "--model_dir=a", f"--output={tmp_path}/page.html", flag]) == 2
    assert "page: --model_dir has 2 folders, wanted one per page\n" in capfd.readouterr().err
    module = "--format=module", f"--output={__file__}"
    assert cli.main(["page", "--model_dir=tatoeba-en-fr", *module]) == 2
    assert f"--output: {__file__} is a file, wanted a folder" in capfd.readouterr().err
    assert cli.main(["page", "--help"]) == 0
    assert not re.search("--(sampling|average|no_repeated|dictionary)", capfd.readouterr().out)


def texts_of(page, selector: str) -> list[str]:
    every = f"document.querySelectorAll({json.dumps(selector)})"
    return page.evaluate(f"[...{every}].map((x) => x.textContent)")


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> tuple[Translator, str]:
    """A small model whose page opens at once, and the page's address."""
    own = translator(TEXT, TEXT, None)
    return own, own.page(tmp_path_factory.mktemp("toy") / "page.html").as_uri()


def test_a_page_translates_what_is_typed_and_its_address_has(page, toy):
    own, url = toy

    def open_anew() -> None:
        page.open(url)
        page.wait_for("document.querySelector('h1').textContent")

    open_anew()
    page.evaluate("document.querySelector('#text').focus()")
    page.call("Input.insertText", text="the red cat.")
    page.wait_for("document.querySelector('#spoken').textContent")
    assert texts_of(page, "#spoken") == [own.translate("the red cat.", beam_size=5).text]
    page.evaluate("location.hash = '100%25%20red'")
    page.wait_for("document.querySelector('.source')?.textContent == '100% red[END]'")
    page.evaluate("location.hash = 'a%20100% cat'")
    page.wait_for("document.querySelector('.source').textContent == 'a 100% cat[END]'")
    enter(page, "#language", "ko", "onchange")
    open_anew()
    assert page.evaluate("document.documentElement.lang") == "ko"
    page.evaluate("localStorage.clear()")
    open_anew()
    submit(page, "a\n" * 26_000)
    assert texts_of(page, "#error") == ["Only the first 50,000 characters are translated."]
    open_anew()  # ends that translation


def test_letters_are_pointed_at_one_by_one_with_their_marks(page, tmp_path):
    lines = ["각 e\u0330 ab"] * 9
    source = SubwordTokenizer.train([lines], 290, "char", normalization="nfd")
    own = translator(source, TEXT, None)
    page.open(f"{own.page(tmp_path / 'page.html').as_uri()}#ab 각e%CC%B0")
    page.wait_for("document.querySelector('.source')")
    assert texts_of(page, ".source .word") == ["a", "b", "각", "e\u0330", "[END]"]


def test_a_sentence_is_one_stop_of_the_tab_key(page, toy):
    page.open(f"{toy[1]}#the%20red%20cat.%20A%20red%20dog.")
    page.wait_for("document.querySelectorAll('.sentence').length == 2")
    stops = page.evaluate("document.querySelectorAll('#sentences [tabindex=\"0\"]').length")
    assert stops == 2
    page.evaluate("document.querySelector('#open').focus()")
    page.press("Tab", 9)
    assert texts_of(page, ".chosen") == texts_of(page, ".translation .word")[:1]
    page.press("ArrowDown", 40)
    page.press("Home", 36)
    for word in ("the", "red", "cat."):
        assert texts_of(page, ".chosen") == [word]
        page.press("ArrowRight", 39)
    assert texts_of(page, "#detail")
    widths = "[...document.querySelectorAll('.word')].map((x) => x.getBoundingClientRect().width)"
    assert min(page.evaluate(widths)) > 23.9
    page.press("Escape", 27)
    assert texts_of(page, ".chosen") == []
    assert page.evaluate("document.querySelector('#detail').hidden")


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> tuple[Translator, str]:
    """The pretrained model and the address of its page."""
    own = Translator.from_preset("tatoeba-en-fr")
    own.memory = {}  # a page has none
    return own, own.page(tmp_path_factory.mktemp("real") / "page.html").as_uri()


def open_panel(page, url: str) -> None:
    """Opens a page with a sentence, and shows how the first word of its translation came about."""
    page.open(f"{url}#The%20red%20cat%20sleeps.")
    page.wait_for("document.querySelector('.sentence')")
    page.evaluate("document.querySelector('.translation .word').focus()")
    page.press("Enter", 13)
    page.wait_for("document.querySelector('.steps label')")


def wait_for_translation(page, wanted: Translation) -> None:
    shown = json.dumps([wanted.text + end for end in ("", "[END]")])
    page.wait_for(f"{shown}.includes(document.querySelector('.translation').textContent)")


def click(page, selector: str, place: int = 0) -> None:
    """Clicks one of the elements, which gets the focus."""
    element = f"document.querySelectorAll({json.dumps(selector)})[{place}]"
    page.evaluate(f"(() => {{ const x = {element}; x.focus(); x.click() }})()")


def enter(page, selector: str, value: object, event: str) -> None:
    """Sets the value of an element, as a user does."""
    page.evaluate(
        f"(() => {{ const x = document.querySelector({json.dumps(selector)});"
        f"x.value = {json.dumps(value)}; x.{event}({{ target: x }}) }})()"
    )


def submit(page, text: str) -> None:
    """Types a text and presses Ctrl and Enter."""
    enter(page, "#text", text, "focus")
    page.press("Enter", 13, modifiers=2)


def test_marks_of_a_list_and_text_without_letters_stay(page, real):
    """Also what is copied, and what a screen reader says."""
    own, url = real
    text = '# 12:30\n1. "The cat sleeps."\n- (555) 123-4567\nTom: Hello.'
    page.open(f"{url}#{quote(text)}")
    page.wait_for("document.querySelectorAll('.sentence').length == 5")
    wanted = own.translate(text)
    page.wait_for(f"document.querySelector('#spoken').textContent == {json.dumps(wanted.text)}")
    marks = "[...document.querySelectorAll('.source')].map((x) => x.dataset.before)"
    assert page.evaluate(marks) == ["# ", '1. "', "- ", "", ""]
    behind = marks.replace("before", "after")
    assert page.evaluate(behind) == ["", '"', "", ":", ""]
    assert page.evaluate(behind.replace(".source", ".translation")) == ["", '"', "", " :", ""]
    click(page, "#open")  # what is not searched has no steps
    page.wait_for("document.querySelector('.best bdi')")
    assert texts_of(page, ".best bdi")[0] == own.translate("The cat sleeps.").text
    assert page.problems == []


FOCUSED = "document.activeElement.dataset.control"


def test_what_if_a_sentence_is_translated_otherwise(page, real):
    """Another word, other α, a word left out, and back: as Python translates it then."""
    own, url = real
    open_panel(page, url)
    assert texts_of(page, ".word.chosen") == texts_of(page, ".word:focus") == ["Le"]
    text = "The red cat sleeps."
    word = page.evaluate("document.querySelectorAll('.panel li button bdi')[1].textContent")
    click(page, "[data-control=word1]")
    wait_for_translation(page, own.translate(text, beam_size=5, prefixes=word))
    assert word in texts_of(page, ".changes ins")
    click(page, ".changes button")
    wait_for_translation(page, own.translate(text, beam_size=5))
    click(page, "[data-control=step1]")  # Le "chat"
    enter(page, "[data-control=weight3]", 100, "oninput")  # on "sleeps."
    first = own.translate(text)
    is_last = np.array([start >= 11 for start, _ in first.source_offsets] + [False])
    row = first.weights[1] * is_last / first.weights[1][is_last].sum()
    changed = own.translate(text, beam_size=5, prefixes="Le", attention={1: row})
    assert changed.text != first.text
    wait_for_translation(page, changed)
    click(page, ".weights button", 1)
    wait_for_translation(page, own.translate("The cat sleeps.", beam_size=5))
    (changes,) = texts_of(page, ".changes")
    assert "left out: red" in changes
    click(page, "[data-control=undo]")  # the last change alone
    wait_for_translation(page, changed)
    page.wait_for(f"{FOCUSED} == 'undo'")
    click(page, "[data-control=undo]")
    wait_for_translation(page, own.translate(text, beam_size=5))
    page.wait_for(f"{FOCUSED} == 'step1' && document.querySelector('.changes').hidden")
    assert page.problems == []


def test_what_if_words_are_left_out_in_another_search_and_language(page, real):
    """Greedy and with beams, as Python translates it then; Esc leaves the word, then the panel."""
    own, url = real
    open_panel(page, url)
    enter(page, "#search", "greedy", "onchange")
    page.wait_for("document.querySelector('#width').value == 1")
    click(page, "[data-control=cut1]")
    text = "The cat sleeps."
    wait_for_translation(page, own.translate(text, beam_size=1))
    page.wait_for(f"{FOCUSED} == 'cut1'")
    for width in (1, 12):
        enter(page, "#width", width, "oninput")
        wait_for_translation(page, own.translate(text, beam_size=width, n_best=min(width, 3)))
    enter(page, "#language", "ko", "onchange")
    assert page.evaluate("document.querySelector('[data-control=cut0]').ariaLabel") == "The 빼기"
    for left in ("cat sleeps.", "sleeps."):
        click(page, "[data-control=cut0]")
        page.wait_for(f"document.querySelector('.source').textContent == '{left}[END]'")
    page.wait_for("![...document.querySelectorAll('.weights button')].some((x) => !x.disabled)")
    page.evaluate("localStorage.clear()")
    page.evaluate("document.querySelector('.translation .word').focus()")
    boxes = "['#open', '#detail'].map((x) => document.querySelector(x).getBoundingClientRect())"
    assert page.evaluate(f"(([a, b]) => b.top >= a.bottom || b.left >= a.right)({boxes})")
    for is_open in ("true", "false"):
        assert page.evaluate("document.querySelector('#open').ariaExpanded") == is_open
        page.press("Escape", 27)
        page.press("Escape", 27)
    assert texts_of(page, ".panel") == []
    assert page.problems == []


def test_a_text_is_translated_in_a_browser_without_a_network(page, real):
    own, url = real
    page.requests.clear()
    page.call(
        "Network.emulateNetworkConditions",
        **{"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
    )
    page.open(f"{url}#I%20am%20happy.")
    page.wait_for("!document.querySelector('#result').hidden")
    wanted = own.translate("I am happy.", beam_size=5).text + "[END]"
    assert texts_of(page, ".translation") == [wanted]
    submit(page, "<b>\u732b</b>")
    page.wait_for("document.querySelector('.source').textContent.startsWith('<b>\u732b</b>')")
    assert texts_of(page, ".source b") == []
    (note,) = texts_of(page, ".note")
    assert re.search("⚠ characters that the model does not know: .*\u732b", note)
    sentences = ["I am happy.", "Where is the station?", "The cat sleeps."]
    submit(page, "".join(f"I see {n} dogs. " for n in range(99)))
    page.wait_for(
        "/ [1-9][0-9]? of 99 sentences/.test(document.querySelector('#status').textContent)"
    )
    submit(page, "{} {}\n \n{}".format(*sentences))  # the run before is aborted
    page.wait_for("document.querySelector('#status').textContent == ''")
    best = [x.text for x in own.translate(sentences, beam_size=5)]
    whole = json.dumps("{} {}\n \n{}".format(*best))
    page.wait_for(f"document.querySelector('#spoken').textContent == {whole}")
    page.evaluate("document.querySelector('#open').click()")
    page.wait_for("document.querySelector('.best bdi')")
    page.evaluate("document.querySelectorAll('.source')[1].children[0].click()")
    page.wait_for(f"document.querySelector('.best bdi').textContent == {json.dumps(best[1])}")
    (card,) = texts_of(page, "#card")
    assert "\n• chrF: " in card
    assert not re.search(r"^[#|]|`|\\", card, re.MULTILINE)
    assert [x.partition("#")[0] for x in page.requests] == [url]
    assert page.problems == []
