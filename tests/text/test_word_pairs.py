"""Words and their translations, from sentences that are made of known ones."""

import itertools

from bahdanau_tf.text.word_pairs import word_pairs

SYLLABLES = ["ba", "do", "ki", "lu", "me", "no", "pa", "ri"]
WORDS = ["".join(x) for x in itertools.islice(itertools.product(SYLLABLES, repeat=3), 70)]


def sentences(translations, source="I saw the {} there.", target="J'ai vu le {} ici.", count=12):
    return [(source.format(x), target.format(y)) for x, y in translations for _ in range(count)]


def test_a_word_is_what_stands_in_its_pairs_and_in_few_others():
    table = [(word, word[::-1]) for word in WORDS]
    pairs = sentences(table)
    rare = sentences([("rare", "peu")], count=9)
    free = [("I saw the free there.", f"J'ai vu le {x} ici.") for x in WORDS[:12]]
    assert word_pairs([*pairs, *rare, *free]) == sorted(table)
    assert word_pairs(sentences(table[:40])) == []  # each in more than 2 % of the pairs


def test_words_with_apostrophes():
    table = [(word, word[::-1]) for word in WORDS]
    others = sentences([("today", "aujourd'hui")], target="Je viens {}.")
    others += sentences([("today", "aujourd\u2019hui")], target="Je viens {}.", count=2)
    others += sentences([("school", "\xe9cole")], target="J'ai vu l'{} ici.")
    others += sentences([("school", "\xe9cole")], target="J'ai vu cette {} ici.", count=5)
    words = dict(word_pairs([*sentences(table), *others]))
    assert words["today"] == "aujourd'hui"
    assert words["school"] == "\xe9cole"


def test_japanese_nouns_but_not_the_stems_of_verbs():
    table = [(word, word[::-1].upper()) for word in WORDS]
    pairs = sentences(table, target="\u79c1\u306f{}\u3092\u898b\u305f\u3002")
    pairs += sentences([("bus", "\u30d0\u30b9")], target="{}\u304c\u3042\u308b\u3002")  # バス
    pairs += sentences([("school", "\u5b66\u6821")], target="{}\u304c\u3042\u308b\u3002")  # 学校
    pairs += sentences([("eaten", "\u98df")], target="\u79c1\u306f{}\u3079\u305f\u3002")  # 食べた
    words = dict(word_pairs(pairs))
    assert (words["bus"], words["school"]) == ("\u30d0\u30b9", "\u5b66\u6821")
    assert "eaten" not in words


def test_a_source_without_spaces_has_no_words():
    pairs = sentences([("\u732b" + word, word) for word in WORDS], source="{}\u3092\u898b\u305f")
    assert word_pairs(pairs) == []
