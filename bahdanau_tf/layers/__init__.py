"""Keras layers of the models; they know nothing of text, files or search."""

from bahdanau_tf.layers.attention import (
    Attention,
    BahdanauAttention,
    DotAttention,
    FixedContext,
    GeneralAttention,
    Memory,
)
from bahdanau_tf.layers.bridge import (
    BackwardBridge,
    Bridge,
    CopyBridge,
    ForwardBridge,
    SentenceBridge,
    ZeroBridge,
)
from bahdanau_tf.layers.cells import (
    GRUCell,
    GRUResetAfterCell,
    KerasCell,
    LSTMCell,
    RecurrentCell,
    StackedCells,
    TanhCell,
)
from bahdanau_tf.layers.decoder import AttentionDecoder, ConditionalDecoder
from bahdanau_tf.layers.embedding import WordEmbedding
from bahdanau_tf.layers.readout import (
    LinearReadout,
    MaxoutReadout,
    OutputWeights,
    Readout,
    TanhReadout,
)
from bahdanau_tf.layers.recurrent import (
    BidirectionalEncoder,
    Encoded,
    Recurrent,
    UnidirectionalEncoder,
)
from bahdanau_tf.layers.remembering import LocationAttention, MonotonicAttention

__all__ = [
    "Attention",
    "AttentionDecoder",
    "BackwardBridge",
    "BahdanauAttention",
    "BidirectionalEncoder",
    "Bridge",
    "ConditionalDecoder",
    "CopyBridge",
    "DotAttention",
    "Encoded",
    "FixedContext",
    "ForwardBridge",
    "GRUCell",
    "GRUResetAfterCell",
    "GeneralAttention",
    "KerasCell",
    "LSTMCell",
    "LinearReadout",
    "LocationAttention",
    "MaxoutReadout",
    "Memory",
    "MonotonicAttention",
    "OutputWeights",
    "Readout",
    "Recurrent",
    "RecurrentCell",
    "SentenceBridge",
    "StackedCells",
    "TanhCell",
    "TanhReadout",
    "UnidirectionalEncoder",
    "WordEmbedding",
    "ZeroBridge",
]
