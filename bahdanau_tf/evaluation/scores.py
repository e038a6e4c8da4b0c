"""Scores of translations by sacreBLEU, of composed text, with its signature."""

from __future__ import annotations

import copy
import functools
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from bahdanau_tf.system.ranges import OptionError, Refusal
from bahdanau_tf.text.script import is_tokenized, unspaced_script

if TYPE_CHECKING:  # the command line reads METRICS without it
    from sacrebleu.metrics.base import Metric, Signature
    from sacrebleu.metrics.bleu import BLEU


@dataclass(frozen=True)
class ScoreOptions:
    """How translations are scored.

    Attributes:
        tokenize: A tokenizer of sacreBLEU for BLEU: "13a" for text with spaces between words
            (Japanese without spaces has BLEU 0), "none" for text that is tokenized already,
            "char", "intl", "zh", "ja-mecab", "ko-mecab"... `bleu_tokenizer` chooses one.
        lowercase: Whether to ignore case.
        nfc: Whether to compose the characters of both texts (NFC) first: the same text may come
            decomposed (NFD), and no word would match.
        n_bootstrap: Number of bootstrap samples for an interval; less than 2 for none.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    nfc: bool = True
    n_bootstrap: int = 0


@dataclass(frozen=True)
class Score:
    """A score with its sacreBLEU signature; prints as sacreBLEU prints it.

    Attributes:
        name: The title of the metric, such as "chrF2++".
        score: From 0 to 100, or larger if lower is better, as for TER, CER and WER.
        signature: The settings that the score depends on: sacreBLEU's, and "norm:NFC" if the texts
            were composed first.
        mean: Mean over bootstrap samples, None if none were drawn.
        margin: Half the width of their 95 % interval, None if none were drawn.
        detail: BLEU's n-gram precisions, brevity penalty and lengths.
    """

    name: str
    score: float
    signature: str
    mean: float | None = None
    margin: float | None = None
    detail: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % bootstrap interval, None if no samples were drawn."""
        if self.mean is None or self.margin is None:
            return None
        return self.mean - self.margin, self.mean + self.margin

    @property
    def brief(self) -> str:
        """The score, with the margin if there is one: "57.02 ± 1.13"."""
        margin = "" if self.margin is None else f" ± {self.margin:.2f}"
        return f"{self.score:.2f}{margin}"

    def __str__(self) -> str:
        mean = "" if self.interval is None else f" (μ = {self.mean:.2f} ± {self.margin:.2f})"
        return f"{self.name}|{self.signature} = {self.score:.2f}{mean} {self.detail}".rstrip()


def bleu_metric(options: ScoreOptions, **more: Any) -> BLEU:
    """sacreBLEU's BLEU; an unknown tokenizer, or one not installed, raises a ValueError."""
    from sacrebleu.metrics.bleu import BLEU

    tokenize = options.tokenize
    if tokenize not in BLEU.TOKENIZERS:
        wanted = f"one of {', '.join(BLEU.TOKENIZERS)}"
        raise OptionError("bleu", "tokenize", tokenize, wanted)
    # `force`: no warning that the text looks tokenized.
    force = tokenize == "none"
    try:
        return BLEU(lowercase=options.lowercase, tokenize=tokenize, **{"force": force} | more)
    except (RuntimeError, AssertionError) as error:  # from its MeCab checks
        advice = " ".join(str(error).split())
        raise OptionError("bleu", "tokenize", tokenize, why=advice) from error


def _chrf(options: ScoreOptions, word_order: int = 0) -> Metric:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=word_order, lowercase=options.lowercase)


def _ter(options: ScoreOptions) -> Metric:
    from sacrebleu.metrics.ter import TER

    unspaced = options.tokenize in ("char", "ja-mecab", "zh")  # no spaces between words
    return TER(normalized=unspaced, asian_support=unspaced, case_sensitive=not options.lowercase)


def _exact(options: ScoreOptions) -> Metric:
    from bahdanau_tf.evaluation.short_strings import ExactMatch

    return ExactMatch("exact match", options.lowercase)


def _errors(options: ScoreOptions, title: str, units: Callable[[str], Sequence[str]]) -> Metric:
    from bahdanau_tf.evaluation.short_strings import ErrorRate

    return ErrorRate(title, units, options.lowercase)


class Kind(NamedTuple):
    """A metric: the name of its scores, what makes sacreBLEU's metric, and its direction.

    `takes_any` says whether a translation may be any of the right answers of its source, see
    `right_answers`.
    """

    title: str
    make: Callable[[ScoreOptions], Metric]
    lower_is_better: bool = False
    takes_any: bool = False


METRICS: Mapping[str, Kind] = {
    "bleu": Kind("BLEU", bleu_metric),
    "chrf": Kind("chrF2", _chrf),
    "chrf++": Kind("chrF2++", partial(_chrf, word_order=2)),
    "ter": Kind("TER", _ter, lower_is_better=True),
    "exact": Kind("exact match", _exact, takes_any=True),
    "cer": Kind("CER", partial(_errors, title="CER", units=list), True, takes_any=True),
    "wer": Kind("WER", partial(_errors, title="WER", units=str.split), True, takes_any=True),
}


SCORES = ("loss", *METRICS)  # of a model on its dev text


def check_monitor(name: str) -> None:
    """Raises an OptionError, of `Recipe`, unless there is such a score of a dev text."""
    if name not in SCORES:
        raise OptionError("Recipe", "monitor", name, f"one of {[*SCORES]}")


def make_metric(name: str, options: ScoreOptions) -> Metric:
    """Makes sacreBLEU's metric of a name in METRICS; another name raises a ValueError.

    All of a kind share a tokenizer. It keeps what it has tokenized, up to 65,536 lines, so
    references that are evaluated again are kept once.
    """
    if name not in METRICS:
        raise ValueError(f"evaluation: metric is {name!r}, wanted one of {', '.join(METRICS)}")
    # A copy: bootstrapping changes a metric, and its signature.
    return copy.copy(_first_metric(name, replace(options, nfc=True, n_bootstrap=0)))


@functools.cache
def _first_metric(name: str, options: ScoreOptions) -> Metric:
    return METRICS[name].make(options)


def score_corpus(
    metric: str,
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    options: ScoreOptions = ScoreOptions(),
) -> Score:
    """Computes the score of a corpus.

    Args:
        metric: A name in METRICS.
        hypotheses, references: As in `bleu`; a sentence may have a list of references.
        options: How to score.

    Raises:
        ValueError: As in `bleu`; or there is no such metric.
    """
    scorer = make_metric(metric, options)
    _check_corpus(metric, "hypotheses", hypotheses, references)
    score = scorer.corpus_score(
        as_scored(hypotheses, options.nfc),
        _streams(references, options.nfc),
        n_bootstrap=options.n_bootstrap,
    )
    signature = signature_text(scorer.get_signature(), options.nfc)
    # Only this JSON makes mean and interval public; it omits those that are 0.
    values = json.loads(score.format(10, signature=signature, is_json=True))
    absent = 0.0 if options.n_bootstrap > 1 else None
    return Score(
        name=METRICS[metric].title,
        score=score.score,
        signature=signature,
        mean=values.get("confidence_mean", absent),
        margin=values.get("confidence_var", absent),
        detail=values.get("verbose_score", ""),
    )


def bleu(hypotheses: Sequence[str], references: Sequence[str], **options: Any) -> Score:
    """Computes corpus BLEU.

    Args:
        hypotheses: Translations, one string per sentence.
        references: One reference per sentence.
        **options: The fields of `ScoreOptions`: `tokenize`, `lowercase`, `nfc`, `n_bootstrap`.

    Raises:
        ValueError: There are no sentences, their numbers differ, the tokenizer is unknown or its
            package is not installed.
    """
    return score_corpus("bleu", hypotheses, references, ScoreOptions(**options))


def chrf(hypotheses: Sequence[str], references: Sequence[str], **options: Any) -> Score:
    """Computes corpus chrF2, which needs no tokenizer; Args as in `bleu`."""
    return score_corpus("chrf", hypotheses, references, ScoreOptions(**options))


def as_scored(lines: Iterable[str], nfc: bool) -> list[str]:
    """Translations or references as sacreBLEU gets them, composed if `nfc`."""
    return [unicodedata.normalize("NFC", line) if nfc else line for line in lines]


def _streams(references: Sequence[str | Sequence[str]], nfc: bool) -> Any:
    """References as sacreBLEU gets them: the first of each line, then the second, and so on.

    A line without more has None; sacreBLEU's types do not say so everywhere.
    """
    rows = (as_scored([x] if isinstance(x, str) else x, nfc) for x in references)
    return [[*stream] for stream in zip_longest(*rows)]


def right_answers(sources: Sequence[str], references: Sequence[str]) -> list[list[str]]:
    """The right answers of each line, none if the line does not count.

    A dictionary has a line for each answer of a word: the first gets them all, so that the word
    counts once. In running text each line has its own reference: there more lines repeat an
    earlier pair than have another answer of an earlier source.
    """
    answers: dict[str, set[str]] = {}
    for source, reference in zip(sources, references, strict=True):
        answers.setdefault(source, set()).add(reference)
    pairs = sum(map(len, answers.values()))
    if pairs - len(answers) <= len(sources) - pairs:
        return [[reference] for reference in references]
    return [sorted(answers.pop(source, ())) for source in sources]


def signature_text(signature: Signature, nfc: bool) -> str:
    """sacreBLEU's signature, followed by what was done to the text before."""
    return signature.format() + ("|norm:NFC" if nfc else "")


def _check_corpus(
    owner: str, name: str, lines: Sequence[str], references: Sequence[object]
) -> None:
    columns = {name: lines, "references": references}
    for column, values in columns.items():
        if isinstance(values, str):
            raise Refusal(owner, f"{column} is the string {values!r}, wanted a list of strings")
    check_counts(owner, columns)
    if not len(lines):
        raise Refusal(owner, "there are no sentences to score")


def check_counts(function: str, columns: Mapping[str, Sequence[object]]) -> None:
    """Raises ValueError, with the lengths, unless all columns have the same."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise Refusal(function, f"{counts}; wanted equal numbers")


def bleu_tokenizer(language: str, sentences: Sequence[str]) -> str:
    """Chooses the tokenizer that BLEU counts words with.

    The script of the sentences decides; the language does where the script fits several languages,
    and where there are no letters:

    - "13a" for text with spaces between words;
    - "zh" for Chinese, with or without spaces;
    - "none" for other text without spaces in its script that is tokenized;
    - "ja-mecab" for Japanese, if mecab-python3 and ipadic are installed;
    - "char" for Japanese without them, Thai, Lao, Khmer and the like.

    Args:
        language: Code of the language, such as "ja" or "zh-TW"; "" if it is not known.
        sentences: References, or other text of that language.

    Returns:
        The name of a tokenizer of sacreBLEU, for `bleu`.
    """
    script = unspaced_script(sentences, language)
    if script == "han":
        return "zh"
    if script and is_tokenized(sentences):
        return "none"
    if script == "kana" and find_spec("MeCab") and find_spec("ipadic"):
        return "ja-mecab"
    return "char" if script else "13a"


def default_tokenizer(text: object, references: Sequence[str]) -> str:
    """`bleu_tokenizer` for a target tokenizer, which may know the language, or None."""
    return bleu_tokenizer(getattr(text, "language", ""), references)


@dataclass(frozen=True)
class Comparison:
    """A system compared with the first one.

    Attributes:
        system: The name of the system.
        score: Its score, with a bootstrap interval.
        p_value: That of the paired bootstrap test. None for the first system; 1 for translations
            identical to the first one's.
    """

    system: str
    score: Score
    p_value: float | None


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str | Sequence[str]],
    *,
    metric: str = "bleu",
    n_bootstrap: int = 1000,
    **options: Any,
) -> list[Comparison]:
    """Compares systems with the first one by paired bootstrap resampling.

    Args:
        systems: name -> translations; the first is the baseline.
        references: One reference per sentence, or a list of several.
        metric: A name in METRICS.
        n_bootstrap: Number of samples, 1 or more.
        **options: The other fields of `ScoreOptions`, as in `bleu`.

    Returns:
        A `Comparison` for each system, in their order.

    Raises:
        ValueError: As in `bleu`; or there are no systems or no samples.

    Reference: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation"; the
    test is sacreBLEU's.
    """
    from sacrebleu.significance import PairedTest

    if not systems or n_bootstrap < 1:
        raise ValueError(
            f"compare: {len(systems)} systems and n_bootstrap {n_bootstrap}, "
            "wanted 1 or more of both"
        )
    for name, lines in systems.items():
        _check_corpus("compare", f"lines of {name!r}", lines, references)
    how = ScoreOptions(**options)
    scorer, title = make_metric(metric, how), METRICS[metric].title
    test = PairedTest(
        named_systems=[(name, as_scored(lines, how.nfc)) for name, lines in systems.items()],
        metrics={title: scorer},
        references=_streams(references, how.nfc),
        test_type="bs",
        n_samples=n_bootstrap,
    )
    signatures, columns = test()
    # Of one metric, under sacreBLEU's name for it. `Result`s, whose mean is typed as optional:
    # here it is always set.
    ((own, shown),) = signatures.items()
    results: list[Any] = columns[own]
    signature = signature_text(shown, how.nfc)
    comparisons = []
    for name, result in zip(systems, results, strict=True):
        score = Score(title, result.score, signature, float(result.mean), float(result.ci))
        # sacreBLEU counts larger differences, so of none it finds the least p.
        is_same = result.p_value is not None and result.score == results[0].score
        comparisons.append(Comparison(name, score, 1.0 if is_same else result.p_value))
    return comparisons
