"""Capitals: reads lines whose capitals say nothing as sentences with the usual ones.

A model hardly knows `Umbrella` if training has `umbrella`, nor a Title With Such Words, TEXT IN
CAPITALS, or names without any, such as paris. To write each word with its usual ones is called
truecasing (Lita et al. 2003).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, repeat

from bahdanau_tf.options import Decoding
from bahdanau_tf.text.script import HAN
from bahdanau_tf.translation.batches import Sentences, Work, columns_of, decoded, strings
from bahdanau_tf.translation.doubts import END, SPELLED, plain_words
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.result import Translation
from bahdanau_tf.translation.sentence_splitting import split_sentences

SHORT = 3  # letters of words that a title may have without a capital, such as "and"
APOSTROPHE = re.compile("(['’])")
PART = re.compile(f"[0-9０-９{HAN}]")  # of counterparts of which each character is a word
# A word, or what is none, such as an address, AT&T or U.S.
LETTERS = r"[^\W\d_]+"
WORD = re.compile(
    rf"{SPELLED.pattern}|{LETTERS}(?:[.&]{LETTERS})+|(?P<word>{LETTERS}(?:['’]{LETTERS})*)"
)


def readings(text: str, habits: Habits) -> list[str]:
    """The forms in which a text is read, of which the likeliest translation is taken.

    They differ from the text in the case of letters alone. A sentence is read as it is, or

    * without any capital: with those of the words that training mostly writes with some; if there
      are such, or if it ends with a mark, the first word has one, too;
    * in capitals: with the usual ones;
    * with long words in capitals: with the usual ones of these;
    * with a capital for each long word, as a title: both as it is and with the usual ones;
    * as a word alone that training has: also without a capital.

    If most sources of the training do not begin with a capital, no sentence is given one; if they
    have no names with capitals, all is read as it is.
    """
    if not habits.capitals or habits.vocabulary is None or habits.is_short:
        return [text]
    known, usual = _words(habits.vocabulary), _usual(habits.capitals)
    begun = _begun if habits.begins else str
    rows = [_readings(sentence, known, usual, begun) for sentence in split_sentences(text)]
    most = max(map(len, rows), default=0)
    forms = ["".join(row[min(place, len(row) - 1)] for row in rows) for place in range(most)]
    return [x for x in dict.fromkeys(forms) if len(x.encode()) == len(text.encode())] or [text]


def names_alone(text: str, habits: Habits) -> str | None:
    """The translation of a text of names alone, which hardly a training has; None for others.

    Names that training has alone are spelled as there. Others that are kept stay, as training
    writes them. One that is kept or becomes the same word, in letters without case, becomes this,
    unless another word does, too, as Spanish is スペイン語. A word with a capital that training
    never had is a name.
    """
    if None in (habits.capitals, habits.vocabulary, habits.translated) or habits.is_short:
        return None
    known, usual = _words(habits.vocabulary or ""), _usual(habits.capitals or "")
    words = [match["word"] for match in WORD.finditer(text)]
    if not (words and all(words)) or WORD.sub("", text.strip().rstrip(".!?")).strip(" -"):
        return None
    if all(word.lower() in habits.spellings for word in words):
        spelled = WORD.sub(lambda match: habits.spellings[match[0].lower()], text).strip()
        return spelled.replace(" ", habits.target.between_names)

    def is_name(word: str) -> bool:
        if form := usual.get(word.lower()):
            return form.istitle() and len(form) > 1
        is_new = word[0].isupper() and not any(part in known for part in _parts(word))
        return is_new or word.lower() in habits.spellings

    forms = [usual.get(word.lower(), word) for word in words]
    if not all(map(is_name, words)):
        return None
    others = habits.counterparts.get(forms[0], "").split() if len(words) == 1 else []
    match [x for x in others if x != forms[0].lower()]:
        case [new] if new.lower() == new.upper() and not PART.search(new):
            if sum(new in x.split() for x in habits.counterparts.values()) == 1:
                return WORD.sub(new, text).strip()
    if {*forms} <= _words(habits.translated or ""):
        return None
    return WORD.sub(lambda match: usual.get(match[0].lower(), match[0]), text).strip()


@lru_cache(maxsize=8)
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@lru_cache(maxsize=8)
def _usual(text: str) -> Mapping[str, str]:
    return {word.lower(): word for word in (x.replace("_", " ") for x in text.split())}


def _readings(
    sentence: str, known: frozenset[str], usual: Mapping[str, str], begun: Callable[[str], str]
) -> list[str]:
    words = [match["word"] for match in WORD.finditer(sentence) if match["word"]]
    letters = "".join(words)
    if letters.lower() == letters.upper():
        return [sentence]

    def changed(write: Callable[[str], str], shortest: int = 0) -> str:
        form = WORD.sub(
            lambda x: write(x[0]) if len(x["word"] or "") > shortest else x[0], sentence
        )
        return _paired(form, usual)

    def small(word: str) -> str:
        is_lower = all(part in known and part not in usual for part in _parts(word))
        return word.lower() if is_lower else word

    is_alone = len(words) == 1
    if is_alone and not all(part in known for part in _parts(words[0])):
        return [sentence]
    anew = changed(lambda word: _usually(word, usual))
    if letters == letters.lower():
        if is_alone:
            return [sentence, anew]
        return [begun(anew) if anew != sentence or END.search(sentence) else sentence]
    if letters == letters.upper() and len(letters) > 1:
        if not is_alone:
            return [begun(anew)]
        is_short = len(letters) <= SHORT  # perhaps an acronym
        return [*[sentence][:is_short], begun(anew), anew]
    if all(word[0].isupper() for word in (words[0], *(x for x in words if len(x) > SHORT))):
        return [sentence, changed(small) if is_alone else begun(changed(small))]
    form = changed(lambda word: small(word) if word == word.upper() else word, SHORT)
    return [begun(form) if words[0][0].isupper() else form]


def _parts(word: str) -> list[str]:
    """A word's parts between apostrophes, in lower case."""
    return [part.lower() for part in APOSTROPHE.split(word)[::2]]


def _usually(word: str, usual: Mapping[str, str]) -> str:
    """A word as training mostly writes it."""
    return "".join(usual.get(part.lower(), part.lower()) for part in APOSTROPHE.split(word))


def _paired(sentence: str, usual: Mapping[str, str]) -> str:
    """With capitals for two words that have them together."""
    matches = (match for match in WORD.finditer(sentence) if match["word"])
    for first, second in pairwise(matches):
        start, end = first.start(), second.end()
        two = usual.get(sentence[start:end].lower(), "")
        if " " in two:
            sentence = sentence[:start] + two + sentence[end:]
    return sentence


def _begun(sentence: str) -> str:
    """With a capital at its start, unless a digit is there."""
    place = next((i for i, x in enumerate(sentence) if x.isalnum()), 0)
    return sentence[:place] + sentence[place : place + 1].upper() + sentence[place + 1 :]


def with_readings(work: Work, habits: Habits) -> Work:
    """A function that translates the `readings` of each line, and takes the likeliest per token.

    But capitals make a model keep words, so only those are compared that keep the fewest words that
    training always replaces. A translation has the line as its source, and begins with a capital if
    the line does, but not in its prefix.
    """

    def rank(row: tuple[str, Translation]) -> tuple[int, float]:
        form, x = row
        after, replaced = {*plain_words(x.text)}, _words(habits.replaced)
        kept = sum(word in after and word.lower() in replaced for word in plain_words(form))
        return -kept, x.log_prob / max(len(x.tokens) + x.finished, 1)

    def translate(
        decoding: Decoding, sentences: Sentences, prefixes: Sentences | None
    ) -> Iterable[Translation]:
        columns = strings("Translator.translate", columns_of(sentences, prefixes))
        lines = columns["sentences"]
        forms = [readings(decoded(line), habits) for line in lines]
        prefixes, starts = columns.get("prefixes"), None
        if prefixes is not None:
            starts = [start for start, row in zip(prefixes, forms, strict=True) for _ in row]
        found = iter(work(decoding, [x for row in forms for x in row], starts))
        rows = ([(form, next(found)) for form in row] for row in forms)
        return (
            _as_typed(*max(row, key=rank), decoded(line), not start)
            for row, line, start in zip(rows, lines, prefixes or repeat(""), strict=False)
        )

    return translate


def _as_typed(form: str, x: Translation, source: str, is_free: bool) -> Translation:
    """The translation of a form of a source as that of the source.

    It may get a capital if it `is_free` of a prefix.
    """
    if form == source:
        return x
    encoded = source.encode()
    text, tokens = x.text, x.tokens
    place = next((i for i, letter in enumerate(form) if letter.isalpha()), 0)
    first = next((i for i, letter in enumerate(text) if letter.isalpha()), 0)
    letter = text[first : first + 1].upper()
    has_capital = source[place].isupper() and form[place : place + 2].islower()
    if is_free and has_capital and len(letter.encode()) == len(text[first : first + 1].encode()):
        text = text[:first] + letter + text[first + 1 :]
        written, at = text.encode(), len(text[:first].encode())
        tokens = [
            written[a:b].decode("utf-8", "replace") if a <= at < b else token
            for token, (a, b) in zip(tokens, x.target_offsets, strict=True)
        ]
    return replace(
        x,
        source=source,
        text=text,
        tokens=tokens,
        source_tokens=[encoded[a:b].decode("utf-8", "replace") for a, b in x.source_offsets],
        alternatives=[_as_typed(form, other, source, is_free) for other in x.alternatives],
    )
