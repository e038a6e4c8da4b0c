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

from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path

from absl import app
from absl import flags

from bahdanau_tf import Decoding
from bahdanau_tf import Translator
from bahdanau_tf import evaluation

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


def main(_: Sequence[str]) -> None:
    """Prints the table."""
    decoding = Decoding(beam_size=FLAGS.beam_size)
    sources, references = map(lines_of, (FLAGS.source, FLAGS.reference))
    print("| system | words | sentences | alone | joined | kept | p |")
    print("|---|---|---|---|---|---|---|")
    for system in FLAGS.system:
        name, _, folder = system.partition("=")
        best = Path(folder, "best")
        translator = Translator.load(best if best.is_dir() else Path(folder))

        def translate(
            lines: list[str], translator: Translator = translator
        ) -> list[str]:
            found = translator.translate(lines, decoding)
            return [one.text for one in found]

        short = [
            number
            for number, line in enumerate(sources)
            if len(line.split()) <= FLAGS.words
        ]
        said = dict(
            zip(short, translate([sources[n] for n in short]), strict=True)
        )
        alone = [said.get(number, "") for number in range(len(sources))]
        for one in FLAGS.ranges:
            low, high = map(int, one.split("-"))
            found = [*groups(sources, low, high)]
            rows = evaluation.compare(
                {
                    "alone": joined(alone, found),
                    "joined": translate(joined(sources, found)),
                },
                joined(references, found),
                tokenize=evaluation.bleu_tokenizer("", references),
            )
            apart, together = (row.score.score for row in rows)
            print(
                f"| {name} | {one} | {len(found)} | {apart:.2f} | "
                f"{together:.2f} | {together / apart:.0%} | "
                f"{rows[1].p_value:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    app.run(main)
