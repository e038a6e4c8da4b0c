"""Lines whose capitals say nothing, read with those that training mostly writes."""

from dataclasses import replace

import numpy as np
import pytest
from toys import english, french, toy_translator

from bahdanau_tf import Translation
from bahdanau_tf.options import Decoding
from bahdanau_tf.translation.capitals import names_alone, readings, with_readings
from bahdanau_tf.translation.habits import Habits

KNOWN = "a at b brien can cat do don i in is london may nato o polish s see sleeps t the to tom tv"
NAMES = "B Brien I London NATO Polish See_Zorb TV Tom"
HABITS = Habits(vocabulary=KNOWN, capitals=NAMES, begins=True)


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        # As it is.
        ("The cat sleeps.", ["The cat sleeps."]),
        ("the cat", ["the cat"]),
        ("Zorblax", ["Zorblax"]),
        ("NATO TV", ["NATO TV"]),
        ("12:30 ☺", ["12:30 ☺"]),
        ("", [""]),
        # Without capitals.
        ("the cat sees tom", ["The cat sees Tom"]),
        ("the cat.", ["The cat."]),
        ("3 cats in london", ["3 cats in London"]),
        ("london", ["london", "London"]),
        ("i can't see o'brien", ["I can't see o'Brien"]),
        ("i see zorb see", ["I See Zorb see"]),
        # In capitals.
        ("TOM IS AT NATO ZORB.", ["Tom is at NATO zorb."]),
        ("CAT", ["CAT", "Cat", "cat"]),
        ("SLEEPS!", ["Sleeps!", "sleeps!"]),
        ("ZORBLAX", ["ZORBLAX"]),
        ("DON'T SEE TOM'S TV", ["Don't see Tom's TV"]),
        # Titles.
        ("The Cat Sleeps", ["The Cat Sleeps", "The cat sleeps"]),
        ("The Cat in a TV", ["The Cat in a TV", "The cat in a TV"]),
        ("May Tom See Zorblax?", ["May Tom See Zorblax?", "May Tom see Zorblax?"]),
        ("The Polish Cat sleeps", ["The Polish Cat sleeps"]),
        ("Don't See O'Brien", ["Don't See O'Brien", "Don't see O'Brien"]),
        ("A Cat See Zorb", ["A Cat See Zorb", "A cat See Zorb"]),
        # Some words in capitals.
        ("Tom sleeps, SLEEPS at NATO", ["Tom sleeps, sleeps at NATO"]),
        ("SLEEPS the zorb", ["Sleeps the zorb"]),
        ("see THE zorb, SLEEPS", ["see THE zorb, sleeps"]),  # short ones may be acronyms
        # A word alone.
        ("Cat", ["Cat", "cat"]),
        (" Cat. ", [" Cat. ", " cat. "]),
        ("Tom", ["Tom"]),
        # What is no word stays.
        ("The Cat IS-20 {IN} Is", ["The Cat IS-20 {IN} Is", "The cat IS-20 {IN} is"]),
        ("AT&T IS U.S. TV.", ["AT&T is U.S. TV."]),
        # Sentences of a text that is not split.
        ("Cat. The Cat. See tom.", ["Cat. The Cat. See tom.", "cat. The cat. See tom."]),
        # The small letter has another number of bytes.
        ("THE İN", ["THE İN"]),
    ],
)
def test_a_text_is_read_in_these_forms(text, forms):
    assert readings(text, HABITS) == forms


def test_nothing_is_read_otherwise_if_the_words_of_training_are_unknown():
    for habits in (
        Habits(vocabulary=KNOWN),
        Habits(capitals="Tom"),
        Habits(vocabulary=KNOWN, capitals=""),
        Habits(vocabulary=KNOWN, capitals="Tom", is_short=True),
    ):
        assert readings("THE CAT SEES tom", habits) == ["THE CAT SEES tom"]
    truecased = replace(HABITS, begins=False)
    assert readings("the cat sees tom.", truecased) == ["the cat sees Tom."]
    assert readings("THE CAT SEES", truecased) == ["the cat sees"]
    assert readings("The Cat Sleeps", truecased)[1:] == ["the cat sleeps"]


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        *(("Tom", "Tom"), ("TOM", "Tom"), (" tom-London! ", "Tom-London!"), ("Zorb", "Zorb")),
        *(("Kim", "\uae40"), ("Spain", "Spain"), ("Spanish", "Spanish"), ("Ona", "Ona")),
        *(("Mia", "\u30df"), ("Zorbs", "Zorbs"), ("Joe", "Joe"), ("Lee", "Lee"), ("Ray", "Ray")),
        *(("Brien", "\u30d6"), ("Brien Zorb", "Brien Zorb"), ("O'Zorb", None), ("NASA", "NASA")),
        *(("London", None), ("London Polish", None), ("Polish Tom", "Polish Tom"), ("I", None)),
        *(("Cat", None), ("Tom cat", None), ("zorb", None), ("NATO", None), ("TV", None)),
        *(
            ("Tom & Zorb", None),
            ("Mr. Zorb", None),
            ("Tom 3", None),
            ("Tom tom@a.org", None),
            ("", None),
            ("!", None),
        ),
    ],
)
def test_names_alone_stay_if_translations_keep_them(text, translation):
    lost = "B London Polish"
    table = {"Brien": "\u30d6", "Tom": "tom", "Zorbs": "\u4eac", "Mia": "mia \u30df", "Joe": "4"}
    table |= {"Lee": "\u30ab \u30ad", "Ray": "lee \u30af", "Kim": "\uae40", "Ona": "\uf900"}
    table |= {"Spain": "\u30b9", "Spanish": "\u30b9"}
    habits = replace(HABITS, translated=lost, counterparts=table)
    assert names_alone(text, habits) == translation
    assert names_alone(text, HABITS) is None
    assert names_alone(text, replace(habits, is_short=True)) is None


def test_names_that_training_has_alone_are_spelled_as_there():
    spelled = [("Lia", "リア"), ("Mia Lee", "ミア・リー"), ("Umbrella", "傘"), ("umbrella", "傘")]
    pairs = [("I saw Tom", "Tomを見た"), ("I saw Ann", "Annを見た"), *spelled]
    habits = replace(Habits.of_pairs(pairs), languages=["en", "ja"])
    assert habits.spellings == {"lia": "リア", "mia": "ミア", "lee": "リー"}
    for text, spelled in (("Lia", "リア"), ("lia Lee!", "リア・リー!"), ("Zorb", "Zorb")):
        assert names_alone(text, habits) == spelled
    assert names_alone("Lia Lee", replace(habits, languages=["en", "ko"])) == "リア リー"
    assert names_alone("Lia Zorb", habits) == "Lia Zorb"
    for other in (habits.after(Habits()), Habits().after(habits), Habits.joined([habits] * 2)):
        assert other.spellings == habits.spellings


def test_the_capitals_of_a_training_are_those_behind_first_words():
    lines = ["A cat sees Tom.", "tom sleeps", "Tom sees TV.", "The tv is iPod's.", "I see an iPod"]
    pairs = [(line, line) for line in [*lines, "Cats? No, I do", "THE tv", "Am I an ipod?"] * 2]
    habits = Habits.of_pairs(pairs)
    assert habits.begins
    assert not Habits.of_pairs([("a cat", "x"), ("A cat", "x")]).begins
    assert habits.capitals == "I iPod"  # Tom and TV are as often without one behind a first word
    more = Habits.of_pairs([("He saw Tom.", "x"), ("I am here.", "x")] * 3)
    assert more.capitals == "Tom"
    assert more.after(habits).capitals == Habits.joined([habits, more]).capitals == "I Tom iPod"
    assert more.after(Habits()).capitals is None
    lines = ["I like New York.", "New shoes", "In the New York, I", "in New York Tom is", "york"]
    pairs = [(x, "x") for x in [*lines, *["a new shoe"] * 4]]
    assert Habits.of_pairs(pairs).capitals == "I New_York York"
    assert Habits.of_pairs([*pairs, *[("new new york", "x")] * 3]).capitals == "I"


def scored(decoding, sentences, prefixes):
    """A word with a capital makes a line less likely by 1, a small i by 2."""
    for x in sentences:
        tokens = x.split()
        lost = sum(word[0].isupper() for word in tokens) + 2 * ("i" in x)
        ends = np.cumsum([len(word) + 1 for word in tokens])
        offsets = [
            (int(end) - len(word) - 1, int(end) - 1) for word, end in zip(tokens, ends, strict=True)
        ]
        other = Translation(x, x.swapcase(), log_prob=-9.0)
        yield Translation(
            **{"source": x, "text": x.lower(), "tokens": x.lower().split(), "log_prob": -lost},
            **{"source_tokens": tokens, "source_offsets": offsets, "target_offsets": offsets},
            alternatives=[other],
        )


def test_the_likeliest_form_is_translated_and_the_line_is_its_source():
    work = with_readings(scored, HABITS)
    lines = ["Cat", b"The Cat", "CAT", "is", "tom", "SEE CAT"]
    rows = [*work(Decoding(), lines, None)]
    assert [x.source for x in rows] == ["Cat", "The Cat", "CAT", "is", "tom", "SEE CAT"]
    assert [x.text for x in rows] == ["Cat", "the cat", "Cat", "is", "tom", "see cat"]
    assert rows[0].tokens == ["Cat"]
    assert [x.log_prob for x in rows] == [0, -1, 0, -2, 0, -1]
    assert [x.source_tokens for x in rows[:2]] == [["Cat"], ["The", "Cat"]]
    (row,) = work(Decoding(), ["Cat"], ["x"])
    assert row.text == "cat"  # its prefix says how it begins
    assert [x.alternatives[0].source for x in rows] == [x.source for x in rows]
    assert rows[1].alternatives[0].text == "tHE CAT"  # both begin with a capital


def copied(decoding, sentences, prefixes):
    """Words with a capital are kept, which is likelier."""
    for x in sentences:
        words = [word if word.istitle() else "mot" for word in x.split()]
        yield Translation(x, " ".join(words), log_prob=-len(x.split()) + x.count("T"))


def test_a_form_that_keeps_what_training_replaces_is_taken_only_if_all_do():
    lines = ["Tom See TV", "The Cat Sees"]
    rows = [*with_readings(copied, HABITS)(Decoding(), lines, None)]
    assert [x.text for x in rows] == ["Tom See mot", "The Cat Sees"]
    habits = replace(HABITS, replaced="cat the see")
    rows = [*with_readings(copied, habits)(Decoding(), lines, None)]
    assert [x.text for x in rows] == ["Tom mot mot", "The mot Sees"]


def test_each_form_has_the_prefix_of_its_line_and_attention_is_that_of_the_line(eager_search):
    own = toy_translator(english(), french())
    plain = own.translate("The Cat", attention={})
    own.habits = Habits(vocabulary="a dog the cat", capitals="Dog")
    texts = ["The Cat", "a dog", "the Cat Dog"]
    rows = own.translate(texts, prefixes=["le", "", "un"])
    assert [x.text.split()[0] for x in rows][::2] == ["le", "un"]
    assert [x.source for x in rows] == texts
    assert own.translate("The Cat", attention={}) == plain
