"""Options that fit a text: the rules by which `train` chooses.

Each rule is a pure function of the facts about a text and of the options that
are known so far, those that the user gave first. docs/train.md has a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from bahdanau_tf.data.held_out import Facts, Side
from bahdanau_tf.options.cost import (
    BATCH_TOKENS,
    GPU,
    MEASURED,
    SMALL,
    UNITS,
    batch_of,
    between,
    by_lines,
    cores_of,
    estimated_tokens,
    fitting,
    limits,
    rate_of,
    rounded,
    seconds_per_epoch,
    seen,
    subwords,
    updates_per_epoch,
)
from bahdanau_tf.options.evaluations import DEV_SHARE, MOST_DEV_PAIRS, updates_between
from bahdanau_tf.options.model import ModelOptions
from bahdanau_tf.options.recipe import Recipe
from bahdanau_tf.options.text import TextOptions
from bahdanau_tf.system.terminal import amount

# The options that are chosen, if they are not given.
CHOSEN = (
    *("tokenizer", "joint", "source_vocabulary_size"),
    *("target_vocabulary_size", "reverse_source", "units", "embedding_dim"),
    *("attention_units", "maxout_units", "layers", "step_order"),
    *("factored_output", "product_dtype"),
    *("tie_embeddings", "initialization", "embedding_dropout"),
    *("annotation_dropout", "readout_dropout", "label_smoothing", "optimizer"),
    *("learning_rate", "schedule", "warmup_steps", "constant_share"),
    *("batch_size", "shuffle", "shuffle_pool", "max_length", "dev_pairs"),
    *("patience", "epochs", "minutes", "evaluate_every"),
)
LEAST_EPOCHS = 3  # of a model with more than SMALL units
TINY = 1000  # pairs: fewer have sub-words of about a letter
LONGEST = 200  # tokens: longer pairs take much memory and time
FEW_UPDATES = 10_000  # if no more fit, more but smaller batches learn more
NAMES = {  # how scripts are called, if not by their name
    "han": "Chinese characters",
    "hangul": "Hangul",
    "kana": "Japanese characters",
    "": "no letters",
}


class Choice(NamedTuple):
    """Options that are chosen together.

    Attributes:
        values: The values, by the names of their flags.
        reason: What they are and why, as a line to print.
    """

    values: dict[str, Any]
    reason: str

    def without(self, names: Collection[str]) -> Choice:
        """The choice without some of its values."""
        kept = {n: v for n, v in self.values.items() if n not in names}
        return self._replace(values=kept)


def fitted(
    facts: Facts, given: Mapping[str, Any], rules: Sequence[Rule] | None = None
) -> list[Choice]:
    """Chooses the options that are not given.

    Args:
        facts: The text.
        given: The options that the user gave, by the names of their flags, with
            "dev_source" and "dev_lines" if there is a dev text, and what
            `seconds_per_epoch` reads of the machine.
        rules: The rules, in order; `RULES` if None.

    Returns:
        The choices; together with `given` they fit each other.
    """
    known, choices = dict(given), []
    for rule in rules or RULES:
        choice = rule(facts, known)
        unused = _unused({**choice.values, **known})
        choice = choice.without({*known, *unused})
        if choice.values:
            choices.append(choice)
            known |= choice.values
    return choices


def _unused(known: Mapping[str, Any]) -> set[str]:
    """Options that have no effect with what is known."""
    names = ("tokenizer", "joint", "model", "schedule")
    some = {name: known[name] for name in names if name in known}
    return {
        name
        for owner in (TextOptions, ModelOptions, Recipe)
        for name in owner(**{k: some[k] for k in some if k in owner.__dataclass_fields__}).unused()
    }


def _tokens(facts: Facts, known: Mapping[str, Any]) -> Choice:
    """Sub-words; joint if both sides have the same letters."""
    names = ("source_language", "target_language")
    by_language = [name for name in names if name in known]
    letters = [
        NAMES.get(side.script, f"{side.script.title()} letters")
        for side in (facts.source, facts.target)
    ]
    if known.get("tokenizer", "word" if by_language else "bpe") == "word":
        reason = "words"
        if by_language:
            reason += f", for which --{by_language[0]} has rules"
        return Choice({"tokenizer": "word"}, reason)
    is_same = letters[0] == letters[1]
    joint = is_same and "target_vocabulary_size" not in known
    joint = known.get("joint", joint or bool(known.get("share_embeddings")))
    reason = f"the source has {letters[0]}, the target {letters[1]}"
    if is_same:
        reason = f"both sides have {letters[0]}"
        if not facts.source.script:
            reason = "neither side has letters"
    if joint != is_same:
        reason = "as the flags that are given want it"
    if facts.source.is_tokenized and facts.target.is_tokenized:
        reason += "; they are tokenized, and translations will be"
    how = "joint" if joint else "each side its own"
    return Choice({"tokenizer": "bpe", "joint": joint}, f"sub-words, {how}: {reason}")


def _vocabulary(facts: Facts, known: Mapping[str, Any]) -> Choice:
    """More ids for more pairs, as far as the text has letters for them."""
    sides = {"source": facts.source, "target": facts.target}
    if known["tokenizer"] == "word":
        size = between(500, 10_000 * math.sqrt(facts.different / MEASURED), 50_000)
        sizes = dict.fromkeys(sides, rounded(size))
    elif known.get("joint"):
        size = facts.source.size + facts.target.size
        joint = subwords(facts.different, True, size, facts.characters)
        sizes = {"source": joint}
    else:
        sizes = {
            name: subwords(facts.different, False, side.size, side.characters)
            for name, side in sides.items()
        }
    values = {f"{name}_vocabulary_size": size for name, size in sizes.items()}
    all_known = {**values, **known}
    told = f"vocabulary of {all_known['source_vocabulary_size']:,} ids"
    if not known.get("joint"):
        target = all_known["target_vocabulary_size"]
        told += f" for the source, {target:,} for the target"
    return Choice(values, told)


def _model(facts: Facts, known: Mapping[str, Any]) -> Choice:
    """All layers as wide as the number of lines allows."""
    name = known.get("model", ModelOptions.model)
    values: dict[str, Any] = {"initialization": "glorot", "layers": 2}
    if name == "seq2seq-lstm":
        values["reverse_source"] = True  # as Sutskever et al. did
    if name == "rnnsearch" and known.get("cell") is None:
        values["step_order"] = "conditional"
    known = {**values, **known}
    units = known.get("units", _units(facts, known))
    embedding = known.get("embedding_dim", units)
    if known.get("tie_embeddings") and "embedding_dim" not in known:
        embedding = known.get("maxout_units", embedding)
    maxout = known.get("maxout_units", embedding)
    is_factored = known.get("factored_output", False)
    values |= {
        "units": units,
        "embedding_dim": embedding,
        "attention_units": units,
        "maxout_units": maxout,
        "factored_output": is_factored,
        "tie_embeddings": embedding == maxout and not is_factored,
    }
    if known.get("step_order") == "conditional":
        name = f"conditional {name}"
    told = f"{name}, {units} units"
    if "units" not in known:
        told += f": {_size(facts, units)}"
    return Choice(values, told)


def _units(facts: Facts, known: Mapping[str, Any]) -> int:
    """As many as the lines allow, if some epochs fit into the time."""
    most = by_lines(facts)[1]
    wanted = min(limits(facts, known)[0], LEAST_EPOCHS)

    def enough(units: int) -> bool:
        return fitting(facts, {**known, "units": units}) >= wanted

    return max(
        units for _, units, _ in UNITS if units <= most and (units <= SMALL or enough(units))
    )


def _size(facts: Facts, units: int) -> str:
    if facts.different < UNITS[0][0]:
        return f"few for a small text, under {UNITS[0][0]:,} different lines"
    if units < by_lines(facts)[1]:
        return f"with more, {LEAST_EPOCHS} epochs would not fit into the time"
    if facts.different < UNITS[1][0]:
        return f"for up to {UNITS[1][0]:,} different lines"
    return "many for a large text"


def _dropout(facts: Facts, known: Mapping[str, Any]) -> Choice:
    """More dropout the more often each pair is seen."""
    epochs = seen(facts, known)
    rates, why = (0.3, 0.4, 0.4), "high since each pair is seen often"
    if epochs < 8:
        rates, why = (0.1, 0.2, 0.2), "low since each pair is seen rarely"
    elif epochs <= 24:
        rates, why = (0.2, 0.3, 0.3), "since each pair is seen some times"
    names = ("embedding_dropout", "annotation_dropout", "readout_dropout")
    values = {**dict(zip(names, rates, strict=True)), "label_smoothing": 0.1}
    *told, smoothing = (f"{known.get(n, r):g}" for n, r in values.items())
    return Choice(
        values,
        f"dropout {', '.join(told)}, {why}; label smoothing {smoothing}",
    )


def choose_updates(facts: Facts, known: Mapping[str, Any]) -> Choice:
    """Adam with a linear decay; 50 updates an epoch or more."""
    batch = known.get("batch_size", _batch_size(facts, known))
    known = {**known, "batch_size": batch}
    updates = seen(facts, known) * updates_per_epoch(facts, known)
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
    if known.get("optimizer", "adam") == "adam":
        values["learning_rate"] = by_lines(facts)[2]
        if isinstance(units := known.get("units"), int):
            values["learning_rate"] = rate_of(units)
    optimizer = known.get("optimizer", "adam")
    rate = known.get("learning_rate", values.get("learning_rate"))
    told = optimizer if rate is None else f"{optimizer}, learning rate {rate:g}"
    return Choice(values, f"{told}, batches of {batch} pairs")


def _batch_size(facts: Facts, known: Mapping[str, Any]) -> int:
    """Some thousand target tokens; half of it if few updates fit."""
    tokens = estimated_tokens(facts.target)
    updates = fitting(facts, known) * tokens / BATCH_TOKENS
    updates /= known.get("accumulate", 1)
    wanted = BATCH_TOKENS if updates >= FEW_UPDATES else BATCH_TOKENS / 2
    return int(between(8, facts.pairs / 50, batch_of(facts, wanted)))


def choose_length(facts: Facts, known: Mapping[str, Any]) -> Choice:
    """Room for nearly all pairs, in tokens as they are estimated."""
    tokens = max(
        _estimated(side, known["tokenizer"] == "word", facts.pairs)
        for side in (facts.source, facts.target)
    )
    longest = int(between(20, 10 * math.ceil(tokens / 10), LONGEST))
    told = ", which are nearly all"
    if tokens > LONGEST:
        told = "; how many these are is counted before the training begins"
    return Choice({"max_length": longest}, f"pairs of up to {longest} tokens{told}")


def _estimated(side: Side, is_word: bool, pairs: int) -> float:
    """Upper estimate of the tokens of nearly every line."""
    if is_word and side.has_blanks:
        return 1.5 * side.words  # with punctuation
    # A sub-word of an alphabet has 2 letters or more, on average, unless it was
    # learned from a tiny text.
    alone = side.script in ("kana", "han", "hangul") or not side.has_blanks
    return side.length / (1 if alone or pairs < TINY else 2)


def choose_dev_text(facts: Facts, known: Mapping[str, Any]) -> Choice:
    """Holds 5 % out, at most 1,000 pairs, if there is no dev text."""
    if "dev_source" in known:
        return Choice({"patience": Recipe.patience}, "dev text: yours")
    pairs = min(MOST_DEV_PAIRS, facts.pairs // DEV_SHARE)
    if facts.different < 400:
        pairs = 0
    if not known.get("dev_pairs", pairs):
        return Choice(
            {"dev_pairs": 0},
            "no dev text: there are too few different lines to hold some out, "
            "so the last model is kept as the best",
        )
    return Choice(
        {"dev_pairs": pairs, "patience": Recipe.patience},
        f"about {amount(known.get('dev_pairs', pairs), 'pair')} held out to "
        "choose the best model by",
    )


def choose_time(facts: Facts, known: Mapping[str, Any]) -> Choice:
    """An hour, unless an end is given; evaluations take a few percent."""
    epochs, minutes = limits(facts, known)
    values = {
        "epochs": epochs,
        "minutes": minutes,
        "evaluate_every": rounded(updates_between(facts, known)),
    }
    each = seconds_per_epoch(facts, known) / 60
    quick = amount(max(round(60 * each), 1), "second")
    one = f"{each:.1f} minutes" if each >= 1 else quick
    ends = [amount(minutes, "minute")] if minutes else []
    if updates := known.get("updates"):
        ends.append(amount(updates, "update"))
    about = ""
    if "epochs" in known or not updates:
        ends.append(amount(epochs, "epoch"))
    else:
        about = f", about {seen(facts, known):.2g} epochs"
    told = f"at most {' and '.join(ends)}{about}"
    told += f", one of which takes about {one} of "
    told += _device(facts, known)
    every = known.get("evaluate_every", values["evaluate_every"])
    if every > 1 and known.get("dev_pairs") != 0:
        told += f"; evaluated every {every:,} updates"
    if "minutes" not in known and minutes:
        told += "; --minutes=N sets another time"
    return Choice(values, told)


def _device(facts: Facts, known: Mapping[str, Any]) -> str:
    """What the time is of: "2 cores"."""
    if known.get("has_gpu"):
        return f"a GPU, if it is as fast as {GPU} cores"
    return amount(cores_of(facts, known), "core")


Rule = Callable[[Facts, Mapping[str, Any]], Choice]
RULES: tuple[Rule, ...] = (
    _tokens,
    _vocabulary,
    _model,
    choose_updates,
    choose_time,
    _dropout,
    choose_length,
    choose_dev_text,
)
