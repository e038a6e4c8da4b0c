"""The built-in corpora: grammar, links, splits, lengths."""

import hashlib
import itertools
import re
import unicodedata

import pytest
from refusals import refused

from bahdanau_tf import WordTokenizer
from bahdanau_tf.corpora import grammar
from bahdanau_tf.corpora.grammar import AllChoices, Example, generate, write_corpus


def table(rows: str) -> dict[str, tuple[str, str]]:
    """Word -> (genders, numbers), from lines `gender number word word ...`."""
    cells = (row.split() for row in rows.strip().split("\n"))
    return {w: (gender, n) for gender, n, *words in cells for w in words}


# Taken from a dictionary, not from the lexicon under test.
NOUNS = table("""
m s homme garçon enfant voisin professeur étudiant chat chien oiseau cheval
m s hibou livre arbre chapeau jardin hôtel parc
m p hommes garçons enfants voisins professeurs étudiants chats chiens oiseaux
m p chevaux hiboux livres arbres chapeaux jardins hôtels parcs
f s femme fille actrice reine vache voiture pomme épée maison école église
f p femmes filles actrices reines vaches voitures pommes épées maisons écoles
f p églises
m sp héros
f sp souris
""")
DETERMINERS = table("""
m s le un ce cet du au
f s la une cette
mf s l' notre chaque mon son ma sa
mf p les aux ces mes nos ses des deux trois
""")
ADJECTIVES = table("""
m s grand petit vieil beau bel nouveau nouvel noir blanc cher intelligent
f s grande petite vieille belle nouvelle noire blanche chère heureuse
f s intelligente française
m p grands petits beaux nouveaux noirs blancs chers intelligents
f p grandes petites vieilles belles nouvelles noires blanches chères heureuses
f p intelligentes françaises
mf s jeune rouge triste
mf p jeunes rouges tristes
m sp vieux heureux français
""")
CLITICS = {"me", "m'", "nous", "le", "la", "l'", "les"}
NEGATION = {"ne", "n'"}
CONJUNCTIONS = {"et", "mais", "que", "qu'", "quand", "si", "s'"}
VOWEL = "[aeiouâéèêîôûœ]|h(?!ibou|éros)"


@pytest.fixture(scope="module")
def corpora() -> dict[str, list[Example]]:
    return {code: list(generate(4000, seed=7, language=code)) for code in grammar.TRANSLATIONS}


@pytest.fixture(scope="module")
def examples(corpora):
    return corpora["fr"]


every_language = pytest.mark.parametrize("language", grammar.TRANSLATIONS)


def lowered(example: Example) -> list[str]:
    return [word.lower() for word in example.target_tokens]


def tails(words: list[str]) -> list[list[str]]:
    """The words from each but the last one on."""
    return [words[place:] for place in range(len(words) - 1)]


def agrees(first: tuple[str, str], second: tuple[str, str]) -> bool:
    return all(set(a) & set(b) for a, b in zip(first, second, strict=True))


def test_determiners_agree_with_their_nouns(examples):
    checked = 0
    for example in examples:
        for word, *rest in tails(lowered(example)):
            if rest and rest[0] in ADJECTIVES:
                rest = rest[1:]
            if word in DETERMINERS and rest and rest[0] in NOUNS:
                checked += 1
                assert agrees(DETERMINERS[word], NOUNS[rest[0]]), example
    assert checked > 5000


def test_adjectives_agree_with_their_nouns(examples):
    checked = 0
    for example in examples:
        for word, after in itertools.pairwise(lowered(example)):
            for noun, adjective in ((word, after), (after, word)):
                if noun in NOUNS and adjective in ADJECTIVES:
                    checked += 1
                    assert agrees(NOUNS[noun], ADJECTIVES[adjective]), example
    assert checked > 1000


@pytest.mark.parametrize(
    ("pronouns", "ending"),
    [
        (("ils", "elles"), "nt"),
        (("il", "elle"), "(?<!n)t|d|a|e"),
        (("nous",), "ons|sommes"),
        (("je", "j'"), "s|x|e|ai"),
    ],
)
def test_verbs_agree_with_pronouns(examples, pronouns, ending):
    checked = 0
    for example in examples:
        for before, word, *after in tails([",", *lowered(example)]):
            starts = not before[0].isalpha() or before in CONJUNCTIONS
            if word in pronouns and starts:
                verb = next(x for x in after if x not in CLITICS | NEGATION)
                checked += 1
                assert re.search(f"({ending})$", verb), example
    assert checked > 20


def test_elision_and_contraction_follow_french_rules(examples):
    elided = re.compile(rf"\b(le|la|je|ne|que|de|me|ma|sa|ce) ({VOWEL})")
    not_elided = re.compile(rf"\b(l|j|n|qu|d|m|s)'(?!{VOWEL})")
    uncontracted = re.compile(r"\b(de|à) les? |\bde (des|du)\b|\b[Ss]i ils?\b")
    for example in examples:
        assert not elided.search(example.target.lower()), example
        assert not not_elided.search(example.target.lower()), example
        assert not uncontracted.search(example.target), example
        assert not re.search(r"\b[Aa] [aeiou]|\b[Aa]n [^aeiou]", example.source)


def test_negation_has_two_words(examples):
    for example in examples:
        english = re.findall(r"\b(not|never|no longer)\b", example.source)
        french = re.findall(r"\b(?:ne |n').*?\b(pas|jamais|plus)\b", example.target)
        expected = {"not": "pas", "never": "jamais", "no longer": "plus"}
        assert sorted(french) == sorted(expected[word] for word in english)


@every_language
def test_links_cover_every_word(corpora, language):
    """Korean and Japanese have no articles, and omit a subject that is repeated."""
    omitted = {"the", "a", "an", "some", "any", "very", "i", "we", "he", "she", "it", "they"}
    for example in corpora[language]:
        assert example.alignment == sorted(set(example.alignment))
        english, target = (set(side) for side in zip(*example.alignment, strict=True))
        words = {w.lower() for i, w in enumerate(example.source_tokens) if i not in english}
        assert words <= (omitted if language != "fr" else set())
        assert target == set(range(len(example.target_tokens)))


TRANSLATIONS = {
    "fr": {
        **{"cat": "chat", "mice": "souris", "children": "enfants", "black": "noire?s?"},
        **{"not": "ne|n'|pas", "sleeps": "dort", "behind": "derrière", "because": "parce|que|qu'"},
        **{"'s": "l[ea]|l'|les|de|d'|du|des|aux?", ".": r"\."},
    },
    "ko": {
        **{"cat": "고양이.*", "mice": "쥐.*|마리.*", "black": "까.*", "'s": ".*의"},
        **{"not": "(않|아니|[몰모없]).*", "because": ".*기|때문에"},
        **{"sleeps": "[자잔잘].*", "behind": "뒤에(서)?"},
    },
    "ja": {
        **{"cat": "猫.*", "black": "黒.*", "not": ".*(ない|なく|ません).*", "sleeps": "寝.*"},
        **{"behind": "後ろ[でに]", "because": ".*ので", "'s": ".*の"},
    },
}


@every_language
def test_links_join_words_that_translate_each_other(corpora, language):
    dictionary = TRANSLATIONS[language]
    seen = set()
    for example in corpora[language]:
        for i, j in example.alignment:
            english = example.source_tokens[i]
            if english in dictionary:
                seen.add(english)
                assert re.fullmatch(dictionary[english], lowered(example)[j]), example
    assert seen == set(dictionary)


def test_korean_particles_agree_with_the_final_consonant(corpora):
    nouns = """남자 여자 소년 소녀 아이 이웃 교사 학생 여배우 여왕 영웅 고양이 개 새 말 쥐 소 부엉이
    책 나무 모자 차 사과 칼 집 정원 학교 교회 호텔 공원 들 명 마리 권 그루 대 채 곳 그녀 우리"""
    pattern = re.compile(rf"(.*(?:{'|'.join(nouns.split())}))([은는이가을를과와])")
    seen = set()
    for word in {word for example in corpora["ko"] for word in example.target_tokens}:
        if match := pattern.fullmatch(word):
            ends_in_consonant = len(unicodedata.normalize("NFD", match[1][-1])) == 3
            assert ends_in_consonant == (match[2] in "은이을과"), word
            seen.add(match[2])
    assert seen == {*"은는이가을를과와"}


@pytest.mark.parametrize(("language", "end"), [("ko", "요[.?]"), ("ja", "(ます|です|ません)か?。")])
def test_the_polite_verb_is_at_the_end(corpora, language, end):
    for example, french in zip(corpora[language], corpora["fr"], strict=True):
        assert example.source == french.source
        assert re.search(f"{end}$", example.target), example


# As a Korean and a Japanese reader would write them: an irregular verb, an omitted subject, a
# number with a counter, a relative clause, a noun for `they` and for an adjective, `that`, `no
# longer very`, another form before a noun, a new subject, a child's adjective, no `not to be`.
READERS = """
This clever man does not know us.
이 똑똑한 남자는 우리를 몰라요.
この 賢い 男性は 私たちを 知りません。
He sings while he has his hat.
자기 모자를 가지고 있는 동안 그는 노래해요.
自分の 帽子を 持っている 間 彼は 歌います。
Does he need two books?
그는 책 두 권이 필요해요?
彼は 二冊の 本が 必要ですか。
She has the old cars that three dogs find.
그녀는 개 세 마리가 발견하는 오래된 차를 가지고 있어요.
彼女は 三匹の 犬が 見つける 古い 車を 持っています。
We see these black cars because they are expensive.
차가 비싸기 때문에 우리는 이 까만 차들을 봐요.
車が 高いので 私たちは これらの 黒い 車を 見ます。
The beautiful queens are French.
아름다운 여왕들은 프랑스 사람이에요.
美しい 女王たちは フランス人です。
A beautiful boy knows that she laughs.
아름다운 소년은 그녀가 웃는다는 것을 알아요.
美しい 少年は 彼女が 笑う ことを 知っています。
The school is no longer very big.
학교는 더 이상 아주 크지는 않아요.
学校は もう あまり 大きくありません。
The expensive parks are no longer very old.
비싼 공원은 더 이상 아주 오래되지는 않았어요.
高い 公園は もう あまり 古くありません。
An old boy sleeps.
나이 많은 소년이 자요.
年を 取った 少年が 寝ます。
She is old.
그녀는 나이가 많아요.
彼女は 年を 取っています。
Some young girls never see the gardens.
어린 소녀 몇 명은 정원을 절대 보지 않아요.
何人かの 幼い 少女は 庭を 決して 見ません。
We are not in his woman's hotels.
우리는 그의 여자의 호텔에 없어요.
私たちは 彼の 女性の ホテルに いません。
""".strip().split("\n")


def test_sentences_are_as_a_reader_would_write_them():
    for language, start in (("ko", 1), ("ja", 2)):
        target = {e.source: e.target for e in generate(3000, seed=3, language=language)}
        assert [target[english] for english in READERS[::3]] == READERS[start::3]


@pytest.mark.parametrize("language", ["ko", "ja"])
def test_tokens_equal_those_of_the_tokenizer(corpora, language, tmp_path):
    texts = [example.target for example in corpora[language]]
    path = tmp_path / "text"
    path.write_text("\n".join(texts), encoding="utf-8")
    tokenizer = WordTokenizer.train([str(path)], 4000, language="ko" if language == "ko" else "und")
    ids = tokenizer.tokenize(texts)
    assert [text.decode() for text in tokenizer.detokenize(ids).numpy()] == texts
    for row, example in zip(tokenizer.ids_to_tokens(ids).to_list(), corpora[language], strict=True):
        tokens = [token.decode().strip("␣￭") for token in row]
        assert tokens == [*example.target_tokens, "[END]"]


def test_sentences_are_distinct_and_have_one_translation():
    translations: dict[str, str] = {}
    for seed in range(3):
        examples = list(generate(1500, seed=seed, max_words=6))
        assert len({e.source for e in examples}) == 1500
        for e in examples:
            assert translations.setdefault(e.source, e.target) == e.target


def test_splits_never_overlap():
    sources = {"train": set(), "dev": set(), "test": set()}
    for split, seed in itertools.product(sources, (0, 1)):
        sources[split] |= {e.source for e in generate(100, split, seed=seed)}
    for first, second in itertools.combinations(sources.values(), 2):
        assert not first & second
    assert sorted(itertools.chain(*grammar.SPLITS.values())) == [*range(100)]
    for split, parts in (("train", range(90)), ("test", range(95, 100))):
        for source in sources[split]:
            digest = hashlib.sha256(source.encode()).hexdigest()[:16]
            assert int(digest, 16) % 100 in parts


@pytest.mark.parametrize("limits", [(3, 3), (5, 8), (20, 25), (50, 60)])
def test_lengths_are_within_the_given_limits(limits):
    lengths = {len(e.source_tokens) for e in generate(30, min_words=limits[0], max_words=limits[1])}
    assert limits[0] <= min(lengths)
    assert max(lengths) <= limits[1]


def three_words(split: str) -> set[str]:
    """All sentences of three words in a split."""
    sources = set()
    message = f"^generate: the {split} split has [0-9]+ sentences .* count=1000"
    with pytest.raises(ValueError, match=message):  # noqa: PT012
        for example in generate(1000, split, max_words=3):
            sources.add(example.source)
    return sources


def test_all_sentences_of_three_words_are_found():
    singular = ["sleeps", "sings", "runs", "eats", "laughs", "works", "waits"]
    plural = [verb[:-1] for verb in singular]
    expected = {f"Who {verb}?" for verb in singular}
    expected |= {f"{w} {verb}." for w in ("He", "She") for verb in singular}
    expected |= {f"{w} {verb}." for w in ("I", "We") for verb in plural}
    splits = [three_words(split) for split in ("train", "dev", "test")]
    assert set.union(*splits) == expected
    assert sum(map(len, splits)) == len(expected)
    everything = generate(len(splits[0]), max_words=3)
    assert {e.source for e in everything} == splits[0]


def test_all_choices_enumerates_every_combination():
    choices, ways, more = AllChoices(), [], True
    while more:
        way = [choices.pick(3)]
        if way[0]:
            way += [choices.maybe(0.1), choices.pick(way[0])]
        ways.append(tuple(way))
        more = choices.next_round()
    assert ways == [
        (0,),
        *((1, b, 0) for b in (False, True)),
        *((2, b, n) for b in (False, True) for n in (0, 1)),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": -1}, "-1 count"),
        ({"count": 1, "split": "valid"}, "'valid' split"),
        ({"count": 1, "language": "de"}, "'de' language"),
        ({"count": 1, "min_words": 9, "max_words": 8}, "min_words 9"),
        ({"count": 1, "max_words": 61}, "max_words 61"),
        ({"count": 1, "min_words": 0}, "min_words 0"),
    ],
)
def test_bad_arguments_of_generate_are_refused(arguments, message):
    refused(lambda: generate(**arguments), "generate", *message.split())


@every_language
def test_write_corpus_writes_all_splits_with_links(tmp_path, language):
    folder = tmp_path / "new" / "corpus"
    write_corpus(folder, train=40, dev=5, test=6, seed=2, language=language)
    assert len(list(folder.iterdir())) == 9
    for split, count in (("train", 40), ("dev", 5), ("test", 6)):
        sides = [
            (folder / f"{split}.{end}").read_text("utf-8").split("\n")
            for end in ("en", language, "align")
        ]
        assert [len(lines) for lines in sides] == [count + 1] * 3
        expected = generate(count, split, seed=2, language=language)
        for *pair, links, example in zip(*sides, expected, strict=False):
            assert pair == [example.source, example.target]
            numbers = [tuple(map(int, k.split("-"))) for k in links.split()]
            assert numbers == example.alignment


def test_a_failed_write_keeps_the_old_corpus(tmp_path):
    write_corpus(tmp_path, train=3, dev=2, test=2)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    refused(lambda: write_corpus(tmp_path, train=9, dev=0, test=999, max_words=3), "split")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
