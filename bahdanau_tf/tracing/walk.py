"""Repeats the steps of a translation and records them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.layers import AttentionDecoder
from bahdanau_tf.layers import ConditionalDecoder
from bahdanau_tf.layers.attention import Attention
from bahdanau_tf.layers.cells import States
from bahdanau_tf.models import TranslationModel
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.models.encoder_decoder import SourceMemory
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.tracing.contributions import contributions_of
from bahdanau_tf.tracing.contributions import hidden_of
from bahdanau_tf.tracing.data import Candidate
from bahdanau_tf.tracing.data import Gate
from bahdanau_tf.tracing.data import Step
from bahdanau_tf.tracing.data import Trace
from bahdanau_tf.tracing.gates import gate_convention
from bahdanau_tf.tracing.gates import update
from bahdanau_tf.translator import Translator


class _Rows(NamedTuple):
    """The tensors of a step, float [1, ...], or of all steps, [T_y, ...].

    Attributes:
        query: The state that attends.
        state: The state that is read out.
        previous: E y_{i-1}.
        context: c_i, or None.
        weights: α_i, or None.
    """

    query: tf.Tensor
    state: tf.Tensor
    previous: tf.Tensor
    context: tf.Tensor | None
    weights: tf.Tensor | None


def trace(
    translator: Translator,
    text: str,
    target: str | None = None,
    candidates: int = 5,
) -> Trace:
    """Records the steps of a translation.

    Args:
        translator: A translator of a single model.
        text: The sentence.
        target: Its translation; the translator's best one if None.
        candidates: Number of most probable words recorded at each step.

    Returns:
        `Trace`; without steps for a text without words, unless `target` is
        given.

    Raises:
        ValueError: `text` is not one string, `candidates` is less than 1, the
            model is an ensemble or not one of this package, or it gives no
            word a finite score.

    Example:

    ```python
    steps = trace(translator, "A man sleeps.").steps
    print([(step.token, step.candidates[0].probability) for step in steps])
    ```
    """
    model = _checked(translator.model, text, candidates)
    pieces = translator.source_text.tokenize_with_offsets([text])[0][0]
    words = [piece.decode("utf-8", "replace") for piece in pieces.numpy()]
    source = translator.source_text.tokenize([text]).to_tensor()
    columns = [*range(len(words))]
    if translator.source_text.reverse:
        columns.reverse()
    if target is not None:
        ids = translator.target_text.tokenize([target])[0].numpy()
    elif words:
        found = translator.graph.search(source, translator.decoding)
        if not int(found.lengths[0, 0]):
            raise ValueError(
                f"trace: no hypothesis of {text!r} has a finite score; are all "
                "weights of the model finite?"
            )
        ids = found.tokens[0, 0, : int(found.lengths[0, 0])].numpy()
    else:
        ids = np.zeros([0], np.int32)
    return Trace(
        source=text,
        source_tokens=[words[column] for column in columns],
        step_order=model.decoder.step_order,
        gate_convention=gate_convention(model.decoder.cell),
        steps=_steps(
            model,
            translator.target_text,
            source,
            ids,
            [*columns, -1],
            candidates,
        ),
    )


def _checked(
    model: TranslationModel, text: object, candidates: int
) -> EncoderDecoder:
    if not isinstance(model, EncoderDecoder):
        raise ValueError(
            f"trace: the model is {type(model).__name__}, wanted one model of "
            "this package (trace the members of an ensemble one by one)"
        )
    if not isinstance(text, str):
        raise ValueError(
            f"trace: text is a {type(text).__name__}, wanted one string"
        )
    if candidates < 1:
        raise ValueError(f"trace: candidates is {candidates}, wanted 1 or more")
    return model


def _steps(
    model: EncoderDecoder,
    text: Tokenizer,
    source: tf.Tensor,
    ids: np.ndarray,
    columns: list[int],
    candidates: int,
) -> list[Step]:
    """The steps for target ids; `columns` are the source tokens as shown."""
    if not ids.size:
        return []
    memory, state = model.encode(source)
    rows, gates = zip(*_walk(model, ids, memory, state.states), strict=True)
    seen = _Rows(
        *(
            None if column[0] is None else tf.concat(column, axis=0)
            for column in zip(*rows, strict=True)
        )
    )
    energies = None
    attention = model.decoder.attention
    # A `call` of its own may need no score, or another one.
    if (
        isinstance(attention, Attention)
        and type(attention).call is Attention.call
        and memory.attended
    ):
        keys = memory.attended.source.keys
        energies = attention.score(seen.query[None], keys)[0]
    read = seen.state, seen.previous, seen.context
    shares = contributions_of(model, *read, ids)
    hidden = hidden_of(model.readout, *read)
    logits = model.output_weights().logits(model.readout.features(hidden))
    probabilities = tf.nn.softmax(logits).numpy()
    best = tf.math.top_k(probabilities, min(candidates, logits.shape[1]))
    names = text.ids_to_tokens(best.indices).numpy()
    tokens = text.ids_to_tokens(tf.constant(ids)[None])[0].numpy()
    return [
        Step(
            token=_decoded(tokens[i]),
            logit=float(logits[i, word]),
            probability=float(probabilities[i, word]),
            candidates=[
                Candidate(_decoded(name), float(probability))
                for name, probability in zip(
                    names[i], best.values[i].numpy(), strict=True
                )
            ],
            energies=_row(energies, i, columns),
            weights=_row(seen.weights, i, columns),
            context_norm=None
            if seen.context is None
            else float(np.linalg.norm(seen.context[i])),
            gates=gates[i],
            contributions=None if shares is None else shares[i],
        )
        for i, word in enumerate(ids)
    ]


def _decoded(token: bytes) -> str:
    return token.decode("utf-8", "replace")


def _row(
    rows: tf.Tensor | None, i: int, columns: list[int]
) -> list[float] | None:
    if rows is None:
        return None
    return [float(x) for x in rows[i].numpy()[columns]]


def _walk(
    model: EncoderDecoder, ids: np.ndarray, memory: SourceMemory, states: States
) -> Iterator[tuple[_Rows, dict[str, Gate]]]:
    """Runs the decoder on given target words, in its step order."""
    decoder = model.decoder
    previous = memory.first_input
    context = None
    for i, word in enumerate(ids):
        gates: dict[str, Gate] = {}
        if decoder.step_order == "original":
            if i:
                states, gates = _update(decoder, previous, context, states)
            query = read = states[0]
            context, weights = _attend(decoder, query, memory)
        elif isinstance(decoder, ConditionalDecoder):
            given = decoder.cell.project(previous)
            states, of_word = update(decoder.cell, given, states)
            query = states[0]
            context, weights = _attend(decoder, query, memory)
            given = decoder.context_term(context)
            states, of_context = update(decoder.context_cell, given, states)
            read = states[0]
            gates = {f"word {name}": gate for name, gate in of_word.items()}
            for name, gate in of_context.items():
                gates[f"context {name}"] = gate
        else:
            query = states[0]
            context, weights = _attend(decoder, query, memory)
            states, gates = _update(decoder, previous, context, states)
            read = states[0] if decoder.step_order == "main-text" else query
        yield _Rows(query, read, previous, context, weights), gates
        previous = model.target_embedding(tf.constant([word]))


def _update(
    decoder: AttentionDecoder,
    previous: tf.Tensor,
    context: tf.Tensor | None,
    states: States,
) -> tuple[States, dict[str, Gate]]:
    """The update on W E y + C c."""
    projected = decoder.cell.project(previous)
    if context is not None:
        projected += decoder.context_term(context)
    return update(decoder.cell, projected, states)


def _attend(
    decoder: AttentionDecoder, query: tf.Tensor, memory: SourceMemory
) -> tuple[tf.Tensor | None, tf.Tensor | None]:
    """c_i, float [1, c], and α_i, float32 [1, T_x], of one sentence."""
    if decoder.attention is None or not memory.attended:
        return None, None
    context, weights = decoder.attention(query, memory.attended.source)
    return context, weights
