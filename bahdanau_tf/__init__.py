"""Attention-based recurrent translation in TensorFlow and Keras.

Public names are imported when they are first used, so that the command line
can configure TensorFlow before it is imported. Keras can load saved models
without these imports: see `system/imports.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bahdanau_tf.system import imports

__version__ = "0.3.0"

_HOMES = {
    "Adadelta": "optimizers",
    "Adam": "optimizers",
    "Attention": "layers",
    "AttentionDecoder": "layers",
    "BackwardBridge": "layers",
    "BahdanauAttention": "layers",
    "BidirectionalEncoder": "layers",
    "Bridge": "layers",
    "ConditionalDecoder": "layers",
    "CopyBridge": "layers",
    "Decoding": "options",
    "Dictionary": "text",
    "DotAttention": "layers",
    "Encoded": "layers",
    "Ensemble": "models",
    "FixedContext": "layers",
    "ForwardBridge": "layers",
    "GRUCell": "layers",
    "GRUResetAfterCell": "layers",
    "GeneralAttention": "layers",
    "HalvedEveryHalfEpoch": "optimizers",
    "InverseSquareRoot": "optimizers",
    "KerasCell": "layers",
    "LSTMCell": "layers",
    "Lexicon": "translation",
    "LinearReadout": "layers",
    "LocationAttention": "layers",
    "MaxoutReadout": "layers",
    "Memory": "layers",
    "MonotonicAttention": "layers",
    "OutputWeights": "layers",
    "ParallelCorpus": "data",
    "Perplexity": "losses",
    "RNNEncDec": "models",
    "RNNSearch": "models",
    "Readout": "layers",
    "Recipe": "options",
    "Recurrent": "layers",
    "RecurrentCell": "layers",
    "SGD": "optimizers",
    "SentenceBridge": "layers",
    "Seq2SeqLSTM": "models",
    "StackedCells": "layers",
    "StepwiseModel": "models",
    "SubwordTokenizer": "text",
    "TanhCell": "layers",
    "TanhReadout": "layers",
    "TokenCrossentropy": "losses",
    "Trace": "tracing",
    "Translation": "translation",
    "TranslationModel": "models",
    "Translator": "translator",
    "UnidirectionalEncoder": "layers",
    "Vocabulary": "text",
    "WarmupLinearDecay": "optimizers",
    "WordEmbedding": "layers",
    "WordTokenizer": "text",
    "ZeroBridge": "layers",
    "beam_search": "search",
    "fit": "training",
    "from_preset": "models",
    "greedy_search": "search",
    "learn_lexicon": "translation",
    "make_dataset": "data.dataset",
    "plot_alignment": "plotting",
    "plot_trace": "plotting",
    "sample": "search",
    "token_log_probs": "models",
    "trace": "tracing",
    "train": "training",
}

# Also as attributes, without an import of their own.
_MODULES = frozenset(
    {home for home in _HOMES.values() if "." not in home} | {"evaluation", "serving"}
)

__all__ = sorted(_HOMES)

imports.register(
    {
        f"{__name__}>{name}": imports.StandIn(f"{__name__}.{home}", name)
        for name, home in _HOMES.items()
        if home in ("layers", "losses", "models", "optimizers")
    }
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    return imports.first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
