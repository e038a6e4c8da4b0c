"""`true_cased`: only lines in capitals are changed, to sentence case."""

import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from bahdanau_tf.serving.export import CORE_OPS, TEXT_OPS
from bahdanau_tf.text import SubwordTokenizer, WordTokenizer, load_text
from bahdanau_tf.text.words import true_cased

PLAIN = [
    "",
    "\0",
    "NATO",
    "A B C.",
    "J. R. R. TOLKIEN",
    "U.S. NAVY",
    "The NEW HOUSE",
    "the BIG house",
    "\u01c5 BIG HOUSE",  # a title-case letter
    "DEN\u0130Z VE KARA",  # the lower case has three bytes
    "3 \u212a UND MEHR",  # the Kelvin sign has three bytes, k has one
    "A BIG\0 HOUSE",
    b"A BIG \xff HOUSE",
    "日本 한국",
]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A BIG DOG.", "A big dog."),
        ("¿DÓNDE ESTÁ EL PERRO?", "¿Dónde está el perro?"),
        ("“DON'T STOP\u202fNOW!”", "“Don't stop\u202fnow!”"),
        ("1990 WAS GOOD", "1990 was good"),
        ("ПРИВЕТ, МИР", "Привет, мир"),
        (  # Deseret, beyond U+FFFF
            "\U00010400\U00010401 \U00010402\U00010403",
            "\U00010400\U00010429 \U0001042a\U0001042b",
        ),
        ("E\u0301COLE FERME\u0301E", "E\u0301cole ferme\u0301e"),
    ],
)
def test_lines_in_capitals_become_sentences(text, wanted):
    assert true_cased(tf.constant([text])).numpy()[0].decode() == wanted


def test_other_lines_do_not_change():
    strings = tf.constant(PLAIN)
    assert true_cased(strings).numpy().tolist() == strings.numpy().tolist()
    assert true_cased(strings[:0]).shape == 0


@given(st.lists(st.text(st.characters(categories=["Lu", "M", "Zs"]))))
@settings(max_examples=50)
def test_each_character_keeps_its_length_in_bytes(texts):
    strings = tf.constant(texts, tf.string)
    for text, result in zip(texts, true_cased(strings).numpy(), strict=True):
        pairs = list(zip(text, result.decode(), strict=True))
        assert all(len(a.encode()) == len(b.encode()) for a, b in pairs)
        assert all(b in (a, a.lower()) or a in "\u03a3" for a, b in pairs)


@pytest.fixture(scope="module", params=["word", "bpe"])
def learn(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text(20 * "A big dog sells the umbrella.\n", "utf-8")
    if request.param == "word":
        return lambda **options: WordTokenizer.train([path], 20, **options)
    return lambda **options: SubwordTokenizer.train([path], 290, **options)


def test_ids_equal_those_of_the_sentence(learn):
    texts = ["A BIG DOG  SELLS THE UMBRELLA.", "NATO", *PLAIN]
    tokenizer, plain = learn(true_case=True), learn()
    ids = plain.tokenize(["A big dog  sells the umbrella.", *texts[1:]])
    assert tokenizer.tokenize(texts).to_list() == ids.to_list()
    assert tokenizer.unk_id not in ids.to_list()[0]
    words, starts, ends = tokenizer.tokenize_with_offsets(texts)
    assert b"".join(words.to_list()[0]).replace(b" ", b"") == (b"ABIGDOGSELLSTHEUMBRELLA.")
    for text, row, first, last in zip(
        tf.constant(texts).numpy(), *(x.to_list() for x in (words, starts, ends)), strict=True
    ):
        assert row == [text[a:b] for a, b in zip(first, last, strict=True)]


def test_true_case_is_saved_and_loaded(learn, tmp_path):
    for true_case in (True, False):
        learn(true_case=true_case).save(tmp_path)
        assert load_text(tmp_path).true_case is true_case


@pytest.mark.parametrize("name", ["train.en", "train.fr"])
def test_multi30k_does_not_change(shared, name):
    lines = shared(f"data/multi30k/{name}").read_bytes().split(b"\n")
    assert true_cased(tf.constant(lines)).numpy().tolist() == lines


def test_graphs_have_only_ops_of_stock_servers(learn):
    tokenizer = learn(true_case=True, lowercase=True)
    graph = tf.function(
        lambda strings: (
            tokenizer.detokenize(tokenizer.tokenize(strings)),
            tokenizer.tokenize_with_offsets(strings)[0].values,
        ),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )
    definition = graph.get_concrete_function().graph.as_graph_def()
    bodies = (definition.node, *(x.node_def for x in definition.library.function))
    assert {node.op for nodes in bodies for node in nodes} <= CORE_OPS | TEXT_OPS
