"""Answers from memory."""

import pytest
from toys import english, french, toy_translator

from bahdanau_tf import Decoding, Translation
from bahdanau_tf.commands.files import most_frequent
from bahdanau_tf.translation.batches import with_memory


def test_the_most_frequent_target_is_remembered_and_the_first_of_equals():
    pairs = [("a", "x"), ("b", "y"), ("a", "z"), ("a", "z"), ("b", "x")]
    assert most_frequent(pairs) == {"a": "z", "b": "y"}


@pytest.mark.parametrize("prefixes", [None, ["", "p", "", "", ""]])
def test_lines_of_the_memory_are_not_searched_unless_they_have_a_prefix(prefixes):
    seen = []

    def work(decoding, sentences, starts):
        seen.append((sentences, starts))
        return (Translation(x, x.upper()) for x in sentences)

    remembering = with_memory(work, {"a": "z", "e": ""})
    rows = [*remembering(Decoding(), ["a", "a", "b", "e", b"a"], prefixes)]
    if prefixes is None:
        assert seen == [(["b"], None)]
    else:
        assert seen == [(["a", "b"], ["p", ""])]
    second = "A" if prefixes else "z"
    assert [x.text for x in rows] == ["z", second, "B", "", "z"]
    assert [x.source for x in rows] == [*"aabea"]


@pytest.mark.usefixtures("eager_search")
def test_a_translator_answers_from_its_memory():
    own = toy_translator(english(), french())
    plain = own.translate(["a dog", "the cat"])
    own.memory = {"the cat": "!"}
    rows = own.translate(["a dog", "the cat"])
    assert [x.text for x in rows] == [plain[0].text, "!"]
    assert (rows[1].tokens, rows[1].doubts) == ([], ())
    assert own.translate("the cat").text == "!"
