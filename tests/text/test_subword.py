"""SubwordTokenizer: ids, inverse, offsets, normalisation, training, files."""

import hashlib
import io
import itertools
import json
import re
import tempfile
import unicodedata

import pytest
import sentencepiece
import tensorflow as tf
import test_tokenizer
from hypothesis import given, settings, strategies as st
from refusals import refused
from test_tokenizer import round_trip

from bahdanau_tf.text import SubwordTokenizer, load_text, tokenizer as texts

ODD = [
    *test_tokenizer.ODD,
    "\U0010ffff\ufffe",
    "two  blanks\xa0 and\u202f!",
    "[PAD] [UNK] [END] <unk> </s> <0x41>",
    "한국어와 日本語のテキスト。",
]


def collapsed(text):
    """Text in NFC, with single spaces, without invisible and wide forms and rare apostrophes."""
    ascii_forms = {0xFF01 + i: 0x21 + i for i in range(94)} | dict.fromkeys(map(ord, "’‘‛ʼ′"), "'")
    return test_tokenizer.collapsed(text.translate(ascii_forms))


def test_learning_leaves_nothing_if_it_is_killed(tmp_path, monkeypatch):
    """While it reads, there is no file that has a name."""
    temporary, seen = tmp_path / "temporary", []
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    read = texts.read_lines

    def watched(path):
        for line in read(path):
            seen.append([*temporary.iterdir()])
            yield line

    monkeypatch.setattr(texts, "read_lines", watched)
    path = tmp_path / "text"
    path.write_text("\ufb01ne lines\n" * 50)
    text = SubwordTokenizer.train([path], 300)
    assert len(seen) >= 50
    assert not any(seen)
    (row,) = text.tokenize(["\uff46\u00a0x"]).numpy().tolist()
    assert text.detokenize([row]).numpy().tolist() == [b"f x"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    colours = ["red", "green", "dark blue", "light grey"]
    things = ["houses", "small boats", "a carpet", "the walker's umbrella"]
    english = [
        f"She {verb} {colour} {thing}, {colour.title()}!"
        for verb in ("paints", "painted", "is painting", "sells")
        for colour in colours
        for thing in things
    ]
    french = [
        f"Elle {verb} {thing} {colour} ?"
        for verb in ("peint", "peignait", "vendra", "achète")
        for colour in ("rouges", "verts", "bleu foncé", "gris clair")
        for thing in ("des bateaux", "l'été", "la forêt", "un parapluie")
    ]
    paths = [folder / "a,b.en", folder / "c.fr"]
    for path, lines in zip(paths, (english, french), strict=True):
        path.write_text("".join(line + "\n" for line in lines), "utf-8")
    return paths


@pytest.fixture(scope="module")
def tokenizer(corpus):
    return SubwordTokenizer.train(corpus, 330)


@pytest.fixture(scope="module", params=["bpe", "unigram", "char", "space"])
def either(request, corpus):
    return SubwordTokenizer.train(corpus, 330, request.param)


def test_special_symbols_have_the_ids_0_to_2(tokenizer):
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.eos_id) == (0, 1, 2)
    assert tokenizer.vocabulary_size == 330
    special = tokenizer.ids_to_tokens(tf.constant([0, 1, 2])).numpy().tolist()
    assert special == [b"[PAD]", b"[UNK]", b"[END]"]


def test_ids_equal_those_of_the_sentencepiece_library(either, corpus):
    judge = sentencepiece.SentencePieceProcessor(model_proto=either.model_proto)
    texts = [*corpus[0].read_text("utf-8").split("\n"), *ODD]
    ids = either.tokenize(texts)
    assert ids.dtype == tf.int32
    assert ids.to_list() == [[*judge.encode(text), 2] for text in texts]
    assert either.ids_to_tokens(ids).to_list() == [
        [judge.id_to_piece(i).encode() for i in row] for row in ids.to_list()
    ]


def test_the_vocabulary_is_joint(tokenizer):
    tokens = tokenizer.ids_to_tokens(tf.range(330)).numpy().tolist()
    assert b"w" in tokens  # only in the English file
    assert "é".encode() in tokens  # only in the French file


def test_detokenize_inverts_tokenize_for_unusual_text(either):
    ids = either.tokenize(ODD)
    assert tf.reduce_any(ids == either.unk_id) == (either.kind == "space")
    if either.kind == "space":
        return  # it has no bytes
    back = round_trip(either, ODD)
    assert back == [collapsed(text) for text in ODD]
    padded = either.detokenize(tf.pad(ids.to_tensor(), [[0, 0], [0, 3]])).numpy()
    assert [text.decode() for text in padded] == back


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="▁"))), st.booleans())
@settings(max_examples=25)
def test_detokenize_inverts_tokenize_for_any_text(tokenizer, texts, reverse):
    if reverse:
        tokenizer = SubwordTokenizer(tokenizer.model_proto, reverse=True)
    # Marks that do not compose keep their order, so both sides are normalised.
    normal = [unicodedata.normalize("NFC", text) for text in round_trip(tokenizer, texts)]
    assert normal == [collapsed(text) for text in texts]


@given(st.lists(st.binary()), st.booleans())
@settings(max_examples=25)
def test_offsets_of_any_bytes_cut_out_the_tokens(tokenizer, strings, reverse):
    if reverse:
        tokenizer = SubwordTokenizer(tokenizer.model_proto, reverse=True)
    strings += [text.encode() for text in ODD]
    strings = [*strings, b"\xff", b"a\xc3", b"\xed\xa0\x80 x", "é a".encode()]
    test_tokenizer.checked_offsets(tokenizer, strings)


def test_reverse_turns_the_pieces_around(tokenizer):
    text = "She  sells l'été!"
    words, _, _ = tokenizer.tokenize_with_offsets([text])
    assert b"".join(words[0].numpy()).replace(b" ", b"") == text.replace(" ", "").encode()
    reverse = SubwordTokenizer(tokenizer.model_proto, reverse=True)
    (ids,) = tokenizer.tokenize([text]).to_list()
    assert reverse.tokenize([text]).to_list() == [[*ids[-2::-1], ids[-1]]]


@pytest.mark.parametrize(
    "name",
    [
        "multi30k/train.fr",
        "tatoeba-en-fr/train.fr",
        "bible-en-ko/train.ko",
        "tatoeba-en-ko/train.ko",
        "korean-english-news/dev.ko",
        "small_parallel_enja/train.ja",
    ],
)
def test_detokenize_inverts_tokenize_on_a_corpus(shared, tokenizer, name):
    lines = shared("data/" + name).read_text("utf-8").split("\n")[:-1]
    lines = lines[:: 1 + len(lines) // 2000]
    assert round_trip(tokenizer, lines) == [collapsed(line) for line in lines]


@pytest.mark.parametrize("name", ["U+0041 to U+1FFFF", "Hangul"])
@pytest.mark.parametrize("normal", ["NFC", "NFD"])
def test_combining_marks_are_composed_or_apart(tokenizer, corpus, name, normal):
    """Whatever Unicode composes is composed, or decomposed, in any order of the marks."""
    hangul = range(0xAC00, 0xD7A4)
    codes = hangul if name == "Hangul" else range(0x41, 0x20000)
    texts, composed = [], []
    for character in map(chr, codes):
        form, written = (unicodedata.normalize(x, character) for x in ("NFC", normal))
        apart = unicodedata.normalize("NFD", character)
        if apart == character or character.isspace():
            continue
        if name != "Hangul" and ord(character) in hangul:
            continue
        half = unicodedata.normalize("NFC", apart[:2]) + apart[2:]
        turned = apart[0] + apart[:0:-1]
        for text in {character, apart, half, turned}:
            if unicodedata.normalize("NFC", text) == form:
                texts.append(text)
                composed.append(written)
    assert len(texts) > 2000
    if normal == "NFD":
        tokenizer = SubwordTokenizer.train(corpus, 330, normalization="nfd")
    judge = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_proto)
    assert [judge.normalize(t)[1:] for t in texts] == composed
    pieces = tokenizer.tokenize(texts[::50]).to_list()
    assert pieces == tokenizer.tokenize(composed[::50]).to_list()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffShe sells l'été!",
        "\u200bShe\u3000sells\tl'été!",
        " \ufeff She\xa0sells\u202fl'été!\u200b\n",
        "S\xadhe\u2009sells l'e\u0301te\u0301\u2060!",
        "Ｓｈｅ\u3000ｓｅｌｌｓ ｌ＇été！",
        "She sells l\u2019été!",
    ],
)
def test_equivalent_texts_have_the_same_ids(tokenizer, text):
    ids = tokenizer.tokenize(["She sells l'été!"]).to_list()
    assert tokenizer.tokenize([text]).to_list() == ids


def test_full_width_forms_are_kept_unless_half_width(tmp_path):
    text = "Ｔシャツ を １枚 買った。"
    (tmp_path / "text").write_text(20 * f"{text}\n", "utf-8")
    for half_width, back in ((None, text), (True, "Tシャツ を 1枚 買った。")):
        tokenizer = SubwordTokenizer.train([tmp_path / "text"], 280, half_width=half_width)
        assert round_trip(tokenizer, [text]) == [back]


def test_signs_that_the_text_rarely_has_are_read_as_those_that_it_has():
    lines = ["\u201cNo\u201d - l\u2019été..."] * 200 + ["\u00abOui\u00bb l'été", "a\u2013b"]
    text = SubwordTokenizer.train([lines], 300)
    written = "\u00abNo\u00bb \u2014 l'été\u2026 \u201cNo\u201d"
    assert text.decode(text.encode(written)) == "\u201cNo\u201c - l\u2019été... \u201cNo\u201d"
    _, starts, ends = text.tokenize_with_offsets([written])
    data = written.encode()
    words = [data[i:j].decode() for i, j in zip(starts[0].numpy(), ends[0].numpy(), strict=True)]
    assert "".join(words).replace(" ", "") == written.replace(" ", "")
    assert text.characters >= {*written} - {" "}
    assert "\u263a" not in text.characters
    characters = SubwordTokenizer.train([lines], 300, "char")
    assert characters.decode(characters.encode(written)) == written


@pytest.mark.parametrize(
    ("line", "tight"),
    [
        ("私の猫はCDを3枚。", True),
        ("猫が寝る。 そうか。", False),  # more spaces than letters of another script
        ("猫が寝る。", True),
        ("猫は CD を 3 枚。", False),
        ("the cat", False),
    ],
)
def test_no_space_is_written_beside_japanese_if_the_text_has_none(line, tight):
    text = SubwordTokenizer.train([[line] * 20], 300)
    assert text.tight is tight
    ids = text.encode("猫 ab c 猫 。d é")
    own, again = (SubwordTokenizer(text.model_proto, tight=x) for x in (True, text.tight))
    if "猫" in line:  # or its bytes are no letter
        first = text.encode("c 猫")[:-2]  # the last piece is a space
        texts, starts, ends = own.detokenize_with_offsets(tf.ragged.constant([first, ids]))
        before, data = texts.numpy().tolist()
        assert before.decode() == own.decode(first)
        assert data.decode() == "猫ab c猫。d é"
        places = zip(starts[1].numpy(), ends[1].numpy(), strict=True)
        assert b"".join(data[i:j] for i, j in places) == data.replace(b" ", b"")
    assert again.decode(ids) == ("猫ab c猫。d é" if tight else "猫 ab c 猫 。d é")


def test_lowercase_and_case_folding(corpus):
    text = "ÉTÉ E\u0301te\u0301 Ｆull\u3000ẞ Ǆ Σ"
    small = "été été full ß ǆ σ"
    for options, wanted in (
        ({"lowercase": True}, small),
        ({"normalization": "nfkc_cf"}, small.replace("ǆ", "dž")),
    ):
        assert round_trip(SubwordTokenizer.train(corpus, 330, **options), [text]) == [wanted]
    refused(
        lambda: SubwordTokenizer.train(corpus, 330, normalization="identity", lowercase=True),
        "it is 'identity'.",
    )


@pytest.mark.parametrize(
    ("lines", "is_read"),
    [(["été 12"], True), (["ÉTÉ"], True), (["Été"], False), (["É", "a"], False)],
)
def test_a_text_of_one_case_is_read_in_any_case(lines, is_read):
    text = SubwordTokenizer.train([lines], 270, "char", lowercase=None)
    small, capital = (text.tokenize(["té", "TÉ"])).to_list()
    assert (small == capital) is is_read
    assert ("T" in text.characters) is is_read


def test_decomposed_hangul_is_its_letters():
    """The offsets are those of syllables, of which the last letter is the word."""
    text = SubwordTokenizer.train([["각나"] * 9], 280, "char", normalization="nfd")
    words, starts, ends = text.tokenize_with_offsets(["각나"])
    assert text.ids_to_tokens(text.tokenize(["각나"])).to_list() == [
        [*(letter.encode() for letter in unicodedata.normalize("NFD", "각나")), b"[END]"]
    ]
    assert words.to_list() == [[b"", b"", "각".encode(), b"", "나".encode()]]
    assert starts.to_list() == [[0, 0, 0, 3, 3]]
    assert ends.to_list() == [[0, 0, 3, 3, 6]]


def test_text_that_is_not_normalized_keeps_its_characters(corpus, tmp_path):
    SubwordTokenizer.train(corpus, 330, normalization="identity").save(tmp_path)
    loaded = load_text(tmp_path)
    texts = [*ODD, "A BIG HOUSE"]
    assert round_trip(loaded, texts) == [re.sub(" +", " ", text).strip(" ") for text in texts]


def test_two_trainings_give_the_same_bytes_and_print_nothing(corpus, tokenizer, capfd):
    again = SubwordTokenizer.train(corpus, 330)
    again.tokenize(["one"])
    assert "normalizer" not in capfd.readouterr().err
    assert again.model_proto == tokenizer.model_proto
    assert tempfile.gettempdir().encode() not in again.model_proto
    assert b".tsv" not in again.model_proto


def test_numbers_outside_the_vocabulary_are_unknown(tokenizer):
    ids = tf.constant([[-1, 330, 0, 2, 5], [2, 330, 330, 330, 330]])
    assert tokenizer.ids_to_tokens(ids)[0, 1] == b"[UNK]"
    assert tokenizer.detokenize(ids).numpy().tolist() == [b"[UNK][UNK]", b""]


def test_sampling_is_for_training_only(either):
    texts = ["She is painting the walker's umbrella, Dark Blue!"] * 50
    usual = either.tokenize(texts).to_list()
    if either.kind in ("char", "space"):
        refused(lambda: either.tokenize(texts, sample=True), "sample", either.kind)
        return
    drawn = either.tokenize(texts, sample=True, alpha=0.3)
    assert len(set(map(tuple, usual))) == 1
    assert len(set(map(tuple, drawn.to_list()))) > 1
    assert either.detokenize(drawn).numpy().tolist() == [text.encode() for text in texts]
    assert either.tokenize(texts).to_list() == usual
    # With n-best of 1, the usual pieces are sampled.
    certain = either.tokenize(texts, sample=True, nbest=1)
    assert certain.to_list() == usual


def test_nfkc_normalises_text_but_not_offsets(corpus):
    tokenizer = SubwordTokenizer.train(corpus, 330, normalization="nfkc")
    texts = ["ｆｕｌｌ①", "e\u0301ﬁ"]
    assert round_trip(tokenizer, texts) == [unicodedata.normalize("NFKC", x) for x in texts]
    surfaces, _, ends = tokenizer.tokenize_with_offsets(texts)
    assert ends[1, -1] == len(texts[1].encode())
    assert b"".join(surfaces[0].numpy()) == texts[0].encode()


def test_without_byte_fallback_a_new_character_is_unknown(corpus):
    tokenizer = SubwordTokenizer.train(corpus, 60, byte_fallback=False)
    assert tokenizer.unk_id in tokenizer.encode("한")
    assert round_trip(tokenizer, ["한"]) == ["[UNK]"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_vocabulary_size_is_limited_by_the_text(corpus, kind):
    """SentencePiece itself names the largest size that it would accept."""
    with pytest.raises(RuntimeError) as refused:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain.from_iterable(
                path.read_text("utf-8").split("\n") for path in corpus
            ),
            model_writer=io.BytesIO(),
            vocab_size=100_000,
            model_type=kind,
            byte_fallback=True,
            character_coverage=1.0,
            pad_id=0,
            unk_id=1,
            eos_id=2,
            bos_id=-1,
            minloglevel=2,
        )
    largest = int(re.search(r"<= (\d+)", str(refused.value))[1])
    tokenizer = SubwordTokenizer.train(corpus, 100_000, kind)
    assert tokenizer.vocabulary_size == largest


def test_a_size_below_the_characters_is_refused(corpus):
    """The size named in the message is accepted."""
    with pytest.raises(
        ValueError, match=r"^SubwordTokenizer\.train: vocabulary_size is 20, "
    ) as refused:
        SubwordTokenizer.train(corpus, 20)
    least = int(re.search(r"wanted (\d+)", str(refused.value))[1])
    assert SubwordTokenizer.train(corpus, least).vocabulary_size == least


def test_a_model_without_the_symbols_is_refused(corpus):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus[0].read_text("utf-8").split("\n")),
        model_writer=model,
        vocab_size=45,
        minloglevel=2,
    )
    refused(lambda: SubwordTokenizer(model.getvalue()), "has no piece [PAD] or <pad>")


def test_a_saved_tokenizer_is_loaded(tokenizer, tmp_path):
    SubwordTokenizer(tokenizer.model_proto, reverse=True).save(tmp_path)
    again = load_text(tmp_path)
    assert isinstance(again, SubwordTokenizer)
    assert again.reverse is True
    assert again.model_proto == tokenizer.model_proto
    settings = json.loads((tmp_path / "tokenizer.json").read_text())
    data = (tmp_path / "sentencepiece.model").read_bytes()
    assert settings["checksum"] == hashlib.sha256(data).hexdigest()
    (tmp_path / "sentencepiece.model").write_bytes(data + b"\0")
    refused(lambda: load_text(tmp_path), "has changed since")


def test_text_in_memory_is_learned_as_that_of_a_file(tmp_path):
    sentences = ["the cat sleeps", "a cat sees the dog", "Go!"] * 5
    (tmp_path / "text").write_text("".join(f"{x}\n" for x in sentences))
    of_file, of_list = (
        SubwordTokenizer.train(texts, 300, true_case=True)
        for texts in ([tmp_path / "text"], sentences)
    )
    assert of_file.settings() == of_list.settings()
    assert repr(of_file) == f"<SubwordTokenizer of {of_file.vocabulary_size} ids, true_case=True>"
    assert of_file.decode(of_file.encode("the dog sees")) == "the dog sees"


@pytest.mark.parametrize("reverse", [False, True])
def test_a_reading_has_the_ids_of_tokenize(reverse):
    """Of offsets, TensorFlow Text has another op."""
    sentences = ["the cat sleeps", "", "caf\u00e9 \u2603  x", "A BIG DOG", " the\u3000cat "]
    text = SubwordTokenizer.train([sentences * 5], 300, reverse=reverse, true_case=True)
    odd = [*(x.encode() for x in sentences), b"\xff\xfe the \x80\xc3", b"a\0b"]
    reading = text.read(tf.constant(odd))
    assert reading.ids.to_list() == text.tokenize(tf.constant(odd)).to_list()
    assert (reading.words.row_lengths() + 1).numpy().tolist() == (
        reading.ids.row_lengths().numpy().tolist()
    )
