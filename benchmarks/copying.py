"""What must arrive unchanged: the share of names, numbers, addresses and the like that do.

    python benchmarks/copying.py --model_dir=tatoeba-en-fr
    python benchmarks/copying.py --model_dir=model/best --seeds=3,4,5 --examples=9

English template sentences are translated into French or Japanese by a model or a pretrained
translator. Their names are invented, so no training text has them. Each seed makes a probe set; a
model should not be chosen by the set that it is judged by. A number may be written as French does:
9:45 as 9 h 45, 3.50 as 3,50. The row "words" has the share of the other words that a translation
should have: a model that copies the whole sentence has none of them.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from absl import app, flags

from bahdanau_tf import Translator
from bahdanau_tf.text.copied import numbers

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "tatoeba-en-fr", "a translator's folder, or a pretrained one")
flags.DEFINE_list("seeds", ["1", "2"], "a probe set for each")
flags.DEFINE_integer("sentences", 300, "sentences of a probe set")
flags.DEFINE_integer("examples", 0, "sentences to print whose translations lack something")

# A sentence, and what its translations into `LANGUAGES` contain; "/" is between alternatives.
LANGUAGES = ("fr", "ja")
TEMPLATES = """\
My sister {name} works in {name}. | sœur travaille | 姉/妹 働
Is {name} your brother? | frère | 兄/弟
I saw {name} and {name} at the station. | gare | 駅
{name} does not want to eat. | manger | 食べ
We are going to {name} tomorrow. | demain | 明日
Ask {name} if she is hungry. | faim | 空/減
Mr. {name} bought a red car. | voiture rouge | 赤 車
The city of {name} is very old. | ville | 古
{name} is taller than {name}. | grand | 高
There are {number} trees in the garden. | arbre jardin | 庭 木/本
She has {number} books. | livre | 本/冊
I need {number} more minutes. | minute | 分
The answer is {number}. | réponse | 答
He walked {number} kilometers. | kilomètre | 歩
The bus leaves at {time}. | bus/car | バス
Wake me up at {time}. | réveille | 起こ
We met at {time} in front of the school. | école | 学校
He was born on {date}. | né | 生
The meeting is on {date}. | réunion | 会議
The shirt costs {price}. | chemise/coûte | シャツ
I paid {price} for this bike. | payé vélo/bicyclette | 自転車/バイク 払
Can you lend me {price}? | prêter | 貸
The distance is {decimal} miles. | distance | 距離/遠
This bag weighs {decimal} kilos. | sac pèse | 重
Install version {version} first. | version | バージョン/version
Version {version} does not work. | version | バージョン/version
Write to {email}, please. | plaît/prie | ください/下さい
My address is {email}. | adresse | 住所/アドレス
The page is {address}. | page | ページ
Look at {address} before you leave. | regarde avant | 見
Open the file {file}. | fichier | ファイル 開
I can't find {file} on my computer. | trouve ordinateur | 見つ コンピュータ/パソコン
Delete {file} and {file}. | supprim/efface | 消/削除
The code is {code}. | code | コード/暗号
My ticket number is {code}. | billet/ticket | 切符/チケット
Room {code} is on the left. | gauche | 左
""".splitlines()
ENDINGS, FILE_ENDINGS = ("com", "org", "net", "fr"), ("txt", "pdf", "csv", "png", "py")
NUMERIC = ("number", "time", "date", "price", "decimal", "version")
CAPITALS, DIGITS = "ABCDEFGHJKLMNPRSTUVWXZ", "0123456789"


class Probe(NamedTuple):
    """A sentence, its tokens of some kind, and the words of its translation."""

    source: str
    tokens: list[tuple[str, str]]
    words: list[str]


def probes(seed: int, count: int, language: str = "fr") -> Iterator[Probe]:
    """Draws sentences for a language; each template is used as often as any other."""
    draw = random.Random(seed)
    for place in range(count):
        template, *rows = TEMPLATES[place % len(TEMPLATES)].split(" | ")
        words = rows[LANGUAGES.index(language)]
        tokens: list[tuple[str, str]] = []

        def token(match: re.Match[str], tokens: list[tuple[str, str]] = tokens) -> str:
            tokens.append((match[1], KINDS[match[1]](draw)))
            return tokens[-1][1]

        source = re.sub(r"{(\w+)}", token, template)
        yield Probe(source, tokens, words.split())


def _stem(draw: random.Random) -> str:
    """An invented name."""
    syllables = [draw.choice("bdfgklmnprstvz") + draw.choice("aeiouy") for _ in range(3)]
    return "".join(syllables) + draw.choice(["", "k", "n", "x", "rd"])


def _host(draw: random.Random) -> str:
    return f"{_stem(draw)}.{draw.choice(ENDINGS)}"


def _digits(draw: random.Random, count: int) -> str:
    return draw.choice(DIGITS[1:]) + "".join(draw.choices(DIGITS, k=count - 1))


def _some_date(draw: random.Random) -> str:
    day, month, year = draw.randint(10, 28), draw.randint(10, 12), draw.randint(1900, 2030)
    return draw.choice([f"{day}/{month}/{year}", f"{year}-{month}-{day}", f"{day}.{month}.{year}"])


KINDS: dict[str, Callable[[random.Random], str]] = {
    "name": lambda draw: _stem(draw).capitalize(),
    "number": lambda draw: _digits(draw, draw.randint(2, 6)),
    "time": lambda draw: f"{draw.randint(1, 12)}:{draw.randint(10, 59)}",
    "date": _some_date,
    "price": lambda draw: draw.choice(
        [
            f"${_digits(draw, 2)}",
            f"${_digits(draw, 2)}.{_digits(draw, 2)}",
            f"{_digits(draw, 3)} euros",
        ]
    ),
    "decimal": lambda draw: f"{_digits(draw, draw.randint(1, 2))}.{_digits(draw, 1)}",
    "version": lambda draw: f"{_digits(draw, 1)}.{_digits(draw, 2)}.{_digits(draw, 1)}",
    "email": lambda draw: f"{_stem(draw)}@{_host(draw)}",
    "address": lambda draw: draw.choice(
        [f"www.{_host(draw)}", f"https://{_host(draw)}/{_stem(draw)}/{_digits(draw, 2)}"]
    ),
    "file": lambda draw: f"{_stem(draw)}{_digits(draw, 1)}.{draw.choice(FILE_ENDINGS)}",
    "code": lambda draw: draw.choice(CAPITALS) + draw.choice(CAPITALS) + f"-{_digits(draw, 3)}",
}


def arrives(kind: str, token: str, translation: str) -> bool:
    """Whether a token stands in a translation: its digits, or all of it."""
    if kind in NUMERIC:
        return Counter(numbers(token)) <= Counter(numbers(translation))
    edge = "[A-Za-zÀ-ɏ0-9_]"  # Japanese letters may be beside it
    return re.search(rf"(?<!{edge}){re.escape(token)}(?!{edge})", translation) is not None


def lost(probe: Probe, translation: str) -> list[tuple[str, str]]:
    """What a translation lacks, with its kind."""
    absent = [pair for pair in probe.tokens if not arrives(*pair, translation)]
    text = translation.lower()
    return absent + [
        ("words", word) for word in probe.words if not any(x in text for x in word.split("/"))
    ]


def shares(sentences: Sequence[Probe], translations: Sequence[str]) -> dict[str, str]:
    """The share of each kind that arrived, of all that must arrive, and of other words."""
    every = Counter(kind for x in sentences for kind, _ in x.tokens)
    every["words"] = sum(len(x.words) for x in sentences)
    pairs = zip(sentences, translations, strict=True)
    absent = Counter(kind for pair in pairs for kind, _ in lost(*pair))
    names = [*dict.fromkeys(kind for kind in KINDS if every[kind])]
    for counts in (every, absent):
        counts["all"] = sum(counts[kind] for kind in names)
    return {
        kind: f"{1 - absent[kind] / every[kind]:.1%} of {every[kind]}"
        for kind in (*names, "all", "words")
    }


def main(_: list[str]) -> None:
    """Prints a table with a column for each seed."""
    translator = Translator.load(FLAGS.model_dir)
    language = "ja" if "ja" in translator.habits.languages else "fr"
    columns, examples = [], []
    for seed in map(int, FLAGS.seeds):
        sentences = [*probes(seed, FLAGS.sentences, language)]
        translations = [x.text for x in translator.translate([x.source for x in sentences])]
        columns.append(shares(sentences, translations))
        for probe, text in zip(sentences, translations, strict=True):
            if absent := lost(probe, text):
                examples.append(f"{probe.source} | {text} | {', '.join(x for _, x in absent)}")
    print("| kind |", " | ".join(f"seed {seed}" for seed in FLAGS.seeds), "|")
    print("|---|" + "---|" * len(columns))
    for kind in columns[0]:
        print(f"| {kind} |", " | ".join(column[kind] for column in columns), "|")
    for example in examples[: FLAGS.examples]:
        print(example)


if __name__ == "__main__":
    app.run(main)
