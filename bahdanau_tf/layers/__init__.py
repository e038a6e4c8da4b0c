"""Keras layers of the models; they know nothing of text, files or search."""

from bahdanau_tf.layers.attention import Attention
from bahdanau_tf.layers.attention import BahdanauAttention
from bahdanau_tf.layers.attention import DotAttention
from bahdanau_tf.layers.attention import FixedContext
from bahdanau_tf.layers.attention import GeneralAttention
from bahdanau_tf.layers.attention import Memory
from bahdanau_tf.layers.bridge import BackwardBridge
from bahdanau_tf.layers.bridge import Bridge
from bahdanau_tf.layers.bridge import CopyBridge
from bahdanau_tf.layers.bridge import ForwardBridge
from bahdanau_tf.layers.bridge import SentenceBridge
from bahdanau_tf.layers.bridge import ZeroBridge
from bahdanau_tf.layers.cells import GRUCell
from bahdanau_tf.layers.cells import GRUResetAfterCell
from bahdanau_tf.layers.cells import KerasCell
from bahdanau_tf.layers.cells import LSTMCell
from bahdanau_tf.layers.cells import RecurrentCell
from bahdanau_tf.layers.cells import StackedCells
from bahdanau_tf.layers.cells import TanhCell
from bahdanau_tf.layers.decoder import AttentionDecoder
from bahdanau_tf.layers.decoder import ConditionalDecoder
from bahdanau_tf.layers.embedding import WordEmbedding
from bahdanau_tf.layers.encoder import BidirectionalEncoder
from bahdanau_tf.layers.encoder import Encoded
from bahdanau_tf.layers.encoder import UnidirectionalEncoder
from bahdanau_tf.layers.readout import LinearReadout
from bahdanau_tf.layers.readout import MaxoutReadout
from bahdanau_tf.layers.readout import OutputWeights
from bahdanau_tf.layers.readout import Readout
from bahdanau_tf.layers.readout import TanhReadout
from bahdanau_tf.layers.recurrent import Recurrent

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
    "MaxoutReadout",
    "Memory",
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
