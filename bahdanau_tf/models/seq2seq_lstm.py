"""The deep LSTM of Sutskever, Vinyals and Le (2014)."""

from __future__ import annotations

from typing import Any

import keras
from keras.initializers import RandomUniform

from bahdanau_tf.layers.bridge import CopyBridge
from bahdanau_tf.layers.cells import LSTMCell, StackedCells
from bahdanau_tf.layers.readout import LinearReadout
from bahdanau_tf.layers.recurrent import UnidirectionalEncoder
from bahdanau_tf.models.architecture import SIZES, divided
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.system.ranges import size


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Seq2SeqLSTM(EncoderDecoder):
    """Sequence to sequence learning: two deep LSTMs and no attention.

        h^k_j = LSTM(h^{k-1}_j, h^k_{j-1}),  h^0_j = E x_j,   k = 1 .. L
        s^k_0 = h^k_Tx      outputs and memory cells of all layers
        s^k_i = LSTM(s^{k-1}_i, s^k_{i-1}),  s^0_i = E y_{i-1}
        p(y_i | y_1 .. y_{i-1}, x) = softmax(W_o s^L_i + b_y)

    The paper *reverses* the words of the source, but not the end symbol. That is done by a
    tokenizer with `reverse=True`, so that serving and scoring do it, too.

    The paper initializes "all of the LSTM's parameters" from U(-0.08, 0.08). It calls "the LSTM"
    the network of 384M parameters, so here embeddings, biases and output are included. 64M of
    them are recurrent, 4 · 2n · n in each of 2L layers.

    Two choices that the paper leaves open: the encoder reads the end symbol, and a learned vector
    is used in place of E y_0 (in the paper's figure 1 the decoder's first input is the end symbol).

    Args:
        source_vocabulary_size: K_x, ids 0 (padding) to K_x - 1.
        target_vocabulary_size: K_y.
        units: n, cells of a layer.
        embedding_dim: m.
        layers: L.
        initial_range: r; all weights are initialized from U(-r, r).
        embedding_dropout: Dropout rate of the embeddings.
        state_dropout: Dropout rate of the outputs in the recurrent products, with one mask for
            all steps of a sentence.
        readout_dropout: Dropout rate of s^L_i.

    Call arguments, returns: see `StepwiseModel`; there is no alignment.

    Raises:
        ValueError: `layers` is less than 1, or another argument of `EncoderDecoder` is given.

    Example:

    ```python
    model = Seq2SeqLSTM(10_000, 10_000, units=256, embedding_dim=256, layers=2)
    ```

    Reference:
        Sutskever, Vinyals and Le 2014, arXiv 1409.3215.
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        units: int = 1000,
        embedding_dim: int = 1000,
        layers: int = 4,
        *,
        initial_range: float = 0.08,
        embedding_dropout: float = 0.0,
        state_dropout: float = 0.0,
        readout_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        layers = size("Seq2SeqLSTM", "layers", layers)
        if unknown := sorted(divided(kwargs)[0]):
            raise ValueError(
                f"Seq2SeqLSTM: got {', '.join(unknown)}, which it has not; "
                "wanted its own arguments or those of Keras"
            )
        dropout = {
            "embedding_dropout": embedding_dropout,
            "state_dropout": state_dropout,
            "readout_dropout": readout_dropout,
        }
        uniform = RandomUniform(-initial_range, initial_range)
        start = {"kernel_initializer": uniform, "dtype": kwargs.get("dtype")}
        biased = {**start, "bias_initializer": uniform}
        cells = [LSTMCell(units, recurrent_initializer=uniform, **biased) for _ in range(layers)]
        stack = StackedCells(cells, dtype=start["dtype"])
        sizes = source_vocabulary_size, target_vocabulary_size, units, embedding_dim
        super().__init__(
            *sizes,
            units,
            attention=None,
            encoder=UnidirectionalEncoder(cells[0], layers, state_dropout, dtype=start["dtype"]),
            cell=stack,
            readout=LinearReadout(target_vocabulary_size, terms=("state",), **biased),
            bridge=CopyBridge(stack.state_size, embedding_dim, **start),
            step_order="main-text",
            embedding_bias=False,
            embeddings_initializer=uniform,
            **dropout,
            **kwargs,
        )
        own = {name: self._arguments[name] for name in SIZES[:4]}
        self._remember({**own, "layers": layers, "initial_range": initial_range, **dropout})
