"""Log-probabilities that a model gives to known target words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.layers.copying import NEVER, Copied
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.models.stepwise import TranslationModel
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.system.tensors import Nest

CHUNK_LOGITS = 2**22  # logits of one chunk of words: 16 MiB


def log_probs_and_alignment(
    model: TranslationModel, source: Nest, target: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor | None]:
    """log p(y_i | y_1 .. y_{i-1}, x), float32 [B, T_y], in nats, 0 on padding; and α.

    Source and target are those of `TranslationModel.features`; α is float32 [B, T_y, T_x], or
    None for a model without one. Words are processed in chunks, so that the logits of all words
    are never in memory at once.
    """
    flat = tf.reshape(target, [-1])
    words = tf.where(flat != 0)[:, 0]
    labels = tf.gather(flat, words)
    inputs = {"source": source, "target": target}
    features, alignment = model.features(inputs, words=words)
    output = model.output_weights()
    size = max(CHUNK_LOGITS // model.target_vocabulary_size, 1)
    # At least one chunk, even without words: `concat` of no chunk would fail.
    chunks = tf.maximum(-(-tf.size(words) // size), 1)

    def body(i: tf.Tensor, done: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        here = slice(i * size, (i + 1) * size)
        some = tf.nest.map_structure(lambda rows: rows[here], features)
        logits = model.logits(some, output)
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels[here], logits)
        return i + 1, done.write(i, -nll)

    done = tf.TensorArray(tf.float32, size=chunks, infer_shape=False, element_shape=[None])
    start = tf.constant(0), done
    _, done = tf.while_loop(lambda i, _: i < chunks, body, start, parallel_iterations=1)
    log_probs = tf.scatter_nd(words[:, None], done.concat(), tf.shape(flat, words.dtype))
    alignment = None if alignment is None else tf.cast(alignment, tf.float32)
    return tf.reshape(log_probs, tf.shape(target)), alignment


def of_labels(features: Nest, labels: tf.Tensor) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
    """The features alone; and, if words are copied, log Σ_j [x_j = y_i] o_ij and log Σ_j o_ij.

    The labels are y_i, int32 [...].
    """
    if not isinstance(features, Copied):
        return features, ()
    is_label = features.words == tf.cast(labels, tf.int32)[..., None]
    of_label = tf.reduce_max(tf.where(is_label, features.log_odds, NEVER), -1)
    return features.features, (of_label, tf.reduce_logsumexp(features.log_odds, -1))


def token_log_probs(
    model: TranslationModel,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    batch_size: int = 64,
) -> list[np.ndarray]:
    """log p(y_i | y_1 .. y_{i-1}, x) of given translations.

    Args:
        model: A translation model.
        sources: Source word ids of each sentence, end symbol included.
        targets: Target word ids of each sentence, end symbol included.
        batch_size: Sentences scored at once.

    Returns:
        For each sentence a float32 array, one value for each target word, in nats; their sum is
        log p(y | x).

    Raises:
        ValueError: The numbers of sources and targets differ.
    """
    if len(sources) != len(targets):
        raise ValueError(
            f"token_log_probs: {len(sources)} sources and {len(targets)} "
            "targets, wanted equal numbers"
        )
    score = tf.function(
        lambda source, target: log_probs_and_alignment(model, source, target)[0],
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2,
        autograph=False,
    )
    log_probs: list[np.ndarray] = []
    for start in range(0, len(sources), batch_size):
        part = slice(start, start + batch_size)
        padded = score(_padded(sources[part]), _padded(targets[part])).numpy()
        log_probs.extend(row[: len(ids)] for row, ids in zip(padded, targets[part], strict=True))
    return log_probs


def _padded(rows: Sequence[Sequence[int]]) -> tf.Tensor:
    """[B, T], T at least 1."""
    ragged = tf.ragged.constant([list(row) for row in rows], dtype=tf.int32, ragged_rank=1)
    width = max(1, *map(len, rows))
    return ragged.to_tensor(shape=[None, width])


def with_new_vocabularies(model: keras.Model, sizes: Mapping[str, int]) -> EncoderDecoder:
    """Copies a model for other words; `sizes` are those of its new vocabularies, by side.

    The embeddings of these sides start anew, and of the target the output matrix and its bias. All
    other weights are those of the model (Zoph et al. 2016, arXiv 1604.02201), but the caller sets
    `Copying.copies`.

    Raises:
        ValueError: The model is not made of parts.
    """
    if not isinstance(model, EncoderDecoder):
        raise Refusal(
            "with_new_vocabularies",
            f"the model is a {type(model).__name__}, wanted an EncoderDecoder, such as RNNSearch",
        )
    config = model.get_config() | {f"{side}_vocabulary_size": n for side, n in sizes.items()}
    if "share_embeddings" in config:
        config["share_embeddings"] = False
    renewed = model.from_config(config)
    for side in ("source", "target"):
        old, new = (getattr(x, f"{side}_embedding") for x in (model, renewed))
        if side not in sizes:
            new.set_weights(old.get_weights())
        elif new.bias is not None:
            new.bias.assign(old.bias)
    anew = []
    if "target" in sizes:
        anew = [renewed.readout.output_kernel, renewed.readout.output_bias]
    if renewed.copying is not None:
        anew.append(renewed.copying.copies)
    for before, after in zip(*map(_beside_embeddings, (model, renewed)), strict=True):
        if not any(after is weight for weight in anew):
            after.assign(before)
    return renewed


def _beside_embeddings(model: EncoderDecoder) -> list[keras.Variable]:
    embeddings = (*model.source_embedding.weights, *model.target_embedding.weights)
    return [x for x in model.weights if not any(x is weight for weight in embeddings)]


def with_added_rows(
    model: keras.Model, source: int, target: int, unknown: tuple[int, int]
) -> EncoderDecoder:
    """Copies a model and adds rows to its embeddings and output matrix.

    At first the copy translates as the model does: an added word is read as the unknown word is,
    whose rows it gets, and the probability of the unknown word is divided equally among itself
    and the n added ones:

        b_new = b_unknown ← b_unknown - log(n + 1)

    Random rows would be noise in states that are trained already, and would take probability
    from words that are known.

    The model stays as it is. `source` and `target` are the numbers n of added words of both sides,
    whose ids follow the others, and `unknown` the ids of the unknown words.

    Raises:
        ValueError: The model is not made of parts, both sides share their embeddings, or a part
            has a vocabulary of its own.
    """
    if not isinstance(model, EncoderDecoder):
        raise ValueError(
            f"with_added_rows: the model is a {type(model).__name__}, wanted "
            "an EncoderDecoder, such as RNNSearch"
        )
    config = model.get_config()
    if config.get("share_embeddings"):
        raise ValueError(
            "with_added_rows: share_embeddings is True, wanted embeddings of each side of its own"
        )
    config["source_vocabulary_size"] = model.source_vocabulary_size + source
    config["target_vocabulary_size"] = model.target_vocabulary_size + target
    grown = model.from_config(config)
    of_source, of_target = (source, unknown[0]), (target, unknown[1])
    output = model.readout.output_bias, model.readout.output_kernel
    added = {weight.path: of_target for weight in output if weight is not None}
    added[model.source_embedding.embeddings.path] = of_source
    added[model.target_embedding.embeddings.path] = of_target
    if model.copying is not None:
        added[model.copying.copies.path] = of_source
    for old, new in zip(model.weights, grown.weights, strict=True):
        value = old.numpy()
        if old.path in added:
            rows, row = added[old.path]
            value = np.concatenate([value, *[value[row : row + 1]] * rows])
        new.assign(value)
    bias = grown.readout.output_bias.numpy()
    shared = [unknown[1], *range(model.target_vocabulary_size, len(bias))]
    bias[shared] -= math.log(target + 1)
    grown.readout.output_bias.assign(bias)
    return grown
