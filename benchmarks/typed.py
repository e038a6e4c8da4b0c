"""What is left of BLEU if the lines of a dev text are typed in other ways.

    python benchmarks/typed.py --translator=tatoeba-en-fr --dev=tatoeba-en-fr/dev

Each line is written without capitals, as a title, in quotation marks and so on, and translated.
What was put around a line is taken off its translation, so that each row would have the BLEU of the
first one if the model were not disturbed. The last rows are about
single words of the translator's memory: how many of them the model itself, without the memory,
translates in the same way, if capitals and marks at the ends do not count.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

from absl import app, flags

from bahdanau_tf import Translator
from bahdanau_tf.evaluation import bleu

FLAGS = flags.FLAGS
flags.DEFINE_string("translator", "tatoeba-en-fr", "a translator's folder, or a pretrained one")
flags.DEFINE_string("dev", "dev", "the dev text: this path, with .en, and with .fr or .ja")
flags.DEFINE_integer("dev_lines", 500, "of the dev text, from its start")
flags.DEFINE_integer("words_alone", 400, "words alone")

Change = Callable[[str], str]
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
ENDS = re.compile(r"^[\s\"(*-]+|[\s\")*]+$")
SPEAKER = re.compile(r"^[^:：。]{1,12}[:：。]\s*")
WAYS: dict[str, Change] = {
    "as it is": str,
    "without capitals": str.lower,
    "without these and the mark at the end": lambda x: x.lower().rstrip(".!?"),
    "IN CAPITALS": str.upper,
    "As A Title": lambda x: WORD.sub(lambda word: word[0][0].upper() + word[0][1:], x),
    "one word in CAPITALS": lambda x: re.sub("[a-z]{4,}", lambda y: y[0].upper(), x, count=1),
}
FRAMED: dict[str, tuple[str, re.Pattern[str]]] = {
    **{'"quoted"': ('"{}"', ENDS), "(in brackets)": ("({})", ENDS), "**bold**": ("**{}**", ENDS)},
    **{"Anna: said by her": ("Anna: {}", SPEAKER), "-in a dialogue": ("-{}", ENDS)},
}
ALONE: dict[str, Change] = {
    **{"word": str, "Word": str.capitalize, "WORD": str.upper},
    **{"Word.": lambda x: f"{x.capitalize()}.", '"word"': lambda x: f'"{x}"'},
}


def main(_: list[str]) -> None:
    """Prints a row for each way."""
    translator = Translator.load(FLAGS.translator)
    known, translator.memory = dict(translator.memory), {}
    sources, references = (
        Path(f"{FLAGS.dev}.{language}").read_text("utf-8").split("\n")[: FLAGS.dev_lines]
        for language in translator.habits.languages
    )
    print("| typed | BLEU | doubted |\n|---|---|---|")
    for name in [*WAYS, *FRAMED]:
        change = WAYS.get(name) or FRAMED[name][0].format
        rows = translator.translate([change(x) for x in sources])
        texts = [FRAMED[name][1].sub("", x.text) if name in FRAMED else x.text for x in rows]
        tokenize = "char" if translator.habits.languages[1] == "ja" else "13a"
        score = bleu(texts, references, tokenize=tokenize).score
        print(f"| {name} | {score:.2f} | {sum(bool(x.doubts) for x in rows)} |", flush=True)
    words = {x: y for x, y in known.items() if x.isascii() and x.isalpha() and x.islower()}
    chosen = random.Random(1).sample([*words], FLAGS.words_alone)
    print("\n| typed alone | right |\n|---|---|")
    for name, change in ALONE.items():
        rows = translator.translate([change(x) for x in chosen])
        texts = [x.text.strip(' .。"').casefold() for x in rows]
        right = sum(words[x].casefold() == text for x, text in zip(chosen, texts, strict=True))
        print(f"| {name} | {right / len(chosen):.1%} |", flush=True)


if __name__ == "__main__":
    app.run(main)
