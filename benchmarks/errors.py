r"""Where quality is lost: the kinds of errors in translations, and their price.

    python benchmarks/errors.py --model_dir=model --source=dev.en \
        --reference=dev.fr --train_target=train.fr

Each translation is compared with its reference, word by word. A difference has
one kind, by the first rule of `KINDS` that fits. The price of a kind is what
BLEU gains if only these differences are mended. Further figures are the recall
of the reference's words by how often the training text has them, of numbers and
names that stand in the source as well, source words to which hardly any
attention is paid, repetitions, lengths, and references that the model finds
more probable than its own translation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import app, flags
from sacrebleu import corpus_bleu

from bahdanau_tf import Translation, Translator

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "a trained model", required=True)
flags.DEFINE_string("source", None, "text to translate", required=True)
flags.DEFINE_string("reference", None, "its translation", required=True)
flags.DEFINE_string("train_target", None, "text of the training", required=True)
flags.DEFINE_string("tokenize", "13a", "sacreBLEU's tokenizer")
flags.DEFINE_integer("beam_size", 5, "beam size")

RARE = 5  # a word that the training text has at most so often
LEAST = 0.2  # attention to a source word, added up, that counts as none
STEM = 4  # first letters that two forms of a word have in common
FREQUENCIES = (0, 1, 5, 20, 100, 1000)
WORD = re.compile(r"\w+|[^\w\s]")


class Difference(NamedTuple):
    """Words of a translation where the reference has others, or none.

    Attributes:
        start: First word of the translation that differs.
        own: These words.
        wanted: Those of the reference.
        elsewhere: Words of the reference that the translation lacks at their
            places, and the other way round.
    """

    start: int
    own: list[str]
    wanted: list[str]
    elsewhere: tuple[Counter[str], Counter[str]]


def words_of(line: str) -> list[str]:
    """Words and punctuation."""
    return WORD.findall(line)


def differences(own: list[str], wanted: list[str]) -> list[Difference]:
    """The differences, word by word where both sides have as many."""
    parts: list[tuple[int, list[str], list[str]]] = []
    codes = SequenceMatcher(None, own, wanted, False).get_opcodes()
    for what, a, b, c, d in codes:
        if what == "replace" and b - a == d - c:
            parts += [(a + n, [own[a + n]], [wanted[c + n]]) for n in range(b - a)]
        elif what != "equal":
            parts.append((a, own[a:b], wanted[c:d]))
    extra = Counter(word for _, words, _ in parts for word in words)
    missing = Counter(word for _, _, words in parts for word in words)
    return [Difference(*part, (missing, extra)) for part in parts]


def _is_form(one: Difference, _: Counter[str]) -> bool:
    pair = [" ".join(words).lower() for words in (one.own, one.wanted)]
    return bool(min(pair)) and (pair[0] == pair[1] or pair[0][:STEM] == pair[1][:STEM])


def _is_function(one: Difference, known: Counter[str]) -> bool:
    frequent = {word for word, _ in known.most_common(100)}
    return frequent.issuperset(one.own + one.wanted)


def _is_repetition(one: Difference, _: Counter[str]) -> bool:
    return not one.wanted and len(set(one.own)) < len(one.own)


def _is_order(one: Difference, _: Counter[str]) -> bool:
    missing, extra = one.elsewhere
    return all(word in missing for word in one.own) and all(word in extra for word in one.wanted)


def _is_rare(one: Difference, known: Counter[str]) -> bool:
    return any(known[word] <= RARE for word in one.wanted)


KINDS: dict[str, Callable[[Difference, Counter[str]], bool]] = {
    "the same words in another order": _is_order,
    f"another form (first {STEM} letters the same, or small letters)": _is_form,
    "words among the 100 most frequent on both sides": _is_function,
    "repeated words": _is_repetition,
    f"words that training has {RARE} times or less": _is_rare,
    "dropped: only the reference has words": lambda one, _: not one.own,
    "added: only the translation has words": lambda one, _: not one.wanted,
    "as many other words": lambda one, _: len(one.own) == len(one.wanted),
    "more or fewer other words": lambda one, _: True,
}


def mended(own: list[str], which: Sequence[Difference]) -> str:
    """A translation after some differences were mended."""
    words = list(own)
    for one in sorted(which, key=lambda one: one.start, reverse=True):
        words[one.start : one.start + len(one.own)] = one.wanted
    return " ".join(words)


def kinds(own: list[list[str]], wanted: list[list[str]], known: Counter[str]) -> Iterator[str]:
    """The lines of a table: each kind, how often, and its price."""
    found: list[list[tuple[str, Difference]]] = []
    for pair in zip(own, wanted, strict=True):
        every = differences(*pair)
        found.append([(next(k for k, is_it in KINDS.items() if is_it(d, known)), d) for d in every])
    references = [[" ".join(words) for words in wanted]]

    def score(kind: str) -> float:
        lines = [
            mended(words, [d for k, d in every if k == kind])
            for words, every in zip(own, found, strict=True)
        ]
        return corpus_bleu(lines, references, tokenize="none").score

    base = score("")
    yield f"BLEU of these words: {base:.2f}"
    yield ""
    yield "| kind | differences | sentences | price |"
    yield "|---|---|---|---|"
    for kind in KINDS:
        each = [sum(k == kind for k, _ in every) for every in found]
        sentences = sum(map(bool, each)) / len(each)
        gain = score(kind) - base
        yield f"| {kind} | {sum(each):,} | {sentences:.1%} | {gain:+.2f} |"


def recall(
    own: list[list[str]],
    wanted: list[list[str]],
    group: Callable[[int, str], str],
) -> Iterator[str]:
    """Share of the reference's words that the translation has, by group."""
    hits: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for number, (some, words) in enumerate(zip(own, wanted, strict=True)):
        there = Counter(some)
        for word, count in Counter(words).items():
            name = group(number, word)
            totals[name] += count
            hits[name] += min(count, there[word])
    for name in sorted(filter(None, totals)):
        yield f"{name}: {hits[name]:,} of {totals[name]:,}, " + (f"{hits[name] / totals[name]:.1%}")


def frequency(known: Counter[str]) -> Callable[[int, str], str]:
    """Groups words by how often the training text has them."""

    def group(_: int, word: str) -> str:
        least = max(n for n in FREQUENCIES if n <= known[word])
        more = [n for n in FREQUENCIES if n > least]
        most = f"to {more[0] - 1}" if more else "or more"
        return f"words that training has {least:>4} {most} times"

    return group


def copied(sources: list[list[str]]) -> Callable[[int, str], str]:
    """Groups numbers, and words with a capital, that the source has, too."""

    def group(number: int, word: str) -> str:
        if word not in sources[number][1:]:
            return ""
        if word.isdigit():
            return "numbers as in the source"
        return "names as in the source" if word[0].isupper() else ""

    return group


def attention(translations: Sequence[Translation]) -> Iterator[str]:
    """Source words that nothing was translated from, and words read twice."""
    seen = [
        one.weights[: len(one.tokens), : len(one.source_tokens)].sum(0)
        for one in translations
        if one.weights is not None and one.tokens
    ]
    if seen:
        every = np.concatenate(seen)
        yield (
            f"source tokens with less attention than {LEAST}: "
            f"{np.mean(every < LEAST):.1%}; with more than 2: "
            f"{np.mean(every > 2):.1%}"
        )


def repeated(sentences: list[list[str]]) -> int:
    """Sentences in which a pair of words follows itself, or a word."""
    return sum(
        any(s[n : n + k] == s[n + k : n + 2 * k] for k in (1, 2) for n in range(len(s) - 2 * k + 1))
        for s in sentences
    )


def main(_: Sequence[str]) -> None:
    """Translates and prints."""
    sources, references, training = (
        Path(path).read_text("utf-8").split("\n")[:-1]
        for path in (FLAGS.source, FLAGS.reference, FLAGS.train_target)
    )
    translator = Translator.load(FLAGS.model_dir)
    decoding = replace(translator.decoding, beam_size=FLAGS.beam_size)
    translations = translator.translate(sources, decoding)
    texts = [one.text for one in translations]
    print(corpus_bleu(texts, [references], tokenize=FLAGS.tokenize))
    own, wanted = ([words_of(x) for x in side] for side in (texts, references))
    known = Counter(word for line in training for word in words_of(line))
    lines = [
        *kinds(own, wanted, known),
        "",
        *recall(own, wanted, frequency(known)),
        *recall(own, wanted, copied([words_of(x) for x in sources])),
        *attention(translations),
        f"sentences with a repetition: {repeated(own)}, of the references {repeated(wanted)}",
    ]
    ratio = np.array([len(a) / len(b) for a, b in zip(own, wanted, strict=True) if b])
    short, long = np.mean(ratio < 0.8), np.mean(ratio > 1.25)
    lines.append(
        f"words for one of the reference: {np.mean(ratio):.3f}; less than 0.8 "
        f"in {short:.1%}, more than 1.25 in {long:.1%}"
    )
    given = np.array([one.log_prob for one in translator.score(sources, references)])
    found = np.array([one.log_prob for one in translations])
    lines.append(f"references more probable than the translation: {np.mean(given > found):.1%}")
    print("\n".join(lines))


if __name__ == "__main__":
    app.run(main)
