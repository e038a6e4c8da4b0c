"""Lines that are not searched, since their translations are known."""

import pickle

import numpy as np
import pytest
from refusals import refused
from toys import english, french, toy_translator

from bahdanau_tf import Decoding, Translation, Translator
from bahdanau_tf.commands.files import most_frequent
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.memory import TranslationMemory, with_known


def test_the_most_frequent_target_is_remembered_and_the_first_of_equals():
    pairs = [("a", "x"), ("b", "y"), ("a", "z"), ("a", "z"), ("b", "x")]
    assert most_frequent(pairs) == {"a": "z", "b": "y"}


@pytest.mark.parametrize("prefixes", [None, ["", "p", "", "", ""]])
def test_lines_of_the_memory_are_not_searched_unless_they_have_a_prefix(prefixes):
    seen = []

    def work(decoding, sentences, starts):
        seen.append((sentences, starts))
        return (Translation(x, x.upper()) for x in sentences)

    remembering = with_known(work, {"a": "z", "e": ""}.get)
    rows = [*remembering(Decoding(), ["a", "a", "b", "e", b"a"], prefixes)]
    assert seen == [(["a", "b"], ["p", ""]) if prefixes else (["b"], None)]
    second = "A" if prefixes else "z"
    assert [x.text for x in rows] == ["z", second, "B", "", "z"]
    assert [x.source for x in rows] == [*"aabea"]


@pytest.mark.usefixtures("eager_search")
def test_text_without_letters_stays_as_it_is():
    """If training kept such, and not where something must be in the translation."""
    own = toy_translator(english(), french())
    texts = [" 12:30 ", "(555) 123-4567", "- -", "\u263a", "3 p.m."]
    searched = own.translate(texts)
    own.habits = Habits(copies=True)
    rows = own.translate(texts)
    assert [x.text for x in rows] == [*(x.strip() for x in texts[:4]), searched[4].text]
    assert [x.doubts for x in rows[:4]] == [()] * 4
    assert own.translate("<b>12:30</b> ", markup=True).text == "<b>12:30</b>"
    assert own.translate("12", prefixes="le").text.startswith("le")
    assert own.translate(texts[0], terms={"cat": "chat"}).text == searched[0].text
    own.habits = Habits(copies=True, is_short=True)
    assert [x.text for x in own.translate(texts)] == [x.text for x in searched]


@pytest.mark.usefixtures("eager_search")
def test_a_translator_answers_from_its_memory():
    own = toy_translator(english(), french())
    plain = own.translate(["a dog", "the cat"])
    own.memory = {"the cat": "!"}
    rows = own.translate(["a dog", "the cat"])
    assert [x.text for x in rows] == [plain[0].text, "!"]
    assert (rows[1].tokens, rows[1].doubts) == (["!"], ())
    (aligned,) = own.align(["the cat"], ["!"])
    assert rows[1].score == pytest.approx(aligned.score)
    np.testing.assert_allclose(rows[1].weights, aligned.weights, atol=1e-6)
    for options in ({"n_best": 2}, {"sampling": True}):
        assert own.translate("the cat", **options).text != "!"
    assert own.translate("the cat").text == "!"
    assert own.translate("the cat", terms={"cat": "chat"}).doubts != ()
    own.memory = {"The cat. A dog.": "!", "A dog.": "?"}
    own.habits = Habits(singly=True)
    assert own.translate("The cat. A dog.").text == "!"
    assert own.translate("A dog. A dog.").text == "? ?"
    assert own.translate(["A dog."] * 2, prefixes=np.array(["", "le"]))[0].text == "?"
    refused(lambda: own.translate(["A dog."] * 2, prefixes=[]), "2 sentences, 0 prefixes")
    refused(lambda: setattr(own, "memory", "memory.tsv"), "memory is 'memory.tsv'", "a dict")
    refused(lambda: setattr(own, "memory", [("a", "b")]), "memory is [('a', 'b')]", "a dict")
    refused(lambda: setattr(own, "memory", {"a": None}), "memory is {'a': None}", "a dict")


KNOWN = {
    "How are you?": "Comment vas-tu ?",
    "Good night.": "Bonne nuit.",
    "Stop!": "Arr\u00eatez !",
    "umbrella": "parapluie",
    "Turkey": "la Turquie",
    "us": "nous",
    "WHO": "OMS",
    "Who?": "Qui ?",
    "It's late.": "Il est tard.",
    "Really": "Vraiment",
    "Really?": "C'est vrai ?",
}


@pytest.mark.parametrize(
    ("line", "translation"),
    [
        *KNOWN.items(),
        ("how are you", "Comment vas-tu ?"),
        ("HOW ARE YOU?", "Comment vas-tu ?"),
        ("How are you.", None),
        ("Good night", "Bonne nuit"),
        ("good night!", "Bonne nuit !"),
        ("Good night?", None),
        ("Good night...", None),
        ("Good night!!", None),
        ("Umbrella", "Parapluie"),
        ("UMBRELLA", "Parapluie"),
        ("umbrella.", None),
        ("turkey", None),
        ("TURKEY", "la Turquie"),
        ("US", None),
        ("Us", "Nous"),
        ("who", "Qui ?"),
        ("Who", "Qui ?"),
        ("it\u2019s late", "Il est tard"),
        ("stop", "Arr\u00eatez !"),
        ("stop.", None),
        ("really", "C'est vrai ?"),
        ("really?", "C'est vrai ?"),
        ("", None),
        ("?", None),
    ],
)
def test_a_line_is_found_whose_capitals_or_end_differ(line, translation):
    memory = TranslationMemory(KNOWN)
    assert memory.get(line) == translation
    assert (line in memory) == (translation is not None)


def test_a_memory_is_a_dict():
    memory = TranslationMemory(KNOWN)
    assert memory == KNOWN
    assert [*memory.items()] == [*KNOWN.items()]
    memory["good night"] = "bonne nuit"
    assert (memory["good night"], memory["Good night"]) == ("bonne nuit", "Bonne nuit")
    del memory["Good night."], memory["good night"]
    assert "Good night" not in memory
    assert TranslationMemory({"\u201cNo\u201d": "\u00ab Non \u00bb"})['"no"'] == "\u00ab Non \u00bb"
    assert "Ja!" not in TranslationMemory({"Ja.": "Oui."})  # which mark has the translation?
    with pytest.raises(KeyError, match="dog"):
        memory["dog"]


def test_the_mark_is_that_of_the_memory():
    japanese = TranslationMemory(
        {"Stop!": "\u6b62\u307e\u308c\uff01", "Hello.": "\u3084\u3042\u3002"}
    )
    assert [japanese["hello!"], japanese["hello"]] == ["\u3084\u3042\uff01", "\u3084\u3042"]


def test_a_memory_is_saved_and_pickled(tmp_path):
    own = toy_translator(english(), french())
    own.save(tmp_path / "none")
    assert not (tmp_path / "none" / "memory.json").exists()
    own.memory = KNOWN
    own.save(tmp_path / "own")
    for copied in (Translator.load(tmp_path / "own"), pickle.loads(pickle.dumps(own))):
        assert copied.memory == KNOWN
        assert copied.memory.get("how are you") == KNOWN["How are you?"]
