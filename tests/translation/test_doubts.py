"""Doubts and confidence, against counting."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bahdanau_tf.text.copied import CODE
from bahdanau_tf.translation import doubts
from bahdanau_tf.translation.habits import RARE, Habits
from bahdanau_tf.translation.result import Translation

USUAL = frozenset("abcdefghijklmnopqrstuvwxyz.0123456789")


def translation(source: str = "a", text: str = "b", **values: object) -> Translation:
    tokens = text.split()
    return Translation(source, text, tokens, source_tokens=source.split(), **values)


def told_of(habits: Habits, x: Translation, more: str = "") -> list[tuple[str, str]]:
    """The doubts, if the training also had these letters."""
    return [*map(tuple, habits.judged(x, USUAL | {*more}).doubts)]


def kinds(habits: Habits, x: Translation, more: str = "") -> list[str]:
    return [kind for kind, _ in told_of(habits, x, more)]


def details(habits: Habits, source: str, text: str, *some: str) -> list[str]:
    """Of the doubts of some kinds, or of all, if the training had the letters of the source."""
    told = told_of(habits, translation(source, text), source)
    return [detail for kind, detail in told if kind in some or not some]


def test_words_are_doubted_for_less_than_sentences():
    habits = Habits(longest=4, kept="", translated="", replaced="visit", ends=True, split=0.0)
    x = translation("visit Oslo B52 in 1999 ß.", "ñ visit o o o", finished=False)
    x = replace(x, source_offsets=[(n, n + 1) for n in range(len(x.source))])
    wanted = {"words", "number", "name", "code", "untranslated", "repeated", "long"}
    assert {*kinds(habits, x)} >= wanted
    short = replace(habits, is_short=True)
    assert kinds(short, x) == ["characters", "cut", "repeated", "long"]
    assert Habits.joined([short, short]).is_short


@pytest.mark.parametrize(
    ("source", "text", "missing"),
    [
        ("347 books", "37 livres", ["347"]),
        ("$20", "120 dollars", ["20"]),
        ("3.50", "350", ["3", "50"]),
        ("3.50", "3,50", []),
        ("9:45", "9 h 45", []),
        ("9:45", "9 h 30", ["45"]),
        ("14,000 men", "14\u202f000 hommes", []),
        ("14,000 men", "14000 hommes", []),
        ("10 p.m.", "22 h", []),
        ("10 a.m.", "21 h", ["10"]),
        ("20 dollars", "8 dollars", ["20"]),
        ("12 cats", "0 chats", ["12"]),
        ("1,234,567", "1.234.567", []),
        ("2026-11-28", "28/11/2026", []),
        ("\uff13\uff15 \u500b", "35 of them", []),  # full width
        ("\uff13\u5339", "a cat", ["3"]),
        ("3\u67089\u65e5", "March 9", []),
        ("2 cats", "deux chats", ["2"]),
        ("the 4th, a B2, 3\u65e5", "", ["3"]),
        ("1980-12-12", "1980-12", ["12"]),
        ("12 and 12 and 13", "12 et 12", ["13"]),
    ],
)
def test_numbers_that_are_missing(source: str, text: str, missing: list[str]) -> None:
    assert doubts.missing_numbers(source, text) == missing


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("no no", ""),
        ("no no no", "no"),
        ("a b a b a b c", "a b"),
        ("so a b c d a b c d a b c d", "a b c d"),
        ("Sir, sir sir!", "sir"),
        ("x \u263a\u263b\u263a\u263b\u263a\u263b\u263a\u263b", "\u263a\u263b" * 4),
        ("1000000", ""),
        ("1000000000000", "0" * 9),
        ("a b a c a b", ""),
        ("to buy the scale, the scale.", "the scale"),
        ("He has had it.", ""),
        ("チーズのチーズを食べる。", "チーズのチーズ"),
        ("練習を練習する。", "練習を練習"),
        ("不可能を可能にする。", ""),
        ("レストランにランチを", ""),
        ("", ""),
    ],
)
def test_repeated_phrases(text: str, phrase: str) -> None:
    assert doubts.repeated_phrase(text) == phrase
    assert doubts.repeated_phrase("k a k a", 3) == ""


def test_characters_are_compared_in_any_width() -> None:
    text = "a cat\u00a0\uff42 \u201cno\u201d \u263a\u201d"
    assert doubts.strange_characters(text, USUAL) == "“”☺"
    assert doubts.strange_characters("가나", "\u1100\u1161") == "나"  # the letters of 가


@pytest.mark.parametrize(
    ("source", "text", "strange"),
    [
        ("a=b", "a=b", ""),  # signs that are carried over
        ("a=b", "a b", "="),
        ("so \u263a!", "si\u263a", ""),
        ("I met Zo\u00eb, so", "I zo Zo\u00eb.", ""),  # a name
        ("zo\u00eb", "zo\u00eb", "\u00eb"),  # a word
        ("I met Zoe\u0308", "Zo\u00eb", ""),
        ("\ub098\ub294", "\ub098\ub294", "\ub098\ub294"),
    ],
)
def test_characters_that_are_carried_over_are_no_doubt(
    source: str, text: str, strange: str
) -> None:
    assert doubts.unread_characters(source, text, USUAL | {*"AI,!"}) == strange


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ("Write to a.b@c.org, or see www.cc.org.", "a.b@c.org www.cc.org"),
        ("https://a.b/?c=1&d! x_1.csv: AB-12 B52 mp3", "https://a.b/?c=1&d x_1.csv AB-12 B52 mp3"),
        ("p.m., e.g. at 9:45, the 25th, 100%, U.S.A., mid-1990s, and/or, it's 3.50...", ""),
    ],
)
def test_codes_are_what_no_language_changes(source: str, codes: str) -> None:
    assert CODE.findall(source) == codes.split()


@pytest.mark.parametrize(
    ("text", "is_alone"),
    [
        ('a "b" c', False),
        (':no".', True),
        ('\u00abno"', True),
        ("\u201cno\u201d", False),
        ("\u201eno\u201c", False),
        ("a (b) [c]", False),
        ("a (b", True),
    ],
)
def test_marks_that_are_alone(text: str, is_alone: bool) -> None:
    assert doubts.marks_alone(text) == is_alone


def test_new_words_are_those_in_pieces() -> None:
    """Names, numbers and codes do not count, nor does a single word."""
    pieces = ["The", " \u00e9", "t\u00e9", ", Ba", "rba", "ra", " a", "b", ".o", "rg", " f", "oo."]
    ends = [*itertools.accumulate(len(x.encode()) for x in pieces)]
    offsets = [*itertools.pairwise([0, *ends])]
    x = Translation("".join(pieces), source_offsets=offsets)
    assert doubts.new_words(x) == (["\u00e9t\u00e9", "foo"], 1.0)
    cut = Translation(x.source, source_offsets=offsets[:10])
    assert doubts.new_words(cut) == (["\u00e9t\u00e9"], 0.0)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("I met Barbara Smith in May. Mr. Weber's dog, too.", "Barbara Smith May Weber"),
        ("Yes. Please say \u201cHello\u201d to Rene\u0301, OK? NASA did.", "Ren\u00e9"),
        ("The Lord Of The Rings", ""),  # a title
        ("It's 5 p.m. Let's go to Oslo. In the U.S. He sees Bo.", "Oslo Bo"),
    ],
)
def test_names_are_capitalized_within_a_sentence(source: str, names: str) -> None:
    assert doubts.names_of(source) == names.split()


def test_words_end_where_the_script_changes() -> None:
    """Japanese joins all its words, and Korean its particles to names."""
    text = "Annaは本を読みカフェーへTom은 학교에 갔다 \u00e9t\u00e9"
    words = " ".join(doubts.words_of(text))
    assert words == "Anna は 本 を 読 み カフェー へ Tom 은 학교에 갔다 \u00e9t\u00e9"
    habits = Habits.of_pairs([("it is March", "3月だ")] * 5 + [("it is Bo", "Boだ")] * 1000)
    assert habits.counterparts == {"March": "月"}
    habits = replace(habits, translated="March", vocabulary=None)
    for source, text, told in (
        ("I saw Bo", "Boを見た", []),
        ("I saw Bo", "を見た", ["name"]),
        ("in March", "三月に", []),
        ("in March", "春に", ["dropped"]),
    ):
        assert kinds(habits, translation(source, text), "IBM") == told, text


def test_words_and_names_that_the_training_never_had_so() -> None:
    pairs = [("the table of Jim", "la table de Jim"), ("the cat of Anna in London", "")]
    pairs += [("the dogs of Bo", "les chiens de Bo")] * 200
    pairs = [("the cat in London", "le chat de Londres"), *pairs]
    habits = replace(Habits.of_pairs(pairs), vocabulary=None)
    assert (habits.kept, habits.translated) == ("table", "Anna London")
    x = translation("a table, the cat and Bo in London", "Table, cat")
    assert told_of(habits, x, "BL,") == [("name", "Bo"), ("untranslated", "cat")]
    pairs = [("it may rain", "pluie")] * 20 + [("a will", "un")] * 20
    replaced = Habits.of_pairs([*pairs, ("go on", "ici"), ("Will", "Will")]).replaced
    assert replaced == "a it may rain"
    assert told_of(Habits(replaced=replaced), translation("May I", "May Je"), "IMJ") == [
        ("untranslated", "May")
    ]
    assert kinds(Habits(replaced=replaced), translation("I May", "Je May"), "IMJ") == []
    for source, text, told in (
        ("see a@b.org", "b@c.org", ["a@b.org", "b@c.org"]),
        ("A4 paper at 2 p.m.", "A4-Papier 14h30", ["14h30"]),
        ("it is 2:30 p.m.", "il est 14h30", []),
        ("it is 5 km away", "5 km, 9 km/h, 3kg", []),
        ("kg of 5 kmx", "kg, 5 kmx", ["kg", "kmx"]),
    ):
        assert details(habits, source, text, "code", "untranslated") == told
    for spelled in ("a_b.pdf", "me@firm.org", "https://www.cat.org", "{name}", "%(dog)s"):
        assert kinds(habits, translation(spelled, spelled), spelled) == [], spelled
    german = [("der Hund im Garten", "the dog"), ("die Katze im Haus", "the cat")] * 9
    pairs = [*german, ("der Wert von Anna", "the value"), ("es war", "it was")]
    habits = Habits.of_pairs(pairs)
    assert (habits.kept, habits.translated) == ("", None)
    assert Habits.of_pairs(pairs, keeps_names=True).translated is None
    names = [("I saw Tom", "トムを見た"), ("Anna came", "アンナだ"), ("The cat in Rome", "猫だ")]
    habits = Habits.of_pairs([*names * 9, ("the end", "終わり")], keeps_names=True)
    assert habits.translated == "Anna I Rome Tom"
    assert Habits.of_pairs(names).translated is None
    for name, told in (("Zofia", ["name"]), ("Anna", [])):
        assert kinds(habits, translation(f"I saw {name}", "見た"), f"{name}Iw") == told
    copies = [(word, word) for word in ("ab", "cd")]
    same = {"kept": None, "translated": None, "copies": True, "singly": True, "stops": ""}
    wanted = Habits(vocabulary="ab cd", often_new=True, capitals="", **same)
    assert Habits.of_pairs(copies) == wanted


def test_numbers_and_codes_that_most_translations_change_are_no_doubts() -> None:
    pairs = [(f"on May {i}, 1{i:02}0", f"1{i:02}0-05") for i in range(10, 20)] + [("7", "7")] * 5
    pairs += [(f"report_{i}.pdf", "a report") for i in range(10, 20)]
    habits = Habits.of_pairs(pairs)
    assert habits.changed == ("number", "code")
    x = translation("on May 3, a_1.csv", "b")
    assert {*kinds(habits, x, x.source)} == {*kinds(Habits(), x, x.source)} - {"code"}
    assert Habits.of_pairs(pairs[10:15] * 3).changed == ()


def test_words_that_the_training_never_had() -> None:
    pairs = [("The cat can't sleep.", "a b"), ("Two dogs ran to Rome.", "c d")] * 20
    habits = Habits(vocabulary=Habits.of_pairs(pairs).vocabulary)
    for source, text, told in (
        ("Cats sleep.", "x", "cats"),
        ("two dogs cant sleep in rome", "x", "in"),
        ("The zorbling ran.", "x", "zorbling"),
        ("The zorbling ran.", "le Zorbling", ""),
        ("The dogs ran to Oslo.", "x", ""),
        ("A cat ran 3 km to a_b.pdf.", "x", ""),
    ):
        assert details(habits, source, text, "words") == [told] * bool(told)
    rare = [(f"cat {x}{y}", "a") for x in "abcdefgh" for y in "xyz"]
    many, few = Habits.of_pairs([*pairs, *rare]), Habits.of_pairs([*pairs, *rare[:4]])
    assert (many.often_new, few.often_new) == (True, False)
    for own in (many, few):
        assert kinds(own, translation("the zebra", "a"), "zb") == ["words"] * (not own.often_new)


def test_a_source_that_ends_as_no_sentence_of_the_training() -> None:
    pairs = [("I ate.", "a."), ("and then:", "b:")] * 5 + [("Dear Tom,", "c,")] * 4
    habits = Habits.of_pairs(pairs)
    assert habits.stops == ":"
    for source, is_doubted in (("so, ", True), ("so:", False), ("so.", False), ("so", False)):
        x = translation(source, "o.")
        assert ("fragment" in kinds(Habits(stops=habits.stops), x)) is is_doubted
        assert "fragment" not in kinds(Habits(), x)


def test_months_and_days_are_expected_though_they_are_rare() -> None:
    pairs = [(f"in {x} he slept", f"{n}月に寝た") for x, n in (("March", 3), ("June", 6)) * 20]
    pairs += [
        (f"on {x}, he slept", f"{n}曜に") for x, n in (("Friday", "金"), ("Sunday", "日")) * 20
    ]
    pairs += [("May I?", "いい？")] * 9
    habits = Habits.of_pairs(pairs * 2)
    assert habits.counterparts["July"] == "7"
    assert "水" in habits.counterparts["Wednesday"]
    assert "May" not in habits.counterparts
    assert "dropped" in kinds(habits, translation("in July", "8月に"))
    assert "dropped" not in kinds(habits, translation("in July", "7月に"))


def test_texts_are_split_if_nearly_all_lines_of_the_training_are_single_sentences() -> None:
    pairs = [("Go! Dr. Li left.", "x")] * 2 + [("Dr. Li left...", "x. y.")] * 96
    assert Habits.of_pairs(pairs).singly
    assert Habits.of_pairs(pairs).copies
    assert Habits.of_pairs([*pairs * 99, ("5 %", "5\u00a0%")]).copies
    assert not Habits.of_pairs([*pairs * 99, ("5 %", "five")]).copies
    assert not Habits.of_pairs([*pairs, *[("1 2", "1 2")] * 9]).copies
    assert not Habits.of_pairs([*pairs, ("A? B!", "x")]).singly
    assert not Habits().singly


def test_a_translation_ends_with_a_mark_if_those_of_the_training_do() -> None:
    pairs = [("I ate.", "\u98df\u3079\u305f\u3002")] * 98 + [("Who?", "\u8ab0")] * 2
    habits = replace(Habits.of_pairs([*pairs, ("a title", "Titel")]), vocabulary=None)
    assert habits.ends
    assert not Habits.of_pairs([*pairs, ("Who?", "\u8ab0")]).ends
    for source, text, told in (
        ("I ate.", "Bo\u306f", ["end"]),
        ('He said "no."', "\u300c\u3044\u3044\u3048\u3002\u300d", []),
        ("I ate", "Bo\u306f", []),
        ("I ate.", "b!", []),
        ("I ate \U0001f600.", "b! \U0001f600\ufe0f", []),
    ):
        assert kinds(habits, translation(source, text), source) == told, text
    assert kinds(habits, translation("I ate.", "Bo", finished=False), "I") == ["cut"]


@pytest.mark.parametrize(
    ("source", "text", "told"),
    [
        ("He came. She left.", "Elle est partie.", ["1/2"]),
        ("No! Why? Tom left.", "Non ! Tom.", ["2/3"]),
        ("Mr. Li left. No.", "M. Li, no.", []),
        ("On Mt. Fuji.", "Fuji", []),
        ("\u00ab Yes. No. \u00bb", '"Yes, no."', []),
        ("He came. She left.", "Il est venu ; elle est partie. Ah.", []),
        ('"Yes. No."', "「はい」", []),
        ("Oh. No.", "ああ。いや。", []),
        ("Excuse me. Where?", "すみません、どこ。", []),
    ],
)
def test_fewer_sentences_than_in_the_source(source, text, told) -> None:
    for ends in (True, False):
        assert details(Habits(ends=ends), source, text, "sentences") == told * ends


def test_counterparts_are_in_nearly_all_pairs_and_own() -> None:
    """A month of 5 pairs; a digit that words stand for; none that is frequent, rare or free."""
    pairs = [("it is", "le en \xe0 je")] * 1500
    pairs += [("it is March", "en mars je")] * 5 + [("it is May 1", "le 1 mai")] * 4
    pairs += [("it is 6", "\xe0 6 heures")] * 6 + [("it is 6", "six heures")] * 3
    pairs += [("it is 7", "\xe0 7 heures")] * 7 + [("odd", f"je le {i}") for i in "abcdef"]
    habits = Habits.of_pairs(pairs)
    assert habits.counterparts == {"March": "mars", "6": "6 six", "7": "7"}
    french = [("french fries", "frites")] * 6 + [("it is", "le")] * 2000
    assert Habits.of_pairs(french).counterparts["french"] == "frites"
    french += [("French is hard", "fran\u00e7ais dur")] * 6  # the language begins a sentence
    assert Habits.of_pairs(french).counterparts["french"] == "frites fran\u00e7ais"
    habits = replace(habits, vocabulary=None)
    for source, text, told in (
        ("in March", "en Mars", []),
        ("in March", "en March", [("dropped", "March")]),
        ("6 at March.com", "March.com, six", []),
        ("at 6 and 8", "7", [("number", "6"), ("added", "7")]),
        ("at 18", "6 h", []),
        ("the 6th", "le dernier", []),
    ):
        assert told_of(habits, translation(source, text), "M,") == told, source


@pytest.mark.parametrize(
    ("source", "text", "told"),
    [
        ("Kitchen.", "Tentez.", ["kitchen"]),
        ("Kitchen", "Cuisine", []),
        ("My Kitchen.", "Mon chat.", []),
        ("Cat.", "Chat.", []),
        ("March 3.", "3 mars.", []),
        ("March 3.", "3 avril.", ["March"]),
    ],
)
def test_a_first_word_is_known_without_its_capital(source, text, told) -> None:
    habits = Habits(counterparts={"kitchen": "cuisine", "March": "mars", "march": "marche"})
    assert details(habits, source, text, "dropped") == told


def test_confidence_is_the_share_of_less_likely_translations_of_similar_lengths() -> None:
    random = np.random.default_rng(1)
    lengths = random.integers(2, 40, 4000)
    log_probs = -random.gamma(2.0, 0.2, 4000) * lengths * (1 + lengths / 40)
    shares = random.random(4000)
    habits = Habits().measured(log_probs, lengths, shares)
    assert np.mean(shares > habits.split) == pytest.approx(RARE, abs=0.001)
    groups = [*itertools.pairwise([1, *habits.lengths])]
    for length, mean in ((3, -0.2), (15, -0.4), (39, -1.5), (20, -9.0), (8, 0.0)):
        start, end = next((a, b) for a, b in groups if a < length <= b)
        similar = (start < lengths) & (lengths <= end)
        share = np.mean(log_probs[similar] / lengths[similar] < mean)
        text = " ".join("x" * (length - 1))
        x = translation(text=text, log_prob=mean * length)
        assert habits.judged(x, USUAL).confidence == pytest.approx(share, abs=0.01)


def test_groups_of_lengths_between_which_there_are_none() -> None:
    """The third of the 200 is between 3 and 5, the half between 5 and 15."""
    habits = Habits().measured([-1.0] * 200, [3] * 20 + [5] * 80 + [15] * 100)
    assert {*habits.lengths} <= {3, 5, 15}
    assert habits.lengths[-1] == 15


def test_each_doubt_has_its_cause() -> None:
    habits = Habits(longest=3).measured([-1.0] * 100, [2] * 100)
    usual = {"log_prob": -0.5}
    for source, text, kind in (
        *(("a", "b", ""), ("\u4eba", "b", "characters"), ("12", "b", "number")),
        *(("6", "66", "added"), ("in 2024", "2024, 2024", "added"), ("twenty", "20", "")),
        *(("march 9", "3\u67089\u65e5", ""), ("march 9", "3\u67088\u65e5", "added")),
        *(("2 p.m.", "14 h", ""), ("a", "b b b", "repeated"), ("a a a", "b b b", "")),
        *(("to ana bo", "ana Bo Bo", ""), ("b2", "b", "code"), ("a", "(b", "marks")),
        ("a b c d", "b", "long"),
    ):
        assert kinds(habits, translation(source, text, **usual)) == [kind] * bool(kind), source
    for is_cut in ({"finished": False}, {"cut": True}):
        assert kinds(habits, translation(**is_cut, **usual)) == ["cut"]
    doubled = replace(translation("to ana bo", "ana Bo Bo", **usual), source="to ana Bo")
    assert kinds(habits, doubled) == ["repeated"]
    new = translation("ab cd", source_offsets=[(0, 1), (1, 2), (2, 4), (4, 5)], **usual)
    assert kinds(habits, new) == []
    assert kinds(replace(habits, split=0.5), new) == []  # the model is sure of it
    assert kinds(replace(habits, split=0.5, lengths=()), new) == ["words"]
    assert kinds(habits, translation(log_prob=-9.0)) == ["unlikely"]
    assert kinds(habits, translation("a", "", log_prob=-9.0)) == ["unlikely"]
    assert kinds(habits, translation("", "", log_prob=-9.0)) == []
    assert kinds(Habits(), translation("a", "", log_prob=-9.0)) == []


def test_an_ensemble_knows_the_lengths_that_all_its_members_know() -> None:
    rows = [(None, "a"), (4, "b"), (3, "ab"), (9, "abc")]
    members = [
        Habits(n, 5, [2], [[0.0] * 21], 0.5, y, False, str(n), None, y, True, "r", {"x": y, y: y})
        for n, y in rows
    ]
    words, rest = "a ab abc b", (True, "r", {"x": "a b ab abc"})
    joined = Habits(3, 5, (), (), None, words, False, "3 4 9 None", None, words, *rest)
    assert Habits.joined(members) == joined


def test_alternatives_are_judged_too() -> None:
    x = translation("12", "12", alternatives=[translation("12", "")])
    judged = Habits().judged(x, USUAL)
    assert judged.doubts == ()
    assert [str(doubt) for doubt in judged.alternatives[0].doubts] == ["the number 12 is missing"]


def test_a_model_that_is_trained_on_keeps_its_earlier_habits():
    """Words of both trainings are known; the scores are the earlier ones until it has its own."""
    first = [("a red cat, Ana", "un chat rouge, Ana"), *[(f"w{n} is here", "x") for n in "abc"]] * 9
    earlier = Habits.of_pairs(first).measured([-1.0, -2.0], [3, 3])
    earlier = replace(earlier, longest=50, singly=True)
    own = replace(Habits.of_pairs([("the pedal", "la pedal")] * 9), longest=60, singly=False)
    both = own.after(earlier)
    assert {"red", "cat", "pedal"} <= {*both.vocabulary.split()}
    assert {*own.kept.split()} == {"pedal"}
    assert {*both.kept.split()} == {*own.kept.split(), *earlier.kept.split()}
    assert not {*both.replaced.split()} & {*both.kept.split()}
    assert (both.longest, both.singly) == (60, False)
    assert (both.lengths, both.scores) == (earlier.lengths, earlier.scores)
    assert both.measured([-5.0], [2]).lengths == [2]
    unknown = own.after(Habits())
    assert unknown.vocabulary is None
    assert unknown.longest is None
