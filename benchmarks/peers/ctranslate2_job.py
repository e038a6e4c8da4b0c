"""CTranslate2: beam search of a Transformer with random weights.

The size is that of "Transformer-tiny" in publications on Multi30k: 4 layers on each side of 128
units, 4 heads, 256 hidden units. `job.model` is the type of the weights: float32 or int8.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import LinearSpec
from job import Sentences, main, read_words

LAYERS, UNITS, HEADS, HIDDEN = 4, 128, 4, 256
WORDS = 8000
SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]


def train(_: Any) -> Iterator[float]:
    """Raises, since only the speed of decoding is measured."""
    raise ValueError("ctranslate2 cannot train, wanted it in decoding.py only")


def random_model() -> TransformerSpec:
    """A model of that size."""
    random = np.random.default_rng(1)

    def matrix(rows: int, columns: int) -> Any:
        return (random.standard_normal([rows, columns]) / columns**0.5).astype(np.float32)

    def fill(linear: LinearSpec, rows: int, columns: int) -> None:
        linear.weight, linear.bias = matrix(rows, columns), np.zeros(rows, np.float32)

    spec = TransformerSpec.from_config(LAYERS, HEADS)
    for side in (spec.encoder, spec.decoder):
        embedding = side.embeddings
        for part in embedding if isinstance(embedding, list) else [embedding]:
            part.weight = matrix(WORDS, UNITS)
        for layer in side.layer:
            fill(layer.self_attention.linear[0], 3 * UNITS, UNITS)
            fill(layer.self_attention.linear[1], UNITS, UNITS)
            norms = [layer.self_attention.layer_norm, layer.ffn.layer_norm]
            if side is spec.decoder:
                for linear, rows in zip(layer.attention.linear, (1, 2, 1), strict=True):
                    fill(linear, rows * UNITS, UNITS)
                norms.append(layer.attention.layer_norm)
            fill(layer.ffn.linear_0, HIDDEN, UNITS)
            fill(layer.ffn.linear_1, UNITS, HIDDEN)
            for norm in norms:
                norm.gamma, norm.beta = np.ones(UNITS, np.float32), np.zeros(UNITS, np.float32)
        side.layer_norm.gamma = np.ones(UNITS, np.float32)
        side.layer_norm.beta = np.zeros(UNITS, np.float32)
        side.scale_embeddings = True
    fill(spec.decoder.projection, WORDS, UNITS)
    return spec


def load(job: Any) -> Callable[[Sentences], Sentences]:
    """Beam search, of exactly `job.steps` steps if given."""
    used = dict.fromkeys(word for words in read_words(job.sentences) for word in words)
    filling = (f"filling{number}" for number in range(WORDS))
    vocabulary = [*SPECIAL, *used, *filling][:WORDS]
    spec = random_model()
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.validate()
    if job.model == "int8":
        spec.optimize(quantization="int8")
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        translator = ctranslate2.Translator(
            folder, compute_type=job.model, inter_threads=1, intra_threads=1
        )

    def translate(sentences: Sentences) -> Sentences:
        results = translator.translate_batch(
            sentences,
            beam_size=job.beam,
            max_batch_size=0,
            min_decoding_length=job.steps or 1,
            max_decoding_length=job.steps or 256,
        )
        return [result.hypotheses[0] for result in results]

    return translate


if __name__ == "__main__":
    main(train, load)
