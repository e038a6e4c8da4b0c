"""Files of several commands: texts, models, n-best lists, JSON; doubtful texts."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

from absl import flags as absl_flags

from bahdanau_tf.commands.flags import from_flags, is_given, is_in_onnx
from bahdanau_tf.data.parallel import read_table
from bahdanau_tf.options import Decoding
from bahdanau_tf.system.lines import incomplete, read_lines
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.text.script import swapped_sides

if TYPE_CHECKING:
    from bahdanau_tf.report.suites import Files
    from bahdanau_tf.translation import Translation
    from bahdanau_tf.translation.protocol import StringTranslator
    from bahdanau_tf.translation.rescoring import NBest
    from bahdanau_tf.translation.result import Offsets
    from bahdanau_tf.translator import Translator

MOST_CHARACTERS = 1 << 22  # of a window; 2,000 lines have some 200,000
Lines = TypeVar("Lines", bound=tuple[str, ...])


def check_count(flag: str, lines: int, wanted: int, other: str = "--reference") -> None:
    """Checks that the files of two flags have as many lines."""
    if lines != wanted:
        raise ValueError(
            f"{flag} has {amount(lines, 'line')} and {other} {wanted:,}, wanted equal numbers"
        )


def line_pairs(
    flags: absl_flags.FlagValues | Files,
    first: str,
    second: str,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[str, str]]:
    """Yields pairs of lines of the files of two flags as they are read.

    The first is standard input if it is not given. `start` lines are skipped. Raises
    ValueError if one file ends before the other.
    """
    names = (first, second)
    files = (read_lines(getattr(flags, name), start, stop) for name in names)
    for number, (line, other) in enumerate(zip_longest(*files), start + 1):
        if line is None or other is None:
            short, long = (first, second)[:: 1 if line is None else -1]
            raise ValueError(
                f"--{short} has no line {number}, but --{long} has one; "
                "wanted equal numbers of lines"
            )
        yield line, other


def windows(lines: Iterable[Lines], size: int) -> Iterator[list[Lines]]:
    """Yields `size` lines at a time, each with others that belong to it.

    The last window and windows of long lines may have fewer; before an error of
    `read_lines`, the lines before it are a window.
    """
    window: list[Lines] = []
    characters = 0
    try:
        for line in lines:
            window.append(line)
            characters += sum(map(len, line))
            if len(window) == size or characters >= MOST_CHARACTERS:
                yield window
                window, characters = [], 0
    except (OSError, ValueError):
        if window:
            yield window
        raise
    if window:
        yield window


@contextmanager
def kept_lines_named(
    path: str | None, count: Callable[[], int], what: str = "translation"
) -> Iterator[None]:
    """After an error or Ctrl-C, reports where the lines written so far are, and their number."""
    try:
        yield
    except (ValueError, KeyboardInterrupt):
        if path is not None and count() and os.path.exists(incomplete(path)):
            kept = amount(count(), what)
            StatusLine().note(f"{incomplete(path)} has {kept}")
        raise


def load_either(flags: absl_flags.FlagValues) -> StringTranslator:
    """Loads as `load_translator` does, or an export for ONNX Runtime; reads --memory."""
    if not is_in_onnx(flags):
        translator: StringTranslator = load_translator(flags)
    else:
        from bahdanau_tf import runtime

        translator = runtime.Translator.load(flags.model_dir[0], flags.threads)
        translator.decoding = _decoding(flags, translator.decoding)
    if flags.memory:
        pairs = read_table(flags.memory, "memory")
        own = most_frequent(pair for pair in pairs if all(map(str.strip, pair)))
        translator.memory = {**translator.memory, **own}
    return translator


def load_translator(
    flags: absl_flags.FlagValues, folders: Sequence[str] | None = None
) -> Translator:
    """Loads the best model of --model_dir, for --threads, with the search flags if any.

    `folders`, in place of --model_dir, have models of the other direction, without --dictionary.
    """
    from bahdanau_tf.system.device import use_threads
    from bahdanau_tf.text import Dictionary
    from bahdanau_tf.translator import Translator

    use_threads(flags.threads)
    translators = [Translator.load(folder) for folder in folders or flags.model_dir]
    translator = translators[0]
    if len(translators) > 1:
        translator = Translator.ensemble(translators, flags.average)
    if "beam_size" in flags:  # the command has search flags
        translator.decoding = _decoding(flags, translator.decoding)
        if folders is None and "dictionary" in flags and flags.dictionary:
            translator.dictionary = Dictionary.load(flags.dictionary)
    return translator


def _decoding(flags: absl_flags.FlagValues, own: Decoding) -> Decoding:
    """That of the flags, with the penalties of the translator's own unless they are given."""
    left = [name for name in ("alpha", "beta") if not is_given(flags, name)]
    return replace(from_flags(flags, Decoding), **{name: getattr(own, name) for name in left})


def nbest_lists(flag: str, path: str | None, sources: Iterable[str]) -> Iterator[NBest]:
    """Reads the lists of some sentences from a file or standard input; an error names the flag."""
    from bahdanau_tf.translation.rescoring import MalformedListError, read_nbest

    try:
        yield from read_nbest(read_lines(path), sources)
    except MalformedListError as error:
        raise ValueError(f"{flag}: {error}") from None


def json_line(translation: Translation, alignments: bool, alternatives: bool = False) -> str:
    """A translation, if wanted with its alignment and its alternatives, if it has any."""
    values = {"source": translation.source, **_hypothesis(translation, alignments)}
    values["truncated"] = translation.truncated
    values["confidence"] = translation.confidence
    values["doubts"] = [*map(str, translation.doubts)]
    if alignments:
        values |= _tokens(translation, "source")
    if alternatives:
        values["alternatives"] = [_hypothesis(x, alignments) for x in translation.alternatives]
    return json.dumps(values, ensure_ascii=False) + "\n"


def _hypothesis(translation: Translation, alignments: bool) -> dict[str, object]:
    names = ("text", "score", "log_prob", "finished")
    values = {name: getattr(translation, name) for name in names}
    if alignments:
        values |= _tokens(translation, "target")
        weights = translation.weights
        values["alignment"] = sorted(translation.hard_alignment)
        values["weights"] = [] if weights is None else weights.astype(float).round(4).tolist()
    return values


def _tokens(translation: Translation, side: str) -> dict[str, object]:
    """The tokens and where they are, without the space that a sub-word or symbol may begin with."""
    name = {"source": "source_tokens", "target": "tokens"}[side]
    names = (name, f"{side}_offsets", f"{side}_spans")
    tokens, offsets, spans = (getattr(translation, x) for x in names)
    blanks = [x[: len(x) - len(x.lstrip())] if x.strip() else "" for x in tokens]

    def moved(places: Offsets, sizes: Iterable[int]) -> Offsets:
        return [(start + size, end) for (start, end), size in zip(places, sizes, strict=True)]

    return {
        name: [token[len(blank) :] for token, blank in zip(tokens, blanks, strict=True)],
        f"{side}_offsets": moved(offsets, (len(blank.encode()) for blank in blanks)),
        f"{side}_spans": moved(spans, map(len, blanks)),
    }


def check_tokenize_flag(flags: absl_flags.FlagValues) -> None:
    """Raises before long work begins if there is no such --tokenize, or its package is missing."""
    from bahdanau_tf.evaluation.scores import ScoreOptions, bleu_metric

    if flags.tokenize is not None:
        bleu_metric(ScoreOptions(flags.tokenize))


def tokenizer_for(
    flags: absl_flags.FlagValues,
    translator: StringTranslator | None,
    references: Sequence[str],
    metrics: Sequence[str] = ("bleu",),
) -> str:
    """--tokenize, or the tokenizer that fits the references; printed if one of the metrics is BLEU.

    The target tokenizer of the model, if there is one, may know the language.
    """
    from bahdanau_tf.evaluation.scores import default_tokenizer

    if flags.tokenize is not None:
        return str(flags.tokenize)
    text = None if translator is None else translator.target_text
    chosen = default_tokenizer(text, references)
    if "bleu" in metrics:
        StatusLine().note(f"--tokenize={chosen}, which fits the script of the references")
    return chosen


def warn_of_untokenized(systems: Mapping[str, Sequence[str]]) -> None:
    """Warns about systems that are not tokenized although the references are."""
    from bahdanau_tf import evaluation

    for name, lines in systems.items():
        if evaluation.bleu_tokenizer("", lines) in ("char", "ja-mecab"):
            StatusLine().note(
                f"{name} is not tokenized like the references: --tokenize=char can compare them"
            )


def warn_of_sides(sources: Sequence[str], languages: Sequence[str]) -> None:
    """Reports a source that is in the language that the model translates into."""
    if doubt := swapped_sides(sources, languages):
        StatusLine().note(doubt)


def most_frequent(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The most frequent target of each source without spaces at its ends, the first of equals."""
    counts: dict[str, Counter[str]] = {}
    for source, target in pairs:
        counts.setdefault(source.strip(), Counter())[target] += 1
    return {source: targets.most_common(1)[0][0] for source, targets in counts.items()}
