"""The BLEU tokenizer chosen for a language and script, against sacreBLEU."""

import pytest
import sacrebleu

from bahdanau_tf.evaluation import bleu_tokenizer, has_blanks, scores

JAPANESE = ["今日は天気がとても良いです。", "犬が公園を走っている。"]
TOKENIZED = ["今日 は 天気 が とても 良い です 。", "犬 が 公園 を 走 っ て いる 。"]
CHINESE = ["今天天气非常好。", "那只狗在公园里跑。"]
THAI = ["วันนี้อากาศดีมาก", "สุนัขกำลังวิ่งอยู่ในสวน"]


@pytest.fixture(autouse=True)
def no_mecab(monkeypatch):
    """Simulates a machine without MeCab."""
    monkeypatch.setattr(scores, "find_spec", lambda name: None)


def score(ours: list[str], theirs: list[str], tokenize: str) -> float:
    """The score computed by sacreBLEU itself."""
    return sacrebleu.corpus_bleu(ours, [theirs], tokenize=tokenize, force=True).score


@pytest.mark.parametrize(
    ("references", "almost"),
    [
        (JAPANESE, ["今日は天気が良いです。", "犬は公園を走っている。"]),
        (CHINESE, ["今天天气好。", "那只狗在公园里走。"]),
        (THAI, ["วันนี้อากาศดี", "สุนัขวิ่งอยู่ในสวน"]),
    ],
)
def test_similar_translations_have_a_high_bleu_with_the_chosen_tokenizer(references, almost):
    chosen = bleu_tokenizer("", references)
    assert score(almost, references, "13a") < 1e-9
    assert score(almost, references, chosen) > 50
    assert score(references, references, chosen) == pytest.approx(100)


def test_words_of_tokenized_text_are_counted_unchanged():
    almost = ["今日 は 天気 が 良い です 。", "犬 は 公園 を 走 っ て いる 。"]
    chosen = bleu_tokenizer("ja", TOKENIZED)
    n_words = sum(len(line.split()) for line in TOKENIZED)
    found = sacrebleu.corpus_bleu(almost, [TOKENIZED], tokenize=chosen)
    assert (found.ref_len, found.totals[0]) == (n_words, n_words - 1)


@pytest.mark.parametrize(
    ("language", "sentences", "wanted"),
    [
        ("en", ["a dog runs"], "13a"),
        ("", ["a dog runs"], "13a"),
        ("ko", ["개가 공원에서 달린다."], "13a"),
        ("ja", JAPANESE, "char"),
        ("en", JAPANESE, "char"),  # the script is trusted
        ("ja", ["inu ga hashiru"], "13a"),
        ("ja", ["ﾊﾝｶｸｶﾅ"], "char"),
        ("zh-TW", ["今天"], "zh"),
        ("", ["今天 天气 好 。", "好"], "zh"),
        ("ja", ["東京都"], "char"),  # Japanese without kana
        ("", ["東京都"], "zh"),
        ("", ["我们使用 TensorFlow 来训练。"], "zh"),
        ("", ["これは TensorFlow で訓練された翻訳の模型です。"], "char"),
        ("", ["A dog (犬) is running through the park."], "13a"),
        ("", ["はい。", "いいえ。"], "char"),  # short, but not tokenized
        ("", ["ฉัน รัก คุณ มาก", "วันนี้ อากาศ ดี มาก"], "none"),
        # Thai puts spaces between clauses.
        ("", ["ถ้าพรุ่งนี้อากาศดีมาก เราจะไปเดินเล่นในสวนสาธารณะ"], "char"),
        ("", ["ຂ້ອຍຮັກເຈົ້າ"], "char"),
        ("", ["ខ្ញុំស្រលាញ់អ្នក"], "char"),
        ("", ["ငါမင်းကိုချစ်တယ်"], "char"),
        ("", ["བཀྲ་ཤིས་བདེ་ལེགས། ཁྱེད་རང་།"], "char"),
        ("th", [], "char"),  # only the language is known
        ("zh", ["..."], "zh"),
        ("", ["", "123"], "13a"),
    ],
)
def test_the_tokenizer_follows_the_script_then_the_language(language, sentences, wanted):
    assert bleu_tokenizer(language, sentences) == wanted


@pytest.mark.parametrize(
    ("installed", "wanted"),
    [
        ({"MeCab", "ipadic"}, "ja-mecab"),
        ({"MeCab"}, "char"),  # sacreBLEU also needs the dictionary
        ({"ipadic"}, "char"),
    ],
)
def test_mecab_is_used_for_japanese_if_installed(installed, wanted, monkeypatch):
    monkeypatch.setattr(scores, "find_spec", lambda name: name in installed)
    assert bleu_tokenizer("ja", JAPANESE) == wanted
    assert bleu_tokenizer("ja", TOKENIZED) == "none"
    assert bleu_tokenizer("zh", CHINESE) == "zh"


@pytest.mark.parametrize(
    ("name", "wanted", "without_blanks"),
    [
        ("small_parallel_enja/dev.ja", "none", "char"),
        ("small_parallel_enja/dev.en", "13a", "13a"),
        ("korean-english-news/dev.ko", "13a", "13a"),
        ("multi30k/val.fr", "13a", "13a"),
    ],
)
def test_corpora_get_the_right_tokenizer(shared, name, wanted, without_blanks):
    lines = shared(f"data/{name}").read_text("utf-8").split("\n")
    assert bleu_tokenizer("", lines) == wanted
    joined = [line.replace(" ", "") for line in lines]
    assert bleu_tokenizer("", joined) == without_blanks


@pytest.mark.parametrize(
    ("sentences", "wanted"),
    [
        (["a dog runs"], True),
        (["개가 공원에서 달린다."], True),
        ([], True),
        (TOKENIZED, True),
        (["今天 天气 好 。"], True),
        (JAPANESE, False),
        (CHINESE, False),
        (THAI, False),
    ],
)
def test_has_blanks_is_true_if_spaces_separate_words(sentences, wanted):
    assert has_blanks(sentences) is wanted
