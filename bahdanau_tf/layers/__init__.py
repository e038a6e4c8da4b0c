"""Keras layers of the models; they know nothing of text, files or search."""

from bahdanau_tf.layers.attention import (
    Attention as Attention,
    BahdanauAttention as BahdanauAttention,
    DotAttention as DotAttention,
    FixedContext as FixedContext,
    GeneralAttention as GeneralAttention,
    Memory as Memory,
)
from bahdanau_tf.layers.attention_cell import AttentionCell as AttentionCell
from bahdanau_tf.layers.bridge import (
    BackwardBridge as BackwardBridge,
    Bridge as Bridge,
    CopyBridge as CopyBridge,
    ForwardBridge as ForwardBridge,
    SentenceBridge as SentenceBridge,
    ZeroBridge as ZeroBridge,
)
from bahdanau_tf.layers.cells import (
    GRUCell as GRUCell,
    GRUResetAfterCell as GRUResetAfterCell,
    KerasCell as KerasCell,
    LSTMCell as LSTMCell,
    RecurrentCell as RecurrentCell,
    StackedCells as StackedCells,
    TanhCell as TanhCell,
)
from bahdanau_tf.layers.copying import Copying as Copying
from bahdanau_tf.layers.decoder import (
    AttentionDecoder as AttentionDecoder,
    ConditionalDecoder as ConditionalDecoder,
)
from bahdanau_tf.layers.embedding import WordEmbedding as WordEmbedding
from bahdanau_tf.layers.readout import (
    LinearReadout as LinearReadout,
    MaxoutReadout as MaxoutReadout,
    OutputWeights as OutputWeights,
    Readout as Readout,
    TanhReadout as TanhReadout,
)
from bahdanau_tf.layers.recurrent import (
    BidirectionalEncoder as BidirectionalEncoder,
    Encoded as Encoded,
    Recurrent as Recurrent,
    UnidirectionalEncoder as UnidirectionalEncoder,
)
from bahdanau_tf.layers.remembering import (
    LocationAttention as LocationAttention,
    MonotonicAttention as MonotonicAttention,
)
