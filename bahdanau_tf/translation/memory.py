"""Answers from memory: lines that a text has need no search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from bahdanau_tf.options import Decoding
from bahdanau_tf.translation.batches import Sentences, Work, decoded, strings
from bahdanau_tf.translation.result import Translation


def most_frequent(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The most frequent target of each source, the first of equals."""
    counts: dict[str, Counter[str]] = {}
    for source, target in pairs:
        counts.setdefault(source, Counter())[target] += 1
    return {source: targets.most_common(1)[0][0] for source, targets in counts.items()}


def with_memory(work: Work, memory: Mapping[str, str]) -> Work:
    """A function that answers lines of a memory from it, and translates others as `work` does.

    Lines with a prefix are translated. What is answered has a text and no tokens.
    """

    def translate(
        decoding: Decoding, sentences: Sentences, prefixes: Sentences | None
    ) -> Iterable[Translation]:
        columns = {"sentences": sentences, "prefixes": prefixes or [""] * len(sentences)}
        rows = [*zip(*strings("Translator.translate", columns).values(), strict=True)]
        new = [row for row in rows if row[1] or decoded(row[0]) not in memory]
        lines, starts = ([row[side] for row in new] for side in (0, 1))
        searched = iter(work(decoding, lines, starts if any(starts) else None))
        for line, start in rows:
            text = decoded(line)
            is_new = start or text not in memory
            yield next(searched) if is_new else Translation(text, memory[text])

    return translate
