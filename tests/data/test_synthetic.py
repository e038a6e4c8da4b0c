"""Synthetic pairs: what is replaced, what stays, and that a stream that resumes draws the same."""

import re
import unicodedata
from typing import Any

import numpy as np
import pytest

from bahdanau_tf import ParallelCorpus, SubwordTokenizer, Vocabulary, WordTokenizer
from bahdanau_tf.data.dataset import stream_batches
from bahdanau_tf.data.synthetic import SyntheticPairs, careless
from bahdanau_tf.options.recipe import Batching
from bahdanau_tf.text.copied import kept, spelled_names, spellings, with_names
from bahdanau_tf.text.word_pairs import (
    CALENDAR,
    another_date,
    dates,
    numerals,
    places_of,
    prices,
    quantities,
    same_numbers,
)

SOURCE = [
    "Yesterday Tom saw 12 cats.", "The cat sleeps.", "Tom eats.", "At 9:45 it rains.",
    "The Table is red.", "I am John O'Neil.", "In 2020 and 2021 she ate.", "Hello.",
]  # fmt: skip
TARGET = [
    "Hier, Tom a vu 12 chats.", "Le chat dort.", "Tom mange.", "Il pleut à 9:45.",
    "Le Tableau est rouge.", "Je suis John O'Neil.", "Elle a mangé en 2020 et 2021.", "Salut.",
]  # fmt: skip


@pytest.fixture(scope="module")
def text() -> SubwordTokenizer:
    return SubwordTokenizer.train([[*SOURCE, *TARGET]], 400)


def pairs_of(text: Any, epoch: int, share: float = 0.9, seed: int = 3) -> list[tuple[str, ...]]:
    """The pairs of an epoch, each with the number of its line."""
    corpus = ParallelCorpus(SOURCE * 20, TARGET * 20)
    batching = Batching(synthetic_pairs=share, seed=seed)
    pairs = SyntheticPairs(corpus, [text, text], batching)
    rows, *sides = pairs.read(epoch, np.arange(len(corpus)), corpus.rows)
    return [
        (int(row) % len(SOURCE), x.decode(), y.decode())
        for row, x, y in zip(rows, *sides, strict=True)
    ]


def drawn(
    text: Any, sources: Any, targets: Any, share: float = 0.9, count: int | None = None
) -> list[tuple[str, str]]:
    """The first pairs of the first epoch, or all."""
    corpus = ParallelCorpus(sources, targets)
    pairs = SyntheticPairs(corpus, [text, text], Batching(synthetic_pairs=share))
    rows = corpus.rows[:count]
    _, *sides = pairs.read(0, np.arange(len(rows)), rows)
    return [*zip(*(map(bytes.decode, side) for side in sides), strict=True)]


def without_second(source: str, target: str) -> tuple[str, str]:
    """The first sentence of a pair, which may have one or two lines of the text behind it."""
    for x, y in [*zip(SOURCE, TARGET, strict=True)] * 2:
        if source.endswith(f" {x}"):
            assert target.endswith(f" {y}")
            source, target = source.removesuffix(f" {x}"), target.removesuffix(f" {y}")
    return source, target


@pytest.mark.parametrize(
    ("kind", "source", "target", "wanted"),
    [
        ("numbers", "9:45 or 12", "12 ou 9:45", ["9:45", "12"]),
        ("numbers", "B52 and 7a", "B52 et 7a", []),
        ("numbers", "12, 3.5.1, 2026-11-28.", "12 2026-11-28", ["12", "2026-11-28"]),
        ("numbers", "12 cats", "猫12匹", ["12"]),
        ("numbers", "20 dollars", "2000 dollars", []),
        ("names", "So Tom ran.", "Tom court.", ["Tom"]),
        ("names", "Impossible!", "Impossible !", []),
        ("names", "Ann is in Rome.", "Ann est à Rome.", ["Rome"]),
        ("names", "I saw O'Neil, I did.", "J'ai vu O'Neil.", ["O'Neil"]),
        ("names", "a SSH key", "SSHキー", ["SSH"]),
    ],
)
def test_what_a_translation_keeps(kind, source, target, wanted):
    assert kept(kind, source, target) == wanted


def test_a_name_that_is_known_may_begin_a_sentence():
    assert kept("names", "Ann is here.", "Ann est là.", {"Ann"}) == ["Ann"]


def test_both_sides_get_the_same_new_words_and_nothing_else_changes(text):
    changed, symbols = 0, []
    for row, x, y in pairs_of(text, 0):
        x, y = without_second(x, y)
        if unicodedata.category(x[-1]) == "So":
            assert y.endswith(x[-2:])
            symbols.append(x[-1])
            x, y = x[:-2], y[:-2]
            if x[-1] != SOURCE[row][-1]:
                x += SOURCE[row][-1]  # the mark that it lost
        if (x, y) == (SOURCE[row], TARGET[row]):
            continue
        changed += 1
        sides = SOURCE[row], TARGET[row], {"Tom"}
        old = [word for kind in ("numbers", "names") for word in kept(kind, *sides)]
        pattern = re.escape(SOURCE[row])
        for word in old:
            pattern = pattern.replace(re.escape(word), "(.+?)", 1)
        new = re.fullmatch(pattern, x)
        assert new, x
        target = TARGET[row]
        places = sorted(old, key=SOURCE[row].index)
        for word, other in zip(places, new.groups(), strict=True):
            target = target.replace(word, "\0", 1).replace("\0", other)
        assert y == target
    assert changed > 100
    assert 5 < len({*symbols}) == len(symbols) < 40


def test_many_new_numbers_are_like_the_old_ones(text):
    new = [re.search(r"[\d.:/-]*\d", x) for row, x, _ in pairs_of(text, 0) if row == 0]
    numbers = [x[0] for x in new if x and x[0] != "12"]
    alike = [x for x in numbers if re.fullmatch(r"[1-9]\d", x)]
    assert len({*alike}) > 3
    assert 0.3 < len(alike) / len(numbers) < 0.7


def test_digits_of_full_width_are_those_of_half_width(text):
    pairs = drawn(text, ["I saw 1600 cats."] * 40, ["猫を１６００匹見た。"] * 40)
    numbers = [[(*re.findall("[0-9]+", side),) for side in pair] for pair in pairs]
    assert len({x for x, _ in numbers}) > 20
    assert all(x == y for x, y in numbers)


@pytest.mark.parametrize(
    ("pairs", "table", "source", "target", "renamed"),
    [
        (
            [("I saw Tom.", "トムを見た。"), ("Tom ran.", "トムは走った。"), ("He ran.", "彼は")],
            {"Tom": "トム"},
            "Ask Tom Li.", "トム・リーに聞いて。", "Bo・リーに聞いて。",
        ),
        (
            [("I saw Mary.", "메리를 봤다."), ("Why, Mary?", "왜 메리야?"), ("Why?", "왜?")],
            {"Mary": "메리"},
            "So Mary ran.", "그래서 메리는 뛰었다.", "그래서 Bo는 뛰었다.",
        ),
        (
            [("The Panama Canal.", "パナマ運河"), ("A Panama Canal!", "パナマの運河")],
            {"Panama": "パナマ", "Canal": "パナマ"},
            "The Panama Canal.", "パナマ運河", "パナマ運河",
        ),
        ([("I saw Tom.", "J'ai vu Tom.")] * 2, {}, "Tom.", "Tom.", "Tom."),
        (  # of so many, equally long, the last in the order of Unicode
            [("I saw Tom.", "アア イイ ウウ エエ カカ キキ クク ケケ")] * 2,
            {"Tom": "ケケ"},
            "Tom.", "ケケ", "Bo",
        ),
    ],
)  # fmt: skip
def test_names_that_the_other_side_spells_in_its_own_script(pairs, table, source, target, renamed):
    assert spellings(pairs) == table
    names = spelled_names(source, target, table)
    assert with_names(target, {table[name]: "Bo" for name in names}) == renamed


def test_a_name_in_another_script_becomes_a_new_one_that_keeps_its_letters(text):
    pairs = drawn(text, ["I saw Tom.", "A cat."] * 20, ["トムを見た。", "猫だ。"] * 20)
    names = [(x, y.split("を見た")[0]) for x, y in pairs]
    names = [(x, name) for x, name in names if x.startswith("I saw") and name != "トム"]
    assert len({*names}) > 10
    assert all(f"I saw {name}" in x for x, name in names)


def test_what_both_sides_quote_becomes_a_name_between_the_same_quotes(text):
    source, target = 'He said "no", I think.', "Il a dit « non », je crois."
    names = []
    for x, y in drawn(text, [source] * 200, [target] * 200):
        new = re.match('[Hh]e said "([^"]+)", I think', x)
        assert new, x
        if new[1] != "no":
            names.append(new[1])
            assert y.startswith(f"Il a dit « {new[1]} », je crois.")
    assert len({*names}) > 50


def test_a_third_of_the_names_are_of_sentences_that_do_not_begin_with_one(text):
    sources = ["Tom sleeps."] * 90 + ["I see Tom."] * 10
    corpus = ParallelCorpus(sources, ["Tom dort."] * 90 + ["Je vois Tom."] * 10)
    pairs = SyntheticPairs(corpus, [text, text], Batching(synthetic_pairs=0.99))
    new = [x for epoch in range(5) for x in pairs.read(epoch, np.arange(100), corpus.rows)[1]]
    inner = sum(b"see" in x and b"Tom" not in x for x in new)
    first = sum(b"sleeps" in x and b"Tom" not in x for x in new)
    assert inner / (inner + first) == pytest.approx((1 + 2 * 0.1) / 3, abs=0.1)


def test_some_pairs_are_a_single_word_and_its_translation(text):
    words = [
        f"{x}{y}" for x in "bdfglmnprs" for y in ("ato", "eki", "ilu", "omi", "uno", "aba", "edo")
    ]
    sources = [f"I see Tom and a {word}." for word in words for _ in range(12)]
    targets = [f"Je vois Tom et un {word[::-1]}." for word in words for _ in range(12)]
    single = [(x, y) for x, y in drawn(text, sources, targets) if " " not in x]
    assert len(single) / len(sources) == pytest.approx(0.9 / 8, abs=0.04)
    assert all(y.lower() == x.lower()[::-1] and x.lower() in words for x, y in single)
    assert {x[0].isupper() for x, _ in single} == {True, False}


@pytest.mark.parametrize(
    ("targets", "second"),
    [(("Je vois Tom.", "Le chat dort."), ". Le chat dort."), (("Tomだ。", "猫だ。"), "。猫だ。")],
)
def test_some_pairs_are_two_or_three_sentences_in_the_same_order(text, targets, second):
    pairs = drawn(text, ("I see Tom.", "The cat sleeps.") * 400, targets * 400)
    behind = [y for x, y in pairs if x.endswith(". The cat sleeps.")]
    assert len(behind) / 800 == pytest.approx(0.9 / 4 / 2 * 3 / 4, abs=0.04)
    three = [x.count(". ") >= 2 for x, _ in pairs]
    assert sum(three) / 800 == pytest.approx(0.9 / 8, abs=0.04)
    assert all(y.endswith(second) for y in behind)


def test_a_noun_becomes_a_name_if_names_keep_their_letters_in_another_script(text):
    words = [f"{x}{y}" for x in "bdfglmnprs" for y in ("ato", "eki", "ilu", "omi", "uno", "aba")]
    things = [chr(0x4E00 + i) + chr(0x5E00 + i) for i in range(len(words))]
    sources = [f"I see the {word}." for word in words for _ in range(12)]
    for name, becomes in (("トム", True), ("Tom", False)):
        targets = [f"{thing}を見る。" for thing in things for _ in range(12)]
        texts = [*sources, *["I see Tom."] * 30], [*targets, *[f"{name}を見る。"] * 30]
        pairs = drawn(text, *texts, count=500)
        pattern = re.compile(r"I see the ([^ ]+)\.|([^ ]+)を見る。")
        both = [[pattern.fullmatch(x) for x in pair] for pair in pairs]
        new = [(x[1], y[2]) for x, y in both if x and y and x[1] not in words]
        assert all(x == y for x, y in new)
        assert (len({*new}) > 20) is becomes
        second = {x.split()[-1].rstrip(".") for x, _ in pairs if "e Tom" not in x}
        assert len(second & {word.capitalize() for word in words}) > 5  # I see Lena Bato.


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("The cat's ball.", "La balle du chat.", [("cat", "chat")]),
        ("A cat, a cat!", "Un chat !", []),
        ("No water, cat.", "L'eau, un chat.", [("water", "eau"), ("cat", "chat")]),
        ("A cat-like dog.", "Un chien comme un chat.", []),
        ("My school.", "私の学校だ。", [("school", "学校")]),
        ("My school.", "私の大学校だ。", []),
    ],
)
def test_where_a_word_and_its_translation_stand(source, target, wanted):
    table = {"cat": "chat", "water": "eau", "school": "学校"}
    places = places_of(table, source, target)
    assert [(source[i:j], target[k:m]) for (i, j), (k, m) in places] == wanted


@pytest.mark.parametrize(
    ("source", "target", "numbers", "nouns"),
    [
        ("Two cats.", "Deux chats.", [("Two", "Deux")], ["Two cats"]),
        ("I see two cats.", "猫が2匹見える。", [("two", "2")], []),
        ("Three books.", "三冊の本。", [("Three", "三")], []),
        ("It is 20 dollars.", "20ドルだ。", [], ["20 dollars"]),
        ("Two or two cats.", "Deux chats.", [], []),
        ("My back hurts twice.", "J'ai mal au dos.", [], []),
        ("Twelve cats.", "十二 cats.", [], []),
        ("一緒に十分だ。", "一起十分。", [], []),
        ("A two-year cat.", "Un chat de deux ans.", [], []),
        ("Two red cats.", "Deux chats rouges.", [("Two", "Deux")], []),
        ("Three cats saw six.", "세 chats, 6.", [("Three", "세"), ("six", "6")], ["Three cats"]),
    ],
)
def test_where_a_pair_has_the_same_number(source, target, numbers, nouns):
    same = same_numbers(source, target)
    places = numerals(source, target, same)
    assert [(source[i:j], target[k:m]) for (i, j), (k, m) in places] == numbers
    table = {"cats": "chats", "dollars": "ドル", "books": "本"}
    assert [source[i:j] for (i, j), _ in quantities(source, target, same, table)] == nouns


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("It costs $20.", "20ドルだ。", [("$20", "20ドル")]),
        ("It costs $20.", "Ça coûte 20 $.", [("$20", "20 $")]),
        ("It costs €5.", "Ça coûte cinq €.", [("€5", "cinq €")]),
        ("It costs $20.", "Ça coûte $20.", []),
        ("It costs 20 dollars.", "20ドルだ。", []),
        ("It costs $3 billion.", "3 milliards de dollars.", []),
    ],
)
def test_where_a_price_is_in_another_form(source, target, wanted):
    places = prices(source, target, same_numbers(source, target), {"dollars": "ドル"})
    assert [(source[i:j], target[k:m]) for (i, j), (k, m) in places] == wanted


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("In October.", "10月に。", ("October", "10月", "December", "12月")),
        ("In October.", "十月に。", ("October", "十月", "December", "十二月")),
        ("It's July.", "C'est juillet.", ("July", "juillet", "December", "décembre")),
        ("July 4th", "7월 4일", ("July", "7월", "December", "12월")),
        ("On Monday.", "月曜日に。", ("Monday", "月曜", "Friday", "金曜")),
        ("On Monday.", "월요일에.", ("Monday", "월요일", "Friday", "금요일")),
        ("On Monday.", "C'est lundi.", ("Monday", "lundi", "Friday", "vendredi")),
        ("In July.", "C'est juin.", None),
        ("In July or July.", "7月に。", None),
        ("In August.", "8月に。", None),  # which may be German
        ("In July.", "17月に。", None),
        ("May I go?", "行ってもいい？", None),
    ],
)
def test_where_a_pair_has_the_same_month_or_day(source, target, wanted):
    places = dates(source, target)
    assert bool(places) is (wanted is not None)
    for (i, j), (k, m) in places:
        old = source[i:j], target[k:m]
        assert (*old, *(another_date(x, 11) for x in old)) == wanted


def test_months_change_and_prices_are_written_as_in_the_source(text):
    sources = ["We met on March 5.", "It costs $20 there."] * 100
    new, sums = set(), set()
    for x, y in drawn(text, sources, ["3月5日に会った。", "あそこは20 $だ。"] * 100):
        if found := re.match(r"We met on ([A-Z]\w+) 5\.", x):
            month = re.match("([0-9]+)月5日に会った。", y)
            assert month
            assert found[1] == CALENDAR[0][int(month[1]) - 1]
            new.add(found[1])
        elif found := re.match(r"It costs (.+?) there", x):
            assert y.startswith((f"あそこは{found[1]}だ。", "あそこは20 $だ。"))
            sums.add(re.sub("[0-9]+", "1", found[1]))
    assert len(new) > 8
    assert {"$1", "£1.1"} < sums


def test_numbers_in_words_become_digits_and_those_with_a_noun_quantities(text):
    words = [f"{x}{y}s" for x in "bdfglmnprs" for y in ("ato", "eki", "ilu", "omi", "uno", "abo")]
    sources = [f"We saw three {word} here." for word in words for _ in range(12)]
    targets = [f"On a vu trois {word[::-1]} ici." for word in words for _ in range(12)]
    digits, others = set(), set()
    for x, y in drawn(text, sources, targets):
        if number := re.match(r"We saw (\d\d?) (\w{4}s) here", x):
            digits.add(number[1])
            assert y.startswith(f"On a vu {number[1]} {number[2][::-1]} ici.")
        elif (quantity := re.match("We saw (.+?) here", x)) and not quantity[1].startswith("three"):
            others.add(re.sub("[0-9]+", "1", quantity[1]))
            assert y.startswith(f"On a vu {quantity[1]} ici.")
    assert len(digits) > 50
    assert {"$1", "€1.1", "1 km", "1.1 kg", "1 °C", "1%"} < others


def test_the_share_is_that_of_pairs_with_numbers_or_names(text):
    plain = [(row % 8, SOURCE[row % 8], TARGET[row % 8]) for row in range(160)]
    assert pairs_of(text, 0, share=1e-9) == plain
    for share in (0.2, 0.9):
        others = sum(a != b for a, b in zip(pairs_of(text, 1, share), plain, strict=True))
        assert others / len(plain) == pytest.approx(share, abs=0.12)


def test_each_epoch_and_seed_draws_anew(text):
    first = pairs_of(text, 0)
    assert pairs_of(text, 0) == first
    assert pairs_of(text, 1) != first
    assert pairs_of(text, 0, seed=4) != first


@pytest.mark.parametrize(("target", "letters"), [("ба да жа ка", "[А-я]"), ("αβ", "[A-z]")])
def test_without_latin_letters_new_names_have_others_that_both_sides_have(target, letters):
    """Or, if there are none, Latin ones, in bytes."""
    sides = ['ба да жа ка "ба"'] * 20, [f'{target} "да"'] * 20
    texts = [SubwordTokenizer.train([side], 300) for side in sides]
    pairs = SyntheticPairs(ParallelCorpus(*sides), texts, Batching(synthetic_pairs=0.9))
    sources = [x.decode() for x in pairs.read(0, np.arange(20), np.arange(20))[1]]
    assert [x for x in sources if re.search(f"{letters}{{3}}", x)]


def test_between_characters_synthetic_pairs_are_numbers_and_signs():
    words = ["stara", "beseda"] * 200
    text = SubwordTokenizer.train([words], 300, "char")
    both = drawn(text, words, words[::-1], share=0.25)
    new = [x for x, y in both if x == y]
    assert {*both} > {("stara", "beseda"), ("beseda", "stara")}
    assert 60 < len(new) < 140
    signs = {*"".join(new)}
    assert not any(map(str.isalpha, signs))
    assert {*"0123456789"} < signs
    assert len(signs) > 40


def test_a_text_without_numbers_and_names_stays(text):
    pairs = [("a cat", "un chat"), ("the dog", "le chien")]
    assert drawn(text, *zip(*pairs, strict=True)) == pairs


@pytest.mark.parametrize(
    ("source", "target", "both"),
    [
        ("I see.", "Je vois.", "i see"),
        ("Tom eats!", "Tom mange !", "Tom eats"),
        ("Who is it ?!", "Qui est-ce ?", "who is it"),
        ("Do I speak French to Tom?", "Je parle français à Tom ?", "do i speak french to Tom"),
        ("...", "...", "..."),
        ("猫が寝る。", "Le chat dort.", "猫が寝る"),
    ],
)
def test_what_a_careless_source_loses(source, target, both):
    x, y = source.encode(), target.encode()
    without_mark, without_capital = (careless(x, y, loses).decode() for loses in (2, 1))
    assert careless(x, y, 0) == x
    assert careless(x, y, 3).decode() == both
    assert without_mark.lower() == both.lower()
    assert without_mark == source[: len(both)]
    assert without_capital == both + source[len(both) :]


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("I don't, I can't.", "Je ne veux pas.", "I dont, I cant."),
        ("It’s O'Neil.", "C'est O'Neil.", "Its O'Neil."),
        ("The dogs' ball.", "La balle.", "The dogs' ball."),
    ],
)
def test_a_careless_source_may_lose_apostrophes(source, target, wanted):
    assert careless(source.encode(), target.encode(), 4).decode() == wanted


def test_a_careless_source_may_be_a_title():
    source = "it's a red-and-blue cat, it isn't in a_b.pdf, https://cat.org!"
    title = careless(source.encode(), b"Un chat, pas a_b.pdf, https://cat.org !", 14).decode()
    assert title == "Its A Red-And-Blue cat, It Isnt In a_b.pdf, https://cat.org"


def test_a_careless_source_may_lack_spaces_behind_commas():
    source = b"Tom, a cat, and 1,000 dogs , no, 5, 100."
    assert careless(source, b"x", 16) == b"Tom,a cat,and 1,000 dogs , no, 5, 100."


def test_a_careless_source_is_one_of_ten(text):
    """As often as any other."""
    corpus = ParallelCorpus(["See, the cat's here."] * 2000, ["Le chat est ici."] * 2000)
    batching = Batching(2000, pool_batches=1, careless_sources=0.3)
    ((inputs, *_), *_) = next(iter(stream_batches(corpus, text, text, batching)))
    sources = [x.decode() for x in text.detokenize(inputs["source"]).numpy()]
    forms = {
        x + ", the cat" + y + z
        for x in ("See", "see")
        for y in ("'s", "s")
        for z in (" here", " here.")
    }
    others = {"See, The Cat's Here", "See, The Cats Here", "See,the cat's here."}
    careless_ones = forms.union(others) - {"See, the cat's here."}
    assert {*sources} == {*careless_ones, "See, the cat's here."}
    for form in careless_ones:
        assert sources.count(form) / 2000 == pytest.approx(0.3 / 10, abs=0.015)


@pytest.mark.parametrize(
    ("pattern", "kinds"),
    [
        (r"saw (\S+?) cats", "1,1 $1 £1.1 1% 1:1 1/1/1 1-1-1 1.1.1 1.1"),
        (r"[Yy]esterday (\S+) saw", "A A-A A-1 A1 a@a.a a.a a_a.a a.a.a a://a.a %a {a}"),
    ],
)
def test_every_kind_of_number_and_name_is_drawn(text, pattern, kinds):
    every = [x for epoch in range(12) for _, x, _ in pairs_of(text, epoch)]
    new = [found[1] for x in every if (found := re.search(pattern, x))]
    for shape, letters in (("1", "[0-9]+"), ("A", "[A-Z]+[a-z]*"), ("a", "[a-z]+")):
        new = [re.sub(letters, shape, x) for x in new]
    assert {*new}.issuperset(kinds.split())


def test_a_stream_that_resumes_draws_the_same(text):
    corpus = ParallelCorpus(SOURCE * 20, TARGET * 20)
    shares = {"synthetic_pairs": 0.5, "careless_sources": 0.5}
    batching = Batching(8, pool_batches=2, shuffle="each_epoch", seed=1, **shares)
    stream = [*stream_batches(corpus, text, text, batching).take(45)]
    position = [int(part) for part in stream[25][1]]
    assert position[0] == 1
    again = stream_batches(corpus, text, text, batching, type(stream[25][1])(*position)).take(19)
    for one, other in zip(stream[26:], again, strict=True):
        np.testing.assert_array_equal(one[0][0]["source"], other[0][0]["source"])
        np.testing.assert_array_equal(one[0][1], other[0][1])


def test_words_are_refused():
    text = WordTokenizer(Vocabulary(["[PAD]", "[UNK]", "[END]", "a"]))
    corpus = ParallelCorpus(["a"], ["a"])
    with pytest.raises(ValueError, match="synthetic_pairs"):
        stream_batches(corpus, text, text, Batching(synthetic_pairs=0.1))
