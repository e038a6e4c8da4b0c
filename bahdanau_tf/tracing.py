"""Traces of a translation: attention, gates and readout at every step; the tree of beam search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.layers import (
    AttentionDecoder,
    ConditionalDecoder,
    LinearReadout,
    MaxoutReadout,
    StackedCells,
)
from bahdanau_tf.layers.attention import Attention
from bahdanau_tf.layers.cells import Cell, States
from bahdanau_tf.layers.decoder import Read
from bahdanau_tf.layers.weights import linear
from bahdanau_tf.models.encoder_decoder import EncoderDecoder, ForcedRows, SourceMemory, forced_rows
from bahdanau_tf.plotting.steps import (
    BeamTree as BeamTree,
    Candidate as Candidate,
    Continuation as Continuation,
    Contributions as Contributions,
    Gate as Gate,
    Step as Step,
    Trace as Trace,
)
from bahdanau_tf.translator import Translator

_AT_ONCE = 64  # pairs whose states are computed


class _Rows(NamedTuple):
    """The tensors of a step, float [1, ...], or of all steps, [T_y, ...]; None without one."""

    state: tf.Tensor  # the one that is read out
    previous: tf.Tensor  # E y_{i-1}
    context: tf.Tensor | None  # c_i
    weights: tf.Tensor | None  # α_i
    energies: tf.Tensor | None  # e_i


def trace(
    translator: Translator,
    text: str,
    target: str | None = None,
    candidates: int = 5,
    *,
    attention: ForcedRows | None = None,
) -> Trace:
    """Records the steps of a translation.

    Args:
        translator: A translator of a single model.
        text: The sentence.
        target: Its translation; the translator's best one if None.
        candidates: Number of most probable words recorded at each step.
        attention: Weights to use instead of the model's at some steps, as in
            `Translator.translate`; energies stay the model's own.

    Returns:
        `Trace`; for a text without words it has no steps, unless `target` is given.

    Raises:
        ValueError: `text` is not one string, `candidates` is less than 1, the model is an
            ensemble or not one of this package, it gives no word a finite score, or `attention`
            does not fit, as in `Translator.translate`.

    Example:

    ```python
    steps = trace(translator, "A man sleeps.").steps
    print([(step.token, step.candidates[0].probability) for step in steps])
    ```
    """
    model = _own_model("trace", translator)
    if not isinstance(text, str):
        raise ValueError(f"trace: text is a {type(text).__name__}, wanted one string")
    if candidates < 1:
        raise ValueError(f"trace: candidates is {candidates}, wanted 1 or more")
    reading = translator.source_text.read([text])
    # Letters are as they are read, since those of a syllable of Hangul share a character.
    is_spelled = getattr(translator.source_text, "kind", "") == "char"
    read = _shown(translator.source_text, reading.ids[0])[:-1] if is_spelled else reading.words[0]
    words = [piece.decode("utf-8", "replace") for piece in read.numpy()]
    source = reading.ids.to_tensor()
    columns = [*range(len(words))]  # of the source tokens, in the order of the text
    if translator.source_text.reverse:
        columns.reverse()
    places = [*columns, len(words)]  # with the end symbol
    forced = {} if attention is None else forced_rows(model, attention, places)
    if target is not None:
        ids = translator.target_text.tokenize([target])[0].numpy()
    elif words:
        result = translator.graph.search(source, translator.decoding, attention=forced)
        ids = result.tokens[0, 0, : result.lengths[0, 0]].numpy()
        if not ids.size:
            raise ValueError(
                f"trace: no hypothesis of {text!r} has a finite score; are all "
                "weights of the model finite?"
            )
    else:
        ids = np.zeros([0], np.int32)
    walk, tokens_of = _walk(model, source, ids, forced), partial(_shown, translator.target_text)
    return Trace(
        source=text,
        source_tokens=[words[column] for column in columns],
        step_order=model.decoder.step_order,
        gate_convention=gate_convention(model.decoder.cell),
        steps=_steps(model, tokens_of, walk, source, ids, places, candidates),
        opens_at=min(forced, default=0),
    )


def _shown(text: Any, ids: tf.Tensor) -> tf.Tensor:
    """The tokens of ids; letters, and symbols between spaces, without the sign of a space."""
    tokens = text.ids_to_tokens(ids)
    if getattr(text, "kind", "") not in ("char", "space"):
        return tokens
    return tf.strings.regex_replace(tokens, "^\N{LOWER ONE EIGHTH BLOCK}", "")


def _own_model(owner: str, translator: Translator) -> EncoderDecoder:
    if not isinstance(translator.model, EncoderDecoder):
        raise ValueError(
            f"{owner}: the model is {type(translator.model).__name__}, wanted one model of "
            "this package (trace the members of an ensemble one by one)"
        )
    return translator.model


def decoder_states(
    translator: Translator, sources: Sequence[str], targets: Sequence[str]
) -> list[np.ndarray]:
    """The state that is read out for each target token and the end symbol, float32 [T_y, n].

    Args:
        translator: A translator of a single model.
        sources: The sentences.
        targets: Their translations, in which each word is the next previous word.

    Raises:
        ValueError: The model is an ensemble or not one of this package, or the numbers of
            sentences differ.
    """
    model = _own_model("decoder_states", translator)
    if (x := len(sources)) != (y := len(targets)):
        raise ValueError(f"decoder_states: {x} sources, {y} targets; wanted equal numbers")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2, autograph=False)
    def run(*lines: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        texts = zip((translator.source_text, translator.target_text), lines, strict=True)
        source, target = (text.tokenize(x).to_tensor() for text, x in texts)
        state = model.hidden({"source": source, "target": target})[1].state
        return tf.cast(state, tf.float32), tf.math.count_nonzero(target, axis=1)

    states: list[np.ndarray] = []
    for start in range(0, len(sources), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        batch = run(tf.constant(sources[rows]), tf.constant(targets[rows]))
        padded, lengths = (x.numpy() for x in batch)
        states += [x[:length].copy() for x, length in zip(padded, lengths, strict=True)]
    return states


def nearest_states(
    states: Sequence[np.ndarray], state: np.ndarray, count: int = 5
) -> list[tuple[int, int, float]]:
    """Finds the sentence pairs with a state nearest to a given one, by Euclidean distance.

    Args:
        states: Those of each pair, from `decoder_states`.
        state: float [n].
        count: Number of pairs, each with its nearest state.

    Returns:
        The number of the pair and of the step, both from 0, and the distance; nearest first.
    """
    distances = [np.linalg.norm(each - state, axis=1) for each in states]
    nearest = [(pair, int(x.argmin()), float(x.min())) for pair, x in enumerate(distances)]
    return sorted(nearest, key=lambda each: each[2])[:count]


def _steps(
    model: EncoderDecoder,
    tokens_of: Callable[[tf.Tensor], tf.Tensor],
    walk: Iterator[tuple[_Rows, dict[str, Gate]]],
    source: tf.Tensor,
    ids: np.ndarray,
    columns: list[int],
    candidates: int,
) -> list[Step]:
    """The steps for target ids; `columns` are those of the energies and weights, as shown."""
    if not ids.size:
        return []
    rows, gates = zip(*walk, strict=True)
    columns_of_rows = zip(*rows, strict=True)
    seen = _Rows(*(None if x[0] is None else tf.concat(x, axis=0) for x in columns_of_rows))
    term = None if seen.context is None else model.readout.context_term(seen.context)
    match = None
    if model.copying is not None:
        match = model.matched(source, tf.constant(ids[None]), tf.expand_dims(seen.weights, 0))
        match = tf.nest.map_structure(lambda x: x[0], match)
        term = model.copying.hinted(term, match)
    shares = _terms(model, seen, ids, term)
    hidden = model.readout.hidden(seen.state, seen.previous, term)
    features, output = model.readout.features(hidden), model.output_weights()
    logits = output.logits(features)
    mixed = model.logits(model.copied(features, match), output)
    probabilities = tf.nn.softmax(mixed).numpy()
    best = tf.math.top_k(probabilities, min(candidates, logits.shape[1]))
    names = tokens_of(best.indices).numpy()
    tokens = tokens_of(tf.constant(ids)[None])[0].numpy()
    return [
        Step(
            token=_decoded(tokens[i]),
            logit=float(logits[i, word]),
            probability=float(probabilities[i, word]),
            candidates=[
                Candidate(_decoded(name), float(probability))
                for name, probability in zip(names[i], best.values[i].numpy(), strict=True)
            ],
            energies=_row(seen.energies, i, columns),
            weights=_row(seen.weights, i, columns),
            context_norm=None if seen.context is None else float(np.linalg.norm(seen.context[i])),
            gates=gates[i],
            contributions=None if shares is None else shares[i],
        )
        for i, word in enumerate(ids)
    ]


def _decoded(token: bytes) -> str:
    return token.decode("utf-8", "replace")


def _row(rows: tf.Tensor | None, i: int, columns: list[int]) -> list[float] | None:
    return None if rows is None else rows[i].numpy()[columns].tolist()


def _walk(
    model: EncoderDecoder, source: tf.Tensor, ids: np.ndarray, forced: Mapping[int, np.ndarray]
) -> Iterator[tuple[_Rows, dict[str, Gate]]]:
    """Runs the decoder on given target words, in its step order."""
    memory, state = model.encode(source)
    if model.copying is not None:
        state = state.decoder
    decoder = model.decoder
    previous = memory.first_input
    states, remembered = state.states, state.attention
    read = Read()
    for i, word in enumerate(ids):
        gates: dict[str, Gate] = {}
        before = states[0]
        if decoder.step_order == "conditional":
            states, gates = _update(decoder, previous, None, states)
        elif decoder.step_order == "original" and i:
            states, gates = _update(decoder, previous, read.context, states)
        read, energies = _attend(decoder, states[0], memory, remembered, forced.get(i))
        if isinstance(decoder, ConditionalDecoder):
            projected = decoder.context_term(read.context)
            states, of_context = update(decoder.context_cell, projected, states)
            gates = {f"word {name}": gate for name, gate in gates.items()}
            gates |= {f"context {name}": gate for name, gate in of_context.items()}
        elif decoder.step_order != "original":
            states, gates = _update(decoder, previous, read.context, states)
        remembered = read.attention_state
        seen = before if decoder.step_order == "appendix" else states[0]
        yield _Rows(seen, previous, read.context, read.weights, energies), gates
        previous = model.target_embedding(tf.constant([word]))


def _update(
    decoder: AttentionDecoder, previous: tf.Tensor, context: tf.Tensor | None, states: States
) -> tuple[States, dict[str, Gate]]:
    """The update on W E y + C c."""
    projected = decoder.cell.project(previous)
    if context is not None:
        projected += decoder.context_term(context)
    return update(decoder.cell, projected, states)


def _attend(
    decoder: AttentionDecoder,
    query: tf.Tensor,
    memory: SourceMemory,
    state: Any,
    forced: np.ndarray | None,  # α_i, float32 [T_x]; None for the layer's own
) -> tuple[Read, tf.Tensor | None]:
    """What one sentence's decoder reads, and e_i, float [1, T_x], if `call` computes them."""
    attention = decoder.attention
    if attention is None or not memory.attended:
        return Read(), None
    source, energies = memory.attended.source, None
    # A `call` of its own may need no score, or another one.
    if isinstance(attention, Attention) and type(attention).call is Attention.call:
        beams, beam_state = tf.nest.map_structure(lambda x: x[:, None], (query, state))
        energies = attention.energies(beams, source.keys, beam_state)[:, 0]
    context, weights, state = attention.step(query, source, state)
    if forced is not None:
        weights = tf.constant(forced[None])
        context = tf.cast(weights, context.dtype) @ source.annotations[0]
    return Read(None, context, weights, state), energies


# Both are asked of a class itself: a subclass may compute otherwise.
def gate_convention(cell: Cell) -> str:
    """The meaning of a cell's gates, as an equation; "" without gates.

    Layers of a deep cell whose equations differ have a line each.
    """
    equations = {
        f"layer {number}": vars(type(layer)).get("update_equation", "")
        for number, layer in enumerate(_layers(cell), start=1)
        if _gate_names(layer)
    }
    if len(set(equations.values())) <= 1:
        return str(next(iter(equations.values()), ""))
    return "\n".join(f"{layer}: {it}" for layer, it in equations.items())


def _gate_names(cell: Cell) -> tuple[str | None, ...]:
    return tuple(vars(type(cell)).get("gate_names", ()))


def _layers(cell: Cell) -> list[Cell]:
    """The layers of a cell, the bottom one first."""
    return cell.cells if isinstance(cell, StackedCells) else [cell]


def update(cell: Cell, projected: tf.Tensor, states: States) -> tuple[States, dict[str, Gate]]:
    """One update of all layers of a cell: the new states, and the gates by name.

    A deep cell's are named "layer 1 input" and so on, from the bottom.
    """
    layers = _layers(cell)
    gates: dict[str, Gate] = {}
    new: States = ()
    for number, layer in enumerate(layers, start=1):
        end = len(states) - len(new)  # the top layer's states come first
        own = states[end - layer.state_count : end]
        if new:
            projected = layer.project(new[0])
        prefix = f"layer {number} " if len(layers) > 1 else ""
        gates |= {prefix + name: gate for name, gate in _opened(layer, projected, own[0])}
        new = layer.step(projected, own) + new
    return new, gates


def _opened(cell: Cell, projected: tf.Tensor, state: tf.Tensor) -> Iterator[tuple[str, Gate]]:
    """Yields σ(W x + U h + b) of each gate of a cell, with its name."""
    names = _gate_names(cell)
    if not names:
        return
    bias = getattr(cell, "recurrent_bias", None)
    total = projected + linear(state, cell.recurrent_kernel, bias)
    for name, block in zip(names, tf.split(total, len(names), -1), strict=True):
        if name is not None:
            # A sum of many numbers in half precision stops growing.
            opened = tf.sigmoid(tf.cast(block, tf.float32)).numpy()
            yield (name, Gate(float(opened.mean()), float(np.linalg.norm(opened))))


def _terms(
    model: EncoderDecoder, seen: _Rows, ids: np.ndarray, context_term: tf.Tensor | None
) -> list[Contributions] | None:
    """The terms of each word's logit; None for a readout of another kind.

    `context_term` is C_o c_i, plus H m_i of a model that copies words.

    The term of x is Σ_k (x U)_w(k) W_ky for a maxout readout, where w(k) is the larger unit of
    pair k and W = W_1 W_2 if the output is factored; it is x W_y for a linear readout.
    """
    readout = model.readout
    inputs = {"state": seen.state, "previous": seen.previous, "context": seen.context}
    values = {term: _array(value) for term, value in inputs.items() if value is not None}
    # One row of W for each word: what each unit adds to that word's logit.
    output = model.output_weights()
    rows, of_bias = _array(output.kernel)[ids], _array(output.bias)[ids]
    if readout.factor_kernel is not None:
        rows = rows @ _array(readout.factor_kernel).T
    # Exact types: a subclass may compute something else.
    if type(readout) is LinearReadout:
        terms = readout.used_terms
        ends = np.cumsum([values[term].shape[1] for term in terms])
        blocks = zip(terms, np.split(rows, ends[:-1], axis=1), strict=True)
        shares = {term: (values[term] * block).sum(1) for term, block in blocks}
    elif type(readout) is MaxoutReadout:
        kernels = {term: getattr(readout, f"{term}_kernel") for term in values}
        added = {term: values[term] @ _array(x) for term, x in kernels.items() if x is not None}
        if "context" in added:
            added["context"] = _array(context_term)
        added["bias"] = np.tile(_array(readout.bias), [len(ids), 1])
        pairs = sum(added.values()).reshape(*rows.shape, 2)
        is_first = pairs[..., 0] >= pairs[..., 1]
        routed = (np.stack([is_first, ~is_first], -1) * rows[..., None]).reshape(len(ids), -1)
        shares = {term: (x * routed).sum(1) for term, x in added.items()}
    else:
        return None
    shares["bias"] = shares.get("bias", 0.0) + of_bias
    return [
        Contributions(**{term: float(x[i]) for term, x in shares.items()}) for i in range(len(ids))
    ]


def _array(tensor: tf.Tensor) -> np.ndarray:
    array: np.ndarray = tf.cast(tensor, tf.float64).numpy()
    return array


# What `watch` of `beam_search` gets in a step, of one sentence: log p of the hypotheses, float32
# [K], and their best `Continuations`, of N.
_Selection = tuple[np.ndarray, Any]


def beam_tree(translator: Translator, text: str, **options: Any) -> BeamTree:
    """Records what beam search keeps and cuts while it translates.

    Args:
        translator: The translator, of any model.
        text: The sentence.
        **options: Fields of `Decoding`, such as `beam_size`, which override the translator's.

    Returns:
        `BeamTree`; for a text without words it has no steps.

    Raises:
        ValueError: `text` is not one string; an option is unknown or out of range; or one of
            `sampling`, `shortlist` and `beta` is set, for which there is no tree.
    """
    if not isinstance(text, str):
        raise ValueError(f"beam_tree: text is a {type(text).__name__}, wanted one string")
    decoding = translator.decoding.with_options(translator.decoding, options)
    for name in ("sampling", "shortlist", "beta"):
        if value := getattr(decoding, name):
            raise ValueError(f"beam_tree: {name} is {value}, wanted {type(value)(0)}")
    source, reading = translator.graph.read(tf.constant([text]))
    seen: list[_Selection] = []

    def watch(*step: Any) -> None:
        seen.append(tf.nest.map_structure(lambda x: x[0].numpy(), step))

    if reading.words.flat_values.shape[0]:
        translator.graph.search(source, decoding, watch=watch)
    return BeamTree(text, decoding.beam_size, _levels(seen, decoding, translator.target_text))


def _levels(seen: list[_Selection], decoding: Any, target: Any) -> list[list[Continuation]]:
    """The steps of a tree, of a search with these options into the target's words."""
    levels: list[list[Continuation]] = []
    k, width = decoding.beam_size, decoding.beam_size
    # The scores of finished hypotheses, best first, with -time and -place; at first of none.
    finished: list[tuple[float, int, int]] = [(-np.inf, 1 - len(seen), 0)] * decoding.n_best
    for time, (_, step) in enumerate(seen):
        scores = step.log_probs / ((6 + time) / 6) ** decoding.alpha
        places, exist = np.arange(len(scores)), np.isfinite(scores)
        ends = step.tokens == target.eos_id
        done = np.flatnonzero(ends & exist & (places < width))
        finished += [(float(scores[i]), -time, -int(i)) for i in done]
        finished.sort(reverse=True)
        if is_last := time + 1 == len(seen):
            lives = scores > finished[decoding.n_best - 1][0]
            continued = places
        else:
            before, after = seen[time + 1]
            lives = np.resize(np.isfinite(before), len(places))
            continued = after.parents[:k][np.isfinite(after.log_probs[:k])]
        reasons = {
            "not among the best": places >= k,
            "the beam got narrower": places >= width,
            "finished, others score higher": ends,
            "could not win any more": ~lives,
            "at the length limit": np.full_like(ends, is_last),
            "all continuations were cut": ~np.isin(places, continued),
        }
        cut = np.select([*reasons.values()], [*reasons], "")
        width -= decoding.shrink * len(done)
        names = _shown(target, step.tokens[None])[0].numpy()
        levels.append(
            [
                Continuation(
                    token=_decoded(names[i]),
                    parent=int(step.parents[i]) if time else -1,
                    log_prob=float(step.log_probs[i]),
                    score=float(scores[i]) if ends[i] else None,
                    cut=str(cut[i]),
                )
                for i in np.flatnonzero(exist)
            ]
        )
    time, place = (-x for x in finished[0][1:])
    while levels and levels[time] and place >= 0:
        levels[time][place] = replace(levels[time][place], cut="", is_best=True)
        time, place = time - 1, levels[time][place].parent
    return levels
