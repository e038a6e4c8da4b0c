r"""What length alone costs: the same text in short and in long sentences.

    python benchmarks/joined.py --source=test.en --reference=test.ko \
        --system=RNNsearch-50=model --system=RNNencdec-50=other

Long sentences of a corpus differ from its short ones in more than their length.
So neighbouring lines of at most `--words` source words are joined to sentences
of the lengths of a range, and each model translates these lines one by one, and
joined. BLEU of both has the same references, those of the joined lines; p is of
the paired bootstrap. The lines should be in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path

from absl import app, flags

from bahdanau_tf import Decoding, evaluation
from bahdanau_tf.translator import Translator, load_best

FLAGS = flags.FLAGS
flags.DEFINE_multi_string("system", None, "NAME=MODEL_DIR", required=True)
flags.DEFINE_string("source", None, "text to translate", required=True)
flags.DEFINE_string("reference", None, "its translation", required=True)
flags.DEFINE_integer("words", 20, "longest line that is joined")
flags.DEFINE_list("ranges", ["21-30", "31-50", "51-70"], "lengths when joined")
flags.DEFINE_integer("beam_size", 12, "beam size")


def lines_of(path: str) -> list[str]:
    """The lines of a text."""
    return Path(path).read_text("utf-8").split("\n")[:-1]


def groups(sources: Sequence[str], low: int, high: int) -> Iterator[range]:
    """Neighbouring short lines that have low to high words together."""
    start = words = 0
    for number, line in enumerate(sources):
        count = len(line.split())
        if count > FLAGS.words or words + count > high:
            start, words = number, 0
        if count > FLAGS.words:
            start = number + 1
            continue
        words += count
        if words >= low:
            yield range(start, number + 1)
            start, words = number + 1, 0


def joined(lines: Sequence[str], found: Sequence[range]) -> list[str]:
    """The lines of each group as one."""
    return [" ".join(lines[number] for number in group) for group in found]


def translate(translator: Translator, lines: Sequence[str]) -> list[str]:
    """The best translations."""
    found = translator.translate(lines, Decoding(beam_size=FLAGS.beam_size))
    return [one.text for one in found]


def translate_alone(translator: Translator, lines: Sequence[str]) -> list[str]:
    """Translations of the short lines; the others are empty."""
    is_short = [len(line.split()) <= FLAGS.words for line in lines]
    said = iter(translate(translator, [*compress(lines, is_short)]))
    return [next(said) if short else "" for short in is_short]


def rows(sources: list[str], references: list[str]) -> Iterator[str]:
    """The lines of a Markdown table."""
    yield "| system | words | sentences | alone | joined | kept | p |"
    yield "|---|---|---|---|---|---|---|"
    tokenize = evaluation.bleu_tokenizer("", references)
    for system in FLAGS.system:
        name, _, model_dir = system.partition("=")
        translator = load_best(model_dir)
        alone = translate_alone(translator, sources)
        for ends in FLAGS.ranges:
            found = [*groups(sources, *map(int, ends.split("-")))]
            said = {
                "alone": joined(alone, found),
                "joined": translate(translator, joined(sources, found)),
            }
            each = evaluation.compare(said, joined(references, found), tokenize=tokenize)
            apart, together = (row.score.score for row in each)
            yield (
                f"| {name} | {ends} | {len(found)} | {apart:.2f} | "
                f"{together:.2f} | {together / apart:.0%} | "
                f"{each[1].p_value:.3f} |"
            )


def main(_: Sequence[str]) -> None:
    """Prints the table."""
    for line in rows(*map(lines_of, (FLAGS.source, FLAGS.reference))):
        print(line, flush=True)


if __name__ == "__main__":
    app.run(main)
