"""WordTokenizer: Moses' rules, inverse, offsets, vocabulary, files."""

import inspect
import json
import sys
import unicodedata
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import sacremoses
import tensorflow as tf
from comparisons import offsets_of
from hypothesis import given, settings, strategies as st
from processes import output_of
from refusals import refused

from bahdanau_tf.text import SubwordTokenizer, Vocabulary, WordTokenizer, load_text
from bahdanau_tf.text.tokenizer import Tokenizer, as_texts, lines_of
from bahdanau_tf.text.vocabulary import SPECIAL

LANGUAGES = ["en", "fr", "it", "ja", "ko", "fi", "de", "es"]
CORPORA = [
    ("multi30k/train.en", "en", 0.999),
    ("multi30k/train.fr", "fr", 0.999),
    ("tatoeba-en-fr/train.en", "en", 0.997),
    ("tatoeba-en-fr/train.fr", "fr", 0.997),
]
# Older TensorFlow replaces noncharacters by U+FFFD.
NONCHARACTERS = "".join(map(chr, range(0xFDD0, 0xFDF0))) + "".join(
    chr(0x10000 * plane + last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
KEEPS_NONCHARACTERS = tf.strings.unicode_encode([0xFFFE], "UTF-8").numpy() == "\ufffe".encode()
ANY_TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="" if KEEPS_NONCHARACTERS else NONCHARACTERS)
)
ODD = [
    "",
    " ",
    "\0",
    "a\0b \0\u0301",
    "one\u2028two\u0085three\r\n\tfour",
    "e\u0301te\u0301 \u0301x \u0301\u0301",
    "\uffed \u2423 \uffed\u0301 \u2423a a\uffedb",
    "\U0001f468\u200d\U0001f469 \U0001f1eb\U0001f1f7 ok\u2764\ufe0f",
    "\u05e9\u05dc\u05d5\u05dd, \u0645\u0631\u062d\u0628\u0627!",
    "\u200bzero\u200f \u200cwidth\xad s\ufeff",
    "1=\u0338 2\u0338",
    ". .. ... .a a. a.b. '' ' ''' `` -- - , ,, 1,2,,3 ,5",
    "[PAD] [UNK] [END]",
    *(["\U0010ffff\ufffe\ufdd0"] if KEEPS_NONCHARACTERS else []),
    "½ Ⅳ ² ① ﬁ ｆｕｌｌ Å",
    "2018년 IT기업 한국어의",
    "\u1112\u1161\u11ab\u1100\u1173\u11af",
    "私はTomです。ラーメン３杯",
    "\U0001d518\U0001d52b",
]
BROKEN = [b"\xff", b"a\xc3", b"\xed\xa0\x80 \xed\xb0\x80", b"\xf0\x9f x", b"\xc0"]


def empty(language: str = "en", **options: object) -> WordTokenizer:
    return WordTokenizer(Vocabulary(SPECIAL), language, **options)


def words_of(tokenizer: WordTokenizer, *texts: str) -> list[list[str]]:
    rows = tokenizer.split(tf.constant(texts)).to_list()
    return [[word.decode() for word in row] for row in rows]


def knowing(texts: Iterable[str | bytes], language: str = "en", **options: object) -> WordTokenizer:
    """A tokenizer with a vocabulary of all words of the texts."""
    splitter = empty(language, **options)
    rows = splitter.split_signed(tf.constant(list(texts), tf.string)).to_list()
    sentences = [[word.decode() for word in row] for row in rows]
    vocabulary = Vocabulary.build(sentences, 10**6)
    return WordTokenizer(vocabulary, language, **options)


def round_trip(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """The texts that `detokenize` makes of the ids of `tokenize`."""
    ids = tokenizer.tokenize(tf.constant(list(texts), tf.string))
    return [text.decode() for text in tokenizer.detokenize(ids).numpy()]


# Format characters of Unicode (Cf) that are invisible.
INVISIBLE = (
    "\xad\u061c\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060"
    "\u2066\u2067\u2068\u2069\ufeff"
)


def collapsed(text: str, form: str | None = "NFC") -> str:
    """Normalises, replaces runs of spaces by one space, strips the ends."""
    text = text.translate(dict.fromkeys(map(ord, INVISIBLE)))
    text = unicodedata.normalize(form, text) if form else text
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en", "It's here, isn't it?", "It 's here , isn 't it ?"),
        ("en", "In 1990's rock'n'roll.", "In 1990 's rock 'n'roll ."),
        ("en", "the dogs' bowls", "the dogs ' bowls"),
        ("en", "'tis the dogs'", "'tis the dogs'"),
        ("en", "5,300 men, a,b 1,x", "5,300 men , a , b 1 , x"),
        ("en", "Wait... what?!", "Wait ... what ? !"),
        ("en", "Dr. No met e.g. J. Doe.", "Dr. No met e.g. J. Doe ."),
        ("en", "No. 5 said no.", "No. 5 said no ."),
        ("en", 'He said "yes." (Once.)', 'He said " yes . " ( Once . )'),
        ("en", "a well-known $5 mix/match", "a well-known $ 5 mix / match"),
        ("en", "It ended. then", "It ended. then"),
        ("en", "the cat.'", "the cat . '"),
        ("fr", "L'eau d'ici, c'est l'été.", "L' eau d' ici , c' est l' été ."),
        ("fr", "« Ça va ? »", "« Ça va ? »"),
        ("fr", "M. Untel et Mme. X", "M. Untel et Mme. X"),
        ("fr", "aujourd’hui", "aujourd ’ hui"),
        ("it", "L'acqua è un po' fredda.", "L' acqua è un po ' fredda ."),
        ("fi", "kuin 'näin'", "kuin ' näin '"),
        ("de", "Dr. May bzw. 1999.", "Dr. May bzw. 1999 ."),
        ("de", "„Ja“, s. Nr. 5/6.", "„ Ja “ , s . Nr. 5 / 6 ."),
        ("es", "¿Ud., Sra. X?", "¿ Ud. , Sra. X ?"),
        ("ja", "東京に行きました。", "東京 に 行 きました 。"),
        ("ja", "ラーメン3杯", "ラーメン 3 杯"),
        ("ko", "2018년에 IT기업이", "2018 년에 IT 기업이"),
        ("en", "naïve cafe\u0301s", "naïve cafés"),
    ],
)
def test_text_is_split_by_the_rules_of_the_language(language, text, words):
    assert words_of(empty(language), text) == [words.split(" ")]


def test_text_is_split_after_normalization():
    text = "Ａ５，０００…½ ﬁn™"
    assert words_of(empty(normalization=None), text) == [
        ["Ａ５", "，", "０００", "…", "½", "ﬁn", "™"]
    ]
    assert words_of(empty(normalization="NFKC"), text) == [["A5,000", "...", "1\u20442", "finTM"]]


def test_lowercase_includes_accented_letters():
    tokenizer = empty("fr", lowercase=True)
    assert words_of(tokenizer, "L'ÉTÉ À Paris") == [["l'", "été", "à", "paris"]]


# Words in the forms that Moses' rules treat, combined at random.
STEMS = st.one_of(
    st.sampled_from(["dog", "Übel", "été", "I", "1,000", "3", "x-ray", "Σας"]),
    st.sampled_from(["l'eau", "B2B", "e.g", "U.S", "o'", "we--no", "10:30"]),
)
ENDS = st.sampled_from(["", "", ",", ".", "...", "!", "?!", ")", '"', "'s", "%", ":", ".)", '."'])
STARTS = st.sampled_from(["", "", "", "(", '"', "$", "«", "#", "¿", "\xa0"])


@pytest.fixture(scope="module", params=["en", "fr"])
def judge(request):
    return sacremoses.MosesTokenizer(request.param)


@given(st.lists(st.builds("{}{}{}".format, STARTS, STEMS, ENDS), max_size=8))
@settings(max_examples=50)
def test_words_equal_those_of_sacremoses(judge, words):
    text = " ".join(words)
    assert words_of(empty(judge.lang), text) == [judge.tokenize(text, escape=False)]


def lines_of_corpus(path: Path, step: int) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1:step]


WHOLE = pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["part", "whole"]
)


@WHOLE
@pytest.mark.parametrize(("name", "language", "wanted"), CORPORA)
def test_words_of_a_corpus_equal_those_of_sacremoses(shared, name, language, wanted, whole):
    step = 1 if whole else 10 if "multi30k" in name else 50
    judge = sacremoses.MosesTokenizer(language)
    split = tf.function(
        empty(language).split, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    lines = lines_of_corpus(shared("data/" + name), step)
    same = 0
    for start in range(0, len(lines), 5000):
        part = lines[start : start + 5000]
        for line, row in zip(part, split(tf.constant(part)).to_list(), strict=True):
            words = [word.decode() for word in row]
            same += words == judge.tokenize(line, escape=False)
    assert same >= wanted * len(lines)


@WHOLE
@pytest.mark.parametrize(
    ("name", "language", "wanted"),
    [
        *((name, language, 0.99) for name, language, _ in CORPORA),
        ("bible-en-ko/train.ko", "ko", 0.99),
        ("tatoeba-en-ko/train.ko", "ko", 0.98),
        ("korean-english-news/dev.ko", "ko", 0.7),
        # A file of words separated by spaces, not of running text.
        ("small_parallel_enja/train.ja", "ja", 0.0),
    ],
)
def test_detokenize_inverts_tokenize_on_a_corpus(shared, name, language, wanted, whole):
    path = shared("data/" + name)
    lines = lines_of_corpus(path, 1 if whole else 1 + path.stat().st_size // 120_000)
    signed = knowing(lines, language)
    # A vocabulary without signs tests the rules alone.
    words = words_of(signed, *lines)
    by_rule = WordTokenizer(Vocabulary.build(words, 10**6), language)
    for tokenizer, share in ((signed, 1.0), (by_rule, wanted)):
        pairs = zip(round_trip(tokenizer, lines), lines, strict=True)
        assert sum(text == collapsed(line) for text, line in pairs) >= share * len(lines)


@pytest.mark.parametrize(
    ("language", "form"),
    [*((language, "NFC") for language in LANGUAGES), ("en", None), ("ko", None)],
)
def test_detokenize_inverts_tokenize_for_unusual_text(language, form):
    """Rules of languages and normal forms do not know of each other."""
    tokenizer = knowing(ODD, language, normalization=form)
    assert round_trip(tokenizer, ODD) == [collapsed(text, form) for text in ODD]


@given(
    st.lists(ANY_TEXT, min_size=1),
    st.sampled_from([("en", None), ("fr", "NFKC"), ("ja", "NFC"), ("ko", "NFC")]),
    st.booleans(),
)
@settings(max_examples=25)
def test_detokenize_inverts_tokenize_for_any_text(texts, rules, reverse):
    language, form = rules
    tokenizer = knowing(texts, language, normalization=form, reverse=reverse)
    ids = tokenizer.tokenize(tf.constant(texts))
    if len(tokenizer.vocabulary) > len(SPECIAL):
        assert not tf.reduce_any(ids == tokenizer.unk_id)
    back = [text.decode() for text in tokenizer.detokenize(ids).numpy()]
    # NFKC turns some accents into a space and a mark: two words of one.
    assert [collapsed(text, None) for text in back] == [collapsed(text, form) for text in texts]


def checked_offsets(tokenizer: Tokenizer, strings: list[bytes]) -> list[tuple[int, int]]:
    """Offsets cut the words out, in order, and what lies between is not visible."""
    ids = tokenizer.tokenize(tf.constant(strings)).to_list()
    columns = tokenizer.tokenize_with_offsets(tf.constant(strings))
    lists = [column.to_list() for column in columns]
    every = []
    for string, row_ids, surfaces, starts, ends in zip(strings, ids, *lists, strict=True):
        assert len(surfaces) == len(row_ids) - 1
        spans = list(zip(starts, ends, strict=True))
        assert surfaces == [string[start:end] for start, end in spans]
        every += spans
        spans = spans[:: -1 if tokenizer.reverse else 1]
        edges = [0, *(edge for span in spans for edge in span), len(string)]
        assert edges == sorted(edges)
        gaps = [string[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
        assert not collapsed(b"".join(gaps).decode())
    return every


@given(st.lists(st.binary(), min_size=1), st.sampled_from(["en", "fr", "ja"]), st.booleans())
@settings(max_examples=25)
def test_offsets_of_any_bytes_cut_out_the_words(strings, language, reverse):
    spans = checked_offsets(empty(language, reverse=reverse), [*strings, *BROKEN])
    assert all(start < end for start, end in spans)


def back_and_signed(text: str, language: str) -> tuple[str, set[str]]:
    """The inverse by the rules alone, and the words that need a sign."""
    (signed,) = empty(language).split_signed(tf.constant([text])).to_list()
    words = words_of(empty(language), text)
    (back,) = round_trip(WordTokenizer(Vocabulary.build(words, 10**6), language), [text])
    signed = {word.decode() for word in signed}
    return back, {w for w in signed if w[0] in "\uffed\u2423"}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", '"Yes," she said. "No."'),
        ("en", 'He read "Emma" ("a novel") and "Ivanhoe".'),
        ("en", 'It was a long relationship."'),
        ("en", 'It was "a long relationship.'),
        ("ko", '그는 "네"라고 말했다.'),
        ("de", "„Ja“, sagte er. »Nein«, sagte sie. «Doch»."),
        ("de", 'Er sagte „Ja, ‚gut‘“ und "Nein".'),
        ("es", "«¿Qué?», dijo. “¡No!” y „sí”."),
        ("en", "mix/match 1/2"),
        ("fi", "ja/tai"),
        ("ko", "NBC/월스트리트 24~26일 IBM社가 9%로 “네”라고"),
        ("sv", "Hon sade ”ja” och ”nej”."),
        ("da", "Hun sagde »ja« og “nej”."),
    ],
)
def test_quotation_marks_need_no_sign(language, text):
    assert back_and_signed(text, language) == (text, set())


def test_only_a_single_quotation_mark_has_a_sign():
    """Words next to the mark, unknown with a sign, need none."""
    for text, signed in (
        ('a long relationship," he said', '\uffed"'),
        ('"Yes. "No, he said', '\u2423"'),
        ('"Yes" or "no" or 5" or "maybe"', '\uffed"'),
    ):
        assert back_and_signed(text, "en")[1] == {signed}
        assert round_trip(knowing([text]), [text]) == [text]


def test_invisible_characters_do_not_change_the_ids():
    plain = "It's a dog, café."
    odd = "\ufeffIt\u2060's\u00a0a\u3000\u200b d\xadog\u200b,\tcafe\u0301.\u200f"
    tokenizer = knowing([plain])
    assert tokenizer.tokenize([odd]).to_list() == (tokenizer.tokenize([plain]).to_list())
    surfaces, starts, _ = tokenizer.tokenize_with_offsets([odd])
    assert b"".join(surfaces.to_list()[0]).decode() == ("It's" + "ad\xadog,cafe\u0301.")
    assert starts[0, 0] == len("\ufeff".encode())


def test_rules_of_another_version_are_refused():
    refused(lambda: empty(rules=3), "WordTokenizer: rules=3")


@pytest.mark.parametrize("kind", [WordTokenizer, SubwordTokenizer])
def test_train_has_the_defaults_of_the_constructor(kind):
    of_class = inspect.signature(kind).parameters
    of_training = inspect.signature(kind.train).parameters
    both = of_class.keys() & of_training.keys()
    assert {"reverse", "true_case"} <= both
    for name in both - {"tight"}:  # by the text
        assert of_training[name].default == of_class[name].default, name


def test_offsets_refer_to_the_original_text():
    words = ["L'", "e\u0301te\u0301", "fini", "!"]
    text = " L'e\u0301te\u0301\u00a0fini!"
    surfaces, starts, ends = empty("fr").tokenize_with_offsets([text])
    assert [word.decode() for word in surfaces[0].numpy()] == words
    offsets = zip(starts[0].numpy(), ends[0].numpy(), strict=True)
    assert [*offsets] == offsets_of(text, words)


@pytest.fixture(scope="module")
def pieces():
    return SubwordTokenizer.train([["A cat, a cat.", "Un chat !"] * 9], 280)


@pytest.mark.parametrize(
    ("kind", "unit", "size"),
    [
        *(("words", unit, 10**6) for unit in ("word ", "é", " ")),
        *(("words", unit, 200_000) for unit in ("a.b'c,d ", "'")),
        *(("pieces", unit, 10**6) for unit in ("word ", " ")),
        ("pieces", "é", 200_000),
    ],
)
def test_a_line_of_a_megabyte_is_tokenized(pieces, kind, unit, size):
    """Of so many words or pieces, a fifth, which takes as long."""
    text = unit * (size // len(unit.encode()))
    tokenizer = pieces if kind == "pieces" else knowing([text])
    assert round_trip(tokenizer, [text]) == [collapsed(text)]
    assert tokenizer.tokenize_with_offsets([text])[0].nrows() == 1


@pytest.mark.parametrize("language", [*LANGUAGES, None])
def test_empty_batches_and_strings_have_no_words(pieces, language):
    tokenizer = empty(language) if language else pieces
    for strings in ([], ["", " "]):
        strings = tf.constant(strings, tf.string)
        ids = tokenizer.tokenize(strings)
        assert ids.to_list() == [[tokenizer.eos_id]] * len(strings)
        assert tokenizer.detokenize(ids).numpy().tolist() == [b""] * len(strings)
        for column in tokenizer.tokenize_with_offsets(strings):
            assert column.to_list() == [[]] * len(strings)
    assert tokenizer.detokenize(tf.zeros([2, 0], tf.int32)).shape == 2


@pytest.fixture(params=["words", "pieces"])
def either(request, pieces):
    return pieces if request.param == "pieces" else knowing(["one two"])


def test_one_string_and_one_row_of_ids_are_refused(either):
    methods = [either.tokenize, either.read]
    if isinstance(either, WordTokenizer):
        methods.append(either.split)
    for method in methods:
        with pytest.raises(ValueError, match=r"strings has the shape \(\), wan"):
            method("one string")
        graph = tf.function(
            lambda x, method=method: tf.nest.flatten(method(x), expand_composites=True),
            [tf.TensorSpec(None, tf.string)],
            autograph=False,
        )
        with pytest.raises(tf.errors.InvalidArgumentError):
            graph(tf.constant("hello"))
    refused(lambda: either.detokenize([3, 2]), "ids has the shape (2,)")


def test_ids_of_words_with_and_without_signs():
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[END]", ".", "a", "￭b", "b", "￭-", "-"])
    tokenizer = WordTokenizer(vocabulary)
    # The rules would put a space before "+b", so "+" and "b" have signs.
    ids = tokenizer.tokenize(["a b.", "a+b", "[END] c", ""]).to_list()
    assert ids == [[4, 6, 3, 2], [4, 1, 5, 2], [1, 1, 1, 1, 2], [2]]
    ids = tf.constant([[4, 5, 2, 4], [0, 4, 0, 6], [9, 4, 3, 0]])
    assert tokenizer.detokenize(ids).numpy().tolist() == [b"ab", b"a b", b"[UNK] a."]
    assert tokenizer.ids_to_tokens(ids[:1]).numpy().tolist() == [
        [b"a", "￭b".encode(), b"[END]", b"a"]
    ]
    assert vocabulary.pad_id == tokenizer.pad_id == 0
    assert tokenizer.vocabulary_size == 9


def test_an_unknown_word_with_a_sign_uses_the_word_without():
    vocabulary = Vocabulary([*SPECIAL, "a", "b", "+"])
    tokenizer = WordTokenizer(vocabulary)
    ids = tokenizer.tokenize(["a+b"])
    assert ids.to_list() == [[3, 5, 4, 2]]
    assert tokenizer.detokenize(ids).numpy().tolist() == [b"a + b"]


def test_reverse_turns_tokens_and_offsets_around():
    texts = ["one two, three.", "", "x"]
    tokenizer = knowing(texts, reverse=True)
    ids = tokenizer.tokenize(texts)
    tokens = tokenizer.ids_to_tokens(ids).to_list()
    assert tokens[0] == [b".", b"three", b",", b"two", b"one", b"[END]"]
    surfaces, starts, _ = tokenizer.tokenize_with_offsets(texts)
    assert surfaces[0].numpy().tolist() == tokens[0][:-1]
    assert starts[0].numpy().tolist() == [14, 9, 7, 4, 0]
    assert round_trip(tokenizer, texts) == texts


@pytest.mark.parametrize(("no_break", "blank"), [(False, " "), (True, "\xa0")])
def test_french_spaces_before_punctuation_are_restored(no_break, blank):
    text = "«\u202fÇa va\xa0?\u2009» Oui : « Eh\u202f! »"
    back = round_trip(knowing([text], "fr", no_break=no_break), [text])
    assert back == ["«_Ça va_?_» Oui_: «_Eh_!_»".replace("_", blank)]


def test_train_counts_the_words_of_all_files(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("The cat.\nthe cat+the dog.\n", "utf-8")
    second.write_text("A cat\u2028sat.", "utf-8")
    tokenizer = WordTokenizer.train([first, second], 8, lowercase=True)
    assert tokenizer.vocabulary.tokens[3:] == [".", "cat", "the", "a", "dog"]
    coverage = tokenizer.coverage([first, second])
    # "+" and "sat" are unknown; the second "the" of line two has no sign.
    assert (coverage.running, coverage.known) == (13, 11)
    assert tokenizer.lowercase is True
    assert list(tokenizer.sentences([second])) == [["a", "cat", "sat", "."]]


def test_a_saved_tokenizer_is_loaded(tmp_path):
    texts = ["L'Été, ça va ?"]
    tokenizer = knowing(
        texts, "fr", lowercase=True, normalization="NFKC", reverse=True, no_break=True
    )
    tokenizer.save(tmp_path / "text")
    again = load_text(tmp_path / "text")
    assert isinstance(again, WordTokenizer)
    ids = tokenizer.tokenize(texts)
    assert again.tokenize(texts).to_list() == ids.to_list()
    assert again.detokenize(ids) == tokenizer.detokenize(ids)
    settings = json.loads((tmp_path / "text/tokenizer.json").read_text())
    assert settings["class"] == "WordTokenizer"
    assert settings["checksum"] == tokenizer.vocabulary.checksum


def test_a_changed_folder_is_refused(tmp_path):
    knowing(["a b"]).save(tmp_path)
    with open(tmp_path / "vocabulary.txt", "a") as file:
        file.write("c\n")
    refused(lambda: load_text(tmp_path), "has changed since")
    settings = tmp_path / "tokenizer.json"
    settings.write_text('{"class": "X", "checksum": "", "config": {}}')
    refused(lambda: load_text(tmp_path), "load_text:", "holds a 'X'")


def test_an_unknown_normalization_is_refused():
    refused(lambda: empty(normalization="NFX"), "WordTokenizer: normalization")


def test_missing_tensorflow_text_is_reported(monkeypatch):
    def not_found(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_found)
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    refused(empty, "which is not installed", by=ImportError)
    assert words_of(empty(normalization=None), "a b") == [["a", "b"]]


def test_another_version_of_tensorflow_text_is_reported(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: "2.9.1")
    minor = ".".join(tf.__version__.split(".")[:2])
    with pytest.raises(ImportError, match=f"needs tensorflow-text {minor} .* 2.9.1 is installed"):
        empty()


def test_a_tensorflow_text_without_docstrings_is_reported(monkeypatch, tmp_path):
    """Under `python -OO` its import formats None."""
    (tmp_path / "tensorflow_text.py").write_text("None % {}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tensorflow_text", raising=False)
    refused(empty, "WordTokenizer with a normal form needs", "leave -OO", by=ImportError)


RELOAD = """
import json, sys, tensorflow as tf
folder, texts = sys.argv[1], tf.constant(json.loads(sys.argv[2]))
for name in ("core", "text"):
    model = tf.saved_model.load(folder + "/" + name)
    ids = model.tokenize(texts)
    print(json.dumps([ids.to_list(),
        [t.decode() for t in model.detokenize(ids).numpy()]]))
    import tensorflow_text
"""


class Exported(tf.Module):
    """A model with two tokenizers, as a translator has."""

    def __init__(self, source: Any, target: Any) -> None:
        super().__init__()
        self.source = source
        self.target = target

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        return self.source.tokenize(strings)

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)], autograph=False)
    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        tokens = self.source.detokenize(ids)
        return self.target.detokenize(self.target.tokenize(tokens))


def test_saved_models_are_reloaded_in_a_new_process(tmp_path, pieces):
    texts = ["It's a dog/cat.", "", "Un café, [END] ?"]
    # Without normalisation TensorFlow is enough, which the first model shows;
    # a normal form and pieces of words need tensorflow_text.
    pairs = {
        "core": [
            knowing(texts, "en", normalization=None),
            knowing(texts[:1], "fr", normalization=None),
        ],
        "text": [knowing(texts, "en"), pieces],
    }
    wanted = []
    for name, (source, target) in pairs.items():
        model = Exported(source, target)
        tf.saved_model.save(model, tmp_path / "old" / name)
        back = round_trip(target, round_trip(source, texts))
        wanted.append([source.tokenize(texts).to_list(), back])
    assert wanted[1][1] == texts
    (tmp_path / "old").rename(tmp_path / "new")
    output = output_of("-c", RELOAD, tmp_path / "new", json.dumps(texts))
    assert [json.loads(line) for line in output.splitlines()] == wanted


def test_a_tensorflow_seed_does_not_break_a_tokenizer(either):
    graph = tf.function(either.tokenize, autograph=False)
    strings = tf.constant(["two one"])
    before = graph(strings).to_list()
    tf.random.set_seed(1)
    assert graph(strings).to_list() == either.tokenize(strings).to_list() == before


def test_one_string_is_encoded_and_decoded_in_python():
    text = WordTokenizer.train([["The cat sleeps.", "L'eau est froide."]], 30, "fr")
    ids = text.encode("The cat sleeps.")
    assert ids == text.tokenize(["The cat sleeps."])[0].numpy().tolist()
    assert ids[-1] == text.eos_id
    assert text.decode(ids) == "The cat sleeps."
    assert text.decode([]) == text.decode([text.eos_id, *ids]) == ""
    assert text.encode("") == [text.eos_id]
    refused(lambda: text.encode(["The cat"]), "WordTokenizer.encode: text is list")


def test_text_in_memory_is_learned_as_that_of_files(tmp_path, monkeypatch):
    """A list of names and a list of sentences are distinguished by their form."""
    sentences = ["The cat sleeps.", "Go!", "a cat"]
    (tmp_path / "train.en").write_text("".join(f"{x}\n" for x in sentences))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.en"
    for texts in (["train.en"], [path], sentences, [sentences], iter(sentences)):
        (text,) = as_texts("train", texts)
        assert [*lines_of(text)] == sentences
    tokenizer = WordTokenizer.train(sentences, 10)
    assert "cat" in tokenizer.vocabulary.tokens
    assert tokenizer.coverage([sentences, path]).running == 16


@pytest.mark.parametrize("names", [["trian.en"], ["train.en", "my trian.en"], ["no such file.txt"]])
def test_a_misspelt_name_is_not_learned_as_a_sentence(tmp_path, monkeypatch, names):
    (tmp_path / "train.en").write_text("the cat\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        WordTokenizer.train(names, 10)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("train.en", "files is 'train.en', wanted a list of files or of sentences"),
        ([b"the cat"], "b'the cat' is neither|0 is neither|116 is neither"),
        ([3], "3 is neither a file name nor a sentence"),
        ([["the cat", 3]], "3 is neither a file name nor a sentence"),
    ],
)
def test_other_texts_to_learn_from_are_refused(texts, message):
    with pytest.raises(ValueError, match=rf"WordTokenizer\.train: ({message})"):
        WordTokenizer.train(texts, 10)
