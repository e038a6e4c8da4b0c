"""Options that fit a text: the rules by which `train` chooses.

Each rule is a pure function of the facts about a text and of the options that are set so far: those
of the user, then those of earlier rules. docs/train.md has a table of the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from bahdanau_tf.options.facts import (
    BATCH_TOKENS,
    GPU,
    MEASURED,
    Facts,
    Options,
    Side,
    batch_of,
    between,
    cores_of,
    epochs_in_time,
    limits,
    rounded,
    seconds_per_epoch,
    seen,
    tokenizers_of,
    updates_per_epoch,
)
from bahdanau_tf.options.model import DROPOUT, ModelOptions, TextOptions
from bahdanau_tf.options.recipe import Recipe
from bahdanau_tf.system.ranges import named
from bahdanau_tf.system.terminal import amount


class Choice(NamedTuple):
    """Options that are chosen together."""

    values: dict[str, Any]  # by the names of their flags
    reason: str  # a line to print: the values, and why they were chosen

    def without(self, names: Collection[str]) -> Choice:
        """The choice without some of its values."""
        kept = {n: v for n, v in self.values.items() if n not in names}
        return self._replace(values=kept)


Rule = Callable[[Facts, Options], Choice]


SMALL = 256  # units
# Different lines of a text, the units that fit it, and Adam's learning rate.
UNITS = ((5_000, 128, 2e-3), (500_000, 256, 2e-3), (5_000_000, 512, 1e-3), (math.inf, 1000, 5e-4))

# The options that are chosen unless the user sets them.
CHOSEN = (
    *("tokenizer", "target_tokenizer", "joint"),
    *("source_vocabulary_size", "target_vocabulary_size"),
    *("reverse_source", "decompose_source"),
    *("units", "embedding_dim", "attention_units", "maxout_units", "layers", "step_order"),
    *("factored_output", "product_dtype", "tie_embeddings", "initialization"),
    *("copying", "synthetic_pairs"),
    *("embedding_dropout", "annotation_dropout", "readout_dropout", "label_smoothing"),
    *("optimizer", "learning_rate", "schedule", "warmup_steps", "constant_share"),
    *("batch_size", "shuffle", "shuffle_pool", "max_length", "dev_pairs"),
    *("monitor", "patience", "epochs", "minutes", "evaluate_every"),
)


def choose(facts: Facts, user_options: Options) -> list[Choice]:
    """Chooses the options that the user did not set, consistent with those.

    `user_options` has the latter by the names of their flags, "dev_source" and
    "dev_lines" if there is a dev text, and what `seconds_per_epoch` reads about
    the machine; with "init_from" also the sizes and the tokenizers of that model, and
    "is_other_language" if one of them is new.
    """
    options, rules, choices = dict(user_options), RULES, []
    if options.get("init_from") is not None:
        options, rules = TYPICAL_MODEL | options, RULES_OF_TRAINED
    for rule in rules:
        choice = rule(facts, options)
        unused = _unused({**choice.values, **options})
        choice = choice.without({*options, *unused})
        if choice.values:
            choices.append(choice)
            options |= choice.values
    return choices


def _unused(options: Options) -> set[str]:
    """Options that have no effect together with those that are set."""
    names = ("tokenizer", "target_tokenizer", "joint", "model", "schedule")
    unused: set[str] = set()
    for owner in (TextOptions, ModelOptions, Recipe):
        own = {n: options[n] for n in names if n in options and n in owner.__dataclass_fields__}
        unused |= owner(**own).unused().keys()
    return unused


# The rules.


NAMES = {  # of scripts that have another one in English
    "han": "Chinese characters",
    "hangul": "Hangul",
    "kana": "Japanese characters",
    "": "no letters",
}


def _tokens(facts: Facts, options: Options) -> Choice:
    """Sub-words; joint if both sides have the same letters."""
    names = ("source_language", "target_language")
    others = ("tokenizer", "target_tokenizer", "joint", "share_embeddings", "sample_subwords")
    if facts.is_short and not {*others, *names} & {*options}:
        return _short_strings(facts)
    by_language = [name for name in names if name in options]
    if options.get("tokenizer", "word" if by_language else "bpe") == "word":
        rules = f", for which {named(by_language[0])} has rules" if by_language else ""
        return Choice({"tokenizer": "word"}, f"words{rules}")
    scripts = facts.source.script, facts.target.script
    source, target = (NAMES.get(script, f"{script.title()} letters") for script in scripts)
    own = ("target_vocabulary_size", "target_tokenizer", "decompose_source")
    joint = source == target and not any(map(options.get, own))
    joint = options.get("joint", joint or bool(options.get("share_embeddings")))
    reason = f"the source has {source}, the target {target}"
    if source == target:
        reason = f"both sides have {source}" if facts.source.script else "neither side has letters"
    if joint != (source == target):
        reason = "as required by your flags"
    if facts.source.is_tokenized and facts.target.is_tokenized:
        reason += "; both are tokenized, so translations will be, too"
    how = "joint" if joint else "separate for each side"
    return Choice({"tokenizer": "bpe", "joint": joint}, f"sub-words, {how}: {reason}")


def _short_strings(facts: Facts) -> Choice:
    """Characters of words, letters if they are Hangul; of phones those between spaces."""
    source, target = facts.short_kinds
    values: dict[str, Any] = {"tokenizer": source}
    if target != source:
        values["target_tokenizer"] = target
    what = {"char": "characters, since its lines are words"}
    what["space"] = "what stands between spaces, since that is short and of few kinds"
    read = what[source]
    if source == "char" and facts.source.script == "hangul":
        values["decompose_source"], read = True, read.replace("characters", "letters of Hangul")
    elif source == target:
        return Choice(values, read.replace("its lines", "the lines of both sides"))
    return Choice(values, f"source: {read}; target: {what[target]}")


def _vocabulary(facts: Facts, options: Options) -> Choice:
    """More ids for more pairs, up to a limit set by the number of letters.

    Of characters and symbols there are as many as the text has, which is known once it is read.
    """
    values = vocabulary_sizes(facts, options)
    all_of, kinds = {"char": "all characters", "space": "all symbols"}, tokenizers_of(options)

    def size(side: str) -> str:
        name = f"{side}_vocabulary_size"
        ids = f"{ {**values, **options}[name]:,} ids"
        return ids if name in options else all_of.get(kinds[side], ids)

    reason = f"vocabulary of {size('source')}"
    if not options.get("joint"):
        reason += f" for the source, {size('target')} for the target"
    return Choice(values, reason)


def vocabulary_sizes(facts: Facts, options: Options) -> dict[str, int]:
    """The numbers of ids that fit a text, by option."""
    sides = {"source": facts.source, "target": facts.target}
    kinds = tokenizers_of(options)
    if kinds["source"] == "word":
        size = between(500, 10_000 * math.sqrt(facts.different / MEASURED), 50_000)
        sizes = dict.fromkeys(sides, rounded(size))
    elif options.get("joint"):
        size = facts.source.size + facts.target.size
        sizes = {"source": subwords(facts.different, True, size, facts.characters)}
    else:
        sizes = {
            name: {
                "char": SPECIAL + side.characters,
                "space": 3 + 2 * side.symbols,  # those of a sample, if the text is large
            }.get(kinds[name], subwords(facts.different, False, side.size, side.characters))
            for name, side in sides.items()
        }
    return {f"{name}_vocabulary_size": size for name, size in sizes.items()}


SPECIAL = 260  # bytes, special symbols and the space among the sub-words


def subwords(lines: int, is_joint: bool, size: int, characters: int) -> int:
    """Number of sub-words for a text of `size` characters.

    `lines` are its different source lines; repeated lines add no words.
    """
    needed = SPECIAL + characters  # SentencePiece refuses less
    share = lines / MEASURED
    wanted = 8000 * share ** (1 / 3) if is_joint else 4000 * math.sqrt(share)
    wanted = between(500, wanted, 32_000)
    wanted = max(rounded(wanted), needed + rounded(wanted / 4))
    return min(wanted, needed + size // 20)


LEAST_EPOCHS = 3  # of a model with more than SMALL units


def _model(facts: Facts, options: Options) -> Choice:
    """All layers as wide as the number of lines allows."""
    name = options.get("model", ModelOptions.model)
    values: dict[str, Any] = {"initialization": "glorot", "layers": 2}
    if name == "seq2seq-lstm":
        values["reverse_source"] = True  # as Sutskever et al. did
    if name == "rnnsearch" and options.get("cell") is None:
        values["step_order"] = "conditional"
    options = {**values, **options}
    most = _by_lines(facts)[1]
    units = options.get("units", _units(facts, options, most))
    embedding = options.get("embedding_dim", units)
    if options.get("tie_embeddings") and "embedding_dim" not in options:
        embedding = options.get("maxout_units", embedding)
    maxout = options.get("maxout_units", embedding)
    is_factored = options.get("factored_output", False)
    values |= {
        "units": units,
        "embedding_dim": embedding,
        "attention_units": units,
        "maxout_units": maxout,
        "factored_output": is_factored,
        "tie_embeddings": embedding == maxout and not is_factored,
    }
    (few, *_), (many, *_), *_ = UNITS
    why = "many for a large text"
    if facts.different < few:
        why = f"few for a small text, under {few:,} different lines"
    elif units < most:
        why = f"with more, {LEAST_EPOCHS} epochs would not fit into the time"
    elif facts.different < many:
        why = f"for up to {many:,} different lines"
    kind = "conditional " * (options.get("step_order") == "conditional")
    reason = "" if "units" in options else f": {why}"
    return Choice(values, f"{kind}{name}, {units} units{reason}")


SYNTHETIC_PAIRS = 0.075
KEPT_SIGNS = 0.95  # of the lines without letters: so many stay as they are


def _copying(facts: Facts, options: Options) -> Choice:
    """Names and numbers are copied, if both sides spell them with the same sub-words.

    Between characters no names are, but numbers and signs if the text keeps them.
    """
    share = f"{100 * options.get('synthetic_pairs', SYNTHETIC_PAIRS):g} % of the pairs"
    if {*tokenizers_of(options).values()} == {"char"} and facts.kept_signs >= KEPT_SIGNS:
        reason = f"numbers and signs stay as they are; {share} are other ones"
        return Choice({"synthetic_pairs": SYNTHETIC_PAIRS}, reason)
    has_attention = options.get("model", ModelOptions.model) == "rnnsearch"
    if not (has_attention and options.get("joint")) or options.get("copying") == "off":
        return Choice({}, "")
    reason = f"names and numbers are copied; {share} get other ones"
    return Choice({"copying": "hint", "synthetic_pairs": SYNTHETIC_PAIRS}, reason)


def _units(facts: Facts, options: Options, most: int) -> int:
    """Chooses as many as the lines allow, if at least a few epochs fit into the time."""
    wanted = min(limits(facts, options)[0], LEAST_EPOCHS)
    return max(
        units
        for _, units, _ in UNITS
        if units <= SMALL or epochs_in_time(facts, {**options, "units": units}) >= wanted
        if units <= most
    )


def _by_lines(facts: Facts) -> tuple[float, int, float]:
    """The row of `UNITS` for a text."""
    return next(row for row in UNITS if facts.different < row[0])


def _rate_of(units: int) -> float:
    """The learning rate of Adam for a new model of so many units."""
    return next((rate for _, most, rate in UNITS if units <= most), UNITS[-1][2])


def _dropout(facts: Facts, options: Options) -> Choice:
    """More dropout the more often each pair is seen."""
    epochs = seen(facts, options)
    rates, why = (0.3, 0.4, 0.4), "high since each pair is seen often"
    if epochs < 8:
        rates, why = (0.1, 0.2, 0.2), "low since each pair is seen rarely"
    elif epochs <= 24:
        rates, why = (0.2, 0.3, 0.3), "since each pair is seen several times"
    values = {**dict(zip(DROPOUT, rates, strict=True)), "label_smoothing": 0.1}
    *dropouts, smoothing = (f"{options.get(n, r):g}" for n, r in values.items())
    given = "" if {*DROPOUT} <= options.keys() else f"dropout {', '.join(dropouts)}, {why}; "
    return Choice(values, f"{given}label smoothing {smoothing}")


FEW_UPDATES = 10_000  # if no more fit into the time, smaller batches learn more


def _updates(facts: Facts, options: Options) -> Choice:
    """Adam with a linear decay; 50 updates an epoch or more."""
    # Batches of `BATCH_TOKENS` target tokens; half as many if few updates fit.
    updates = epochs_in_time(facts, options) * facts.tokens(options)[1] / BATCH_TOKENS
    is_many = updates / options.get("accumulate", 1) >= FEW_UPDATES
    fit = batch_of(facts, options, BATCH_TOKENS if is_many else BATCH_TOKENS / 2)
    batch = options.get("batch_size", int(between(8, facts.pairs / 50, fit)))
    options = {**options, "batch_size": batch}
    updates = seen(facts, options) * updates_per_epoch(facts, options)
    values = {
        "optimizer": "adam",
        "schedule": "linear",
        "warmup_steps": max(int(min(200.0, updates / 10)), 1),
        "constant_share": 0.5,
        "batch_size": batch,
        "shuffle": "each_epoch",
        "shuffle_pool": True,
        "product_dtype": "auto",
    }
    optimizer = options.get("optimizer", "adam")
    if optimizer == "adam":
        values["learning_rate"] = _by_lines(facts)[2]
        if isinstance(units := options.get("units"), int):
            values["learning_rate"] = _rate_of(units)
    rate = options.get("learning_rate", values.get("learning_rate"))
    reason = optimizer if rate is None else f"{optimizer}, learning rate {rate:g}"
    return Choice(values, f"{reason}, batches of {batch} pairs")


TINY = 1000  # with fewer pairs sub-words have about one letter
LONGEST = 200  # tokens; longer pairs take much memory and time


def _length(facts: Facts, options: Options) -> Choice:
    """Room for nearly all pairs, by an estimate of their tokens."""

    def estimated(side: Side, kind: str) -> float:
        if kind == "word" and side.has_blanks:
            return 1.5 * side.words  # with punctuation
        if kind in ("char", "space"):
            return side.length if kind == "char" else side.words
        # A sub-word of an alphabet has 2 letters or more, on average, unless it was
        # learned from a tiny text.
        return side.length / (1 if side.is_dense or facts.pairs < TINY else 2)

    kinds = tokenizers_of(options)
    most = 3 if facts.reads_letters(options) else 1  # letters of a syllable
    tokens = most * estimated(facts.source, kinds["source"])
    tokens = max(tokens, estimated(facts.target, kinds["target"]))
    longest = int(between(20, 10 * math.ceil(tokens / 10), LONGEST))
    which = ", nearly all of them"
    if tokens > LONGEST:
        which = "; the training counts them before it starts"
    return Choice({"max_length": longest}, f"pairs of up to {longest} tokens{which}")


DEV_SHARE = 20  # a pair is held out for so many different source lines
MOST_DEV_PAIRS = 1000


def _dev_text(facts: Facts, options: Options) -> Choice:
    """Holds out 5 %, at most 1,000 pairs, if there is no dev text."""
    values: dict[str, Any] = {"patience": Recipe.patience}
    how = "the best model"
    if facts.is_short:
        values["monitor"], how = "exact", "the model with the most exact matches"
    if "dev_source" in options:
        by = f", to choose {how}" if facts.is_short else ""
        return Choice(values, f"dev text: yours{by}")
    pairs = 0 if facts.different < 400 else min(MOST_DEV_PAIRS, facts.different // DEV_SHARE)
    if not (wanted := options.get("dev_pairs", pairs)):
        few = "no dev text: there are too few different lines to hold some out"
        return Choice({"dev_pairs": 0}, f"{few}, so the last model is kept as the best")
    reason = f"about {amount(wanted, 'pair')} held out to choose {how}"
    return Choice({"dev_pairs": pairs, **values}, reason)


def _time(facts: Facts, options: Options) -> Choice:
    """An hour, unless a limit is set; evaluations take a few percent of it."""
    epochs, minutes = limits(facts, options)
    every = rounded(updates_between(facts, options))
    each = seconds_per_epoch(facts, options) / 60
    quick = amount(max(round(60 * each), 1), "second")
    an_epoch = f"{each:.1f} minutes" if each >= 1 else quick
    ends = [amount(minutes, "minute")] if minutes else []
    if updates := options.get("updates"):
        ends.append(amount(updates, "update"))
    about = ""
    if "epochs" in options or not updates:
        ends.append(amount(epochs, "epoch"))
    else:
        about = f", about {amount(float(f'{seen(facts, options):.2g}'), 'epoch')}"
    device = amount(cores_of(facts, options), "core")
    if options.get("has_gpu"):
        device = f"a GPU, if it is as fast as {GPU} cores"
    reason = f"at most {' and '.join(ends)}{about}; an epoch takes about {an_epoch} on {device}"
    values = {"epochs": epochs, "minutes": minutes, "evaluate_every": every}
    every = options.get("evaluate_every", every)
    if every > 1 and options.get("dev_pairs") != 0:
        reason += f"; evaluated every {every:,} updates"
    if "minutes" not in options and minutes:
        reason += f"; {named('minutes')}=N sets a different limit"
    return Choice(values, reason)


EVALUATION_MINUTES = 5  # of training before each evaluation with so many dev pairs
LEAST, MOST = 250, 2000  # updates before each evaluation
COUNT = 10  # evaluations at least, unless less time remained for training than
LEAST_MINUTES = 2  # before each evaluation with so many dev pairs
DEV_TOKENS = 18  # of one of them
QUICK = 0.25  # with this share of them an evaluation takes a few seconds


def updates_between(facts: Facts, options: Options) -> float:
    """The number of updates between two evaluations; 0 for once an epoch.

    There are ten evaluations or more, so that a short training has a model
    early, unless they would take much of its time. The options have a
    "batch_size", and the number of "dev_lines" if there is a dev text.
    """
    if options.get("token_budget"):
        return 0
    an_epoch = updates_per_epoch(facts, options)
    a_minute = an_epoch / (seconds_per_epoch(facts, options) / 60)
    held_out = min(facts.different / DEV_SHARE, MOST_DEV_PAIRS)
    share = options.get("dev_lines", options.get("dev_pairs", held_out)) / MOST_DEV_PAIRS
    if facts.is_short:  # words take less time, and equal ones, as in running text, none
        share *= min(facts.tokens(options)[1] / facts.pairs / DEV_TOKENS, 1)
        share *= facts.different / facts.pairs if "dev_lines" in options else 1
    least = max(LEAST // options.get("accumulate", 1), 1)
    wanted: float = max(least, min(EVALUATION_MINUTES * share * a_minute, MOST))
    tenth = seen(facts, options) * an_epoch / COUNT
    quick: float = LEAST_MINUTES * (share - QUICK) * a_minute
    return max(min(wanted, tenth), quick, 1)


# A model that is trained already.

# Shares of the learning rate that a new model would get; with --risk_samples
# 5 % made translations worse.
SHARE, RISK_SHARE = 0.1, 0.015
# Used instead of the model when flags are checked before it is loaded.
TYPICAL_MODEL: dict[str, Any] = {
    **{"tokenizer": "bpe", "units": SMALL},
    **dict.fromkeys(("source_vocabulary_size", "target_vocabulary_size"), 4000),
}


def _low_rate(_: Facts, options: Options) -> Choice:
    """A low learning rate, which keeps what the model has learned; not for another language."""
    reasons, share = [], SHARE
    if options.get("risk_samples"):
        reasons, share = ["minimum risk"], RISK_SHARE
    elif options.get("is_other_language"):
        share = 1.0
    optimizer = options.get("optimizer", "adam")
    rate = _rate_of(options["units"]) if optimizer == "adam" else Recipe(optimizer=optimizer).rate
    times = f"{share:g} times " if share < 1 else ""
    reasons.append(f"{times}the learning rate of a new model")
    return Choice({"learning_rate": share * rate}, ", ".join(reasons))


def _other_dropout(facts: Facts, options: Options) -> Choice:
    """For another language that of a new model; with a low rate a model learns less with more."""
    if options.get("risk_samples"):  # its loss has no label smoothing
        return Choice({}, "")
    if options.get("is_other_language"):
        return _dropout(facts, options)
    smoothing = options.get("label_smoothing", 0.1)
    return Choice({"label_smoothing": 0.1}, f"label smoothing {smoothing:g}")


RULES: tuple[Rule, ...] = (
    *(_tokens, _vocabulary, _model, _copying),
    *(_updates, _time, _dropout, _length, _dev_text),
)
RULES_OF_TRAINED: tuple[Rule, ...] = (
    *(_low_rate, _updates, _time, _other_dropout, _length, _dev_text),
)
