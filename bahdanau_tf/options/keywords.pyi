"""Keywords for type checkers, made of dataclasses by `python tests/keywords.py`."""

from typing import Literal, TypedDict

import keras

from bahdanau_tf.layers.bridge import Bridge
from bahdanau_tf.layers.readout import Readout
from bahdanau_tf.layers.weights import Initializer, KerasOptions

class PartOptions(KerasOptions, total=False):
    """The options of models made of parts."""

    cell: keras.layers.Layer | None
    encoder: keras.layers.Layer | None
    readout: Readout | None
    bridge: Bridge | None
    step_order: str
    factored_output: bool
    tie_embeddings: bool
    share_embeddings: bool
    copying: Literal["off", "hint"]
    embedding_bias: bool
    embedding_dropout: float
    annotation_dropout: float
    state_dropout: float
    readout_dropout: float
    kernel_initializer: Initializer
    recurrent_initializer: Initializer
    embeddings_initializer: Initializer

class FitOptions(TypedDict, total=False):
    """The options of `fit`."""

    tokenizer: Literal["word", "bpe", "unigram", "char", "space"]
    joint: bool
    source_vocabulary_size: int
    target_vocabulary_size: int
    source_language: str | None
    target_language: str | None
    lowercase: bool
    reverse_source: bool
    decompose_source: bool
    true_case: bool | None
    target_tokenizer: Literal["same", "word", "bpe", "unigram", "char", "space"]
    model: Literal["rnnsearch", "rnnencdec", "seq2seq-lstm"]
    units: int
    embedding_dim: int
    attention_units: int
    maxout_units: int
    layers: int
    attention: str | None
    cell: str | None
    step_order: Literal["original", "appendix", "main-text", "conditional"]
    factored_output: bool
    tie_embeddings: bool
    embedding_dropout: float
    annotation_dropout: float
    state_dropout: float
    readout_dropout: float
    initialization: Literal["paper", "glorot"]
    share_embeddings: bool
    copying: Literal["off", "hint"]
    embedding_bias: bool
    optimizer: Literal["adadelta", "adam", "sgd"]
    learning_rate: float | None
    schedule: str
    warmup_steps: int
    constant_share: float
    plateau: int
    max_norm: float
    max_skipped: int
    average: float
    product_dtype: Literal["float32", "bfloat16", "float16", "auto"]
    jit_compile: Literal["on", "off"]
    label_smoothing: float
    risk_samples: int
    divisor: float
    batch_size: int
    token_budget: int | None
    accumulate: int
    max_length: int
    max_words: int
    pool_batches: int
    shuffle_pool: bool
    shuffle: Literal["none", "once", "each_epoch"]
    sample_subwords: bool
    sampled_epochs: int | None
    synthetic_pairs: float
    careless_sources: float
    epochs: float
    updates: int
    evaluate_every: int
    monitor: str
    patience: int
    tokenize: str | None
    keep: int
    seed: int
    deterministic: bool
    dev_pairs: int
    added_words: int
