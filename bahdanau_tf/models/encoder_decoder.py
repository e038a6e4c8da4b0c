"""Translation models made of parts."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from bahdanau_tf.layers.cells import GRUCell
from bahdanau_tf.layers.conditional import ConditionalDecoder
from bahdanau_tf.layers.decoder import AttentionDecoder, DecoderState, Glimpse, StepMemory
from bahdanau_tf.layers.embedding import WordEmbedding
from bahdanau_tf.layers.nested_cells import KerasCell
from bahdanau_tf.layers.readout import MaxoutReadout, OutputWeights
from bahdanau_tf.layers.recurrent import Encoded, shifted
from bahdanau_tf.layers.weights import as_rows, build_once, reshaped, rows_at
from bahdanau_tf.models import presets
from bahdanau_tf.models.architecture import Architecture, divided, without_former
from bahdanau_tf.models.stepwise import PAD_ID, StepwiseModel, check_ids
from bahdanau_tf.system.tensors import Nest, Shape


class SourceMemory(NamedTuple):
    """What the steps read of a source sentence.

    Attributes:
        attended: `StepMemory` for the decoder's `step`; () without a context.
        first_input: float [B, m], used in place of E y_0.
    """

    attended: StepMemory | tuple[()]
    first_input: tf.Tensor


class EncoderDecoder(StepwiseModel):
    """A translation model made of parts; base class of the papers' models.

    It maps word ids to logits of target words. Id 0 is padding on both sides and, as a previous
    target word, stands for "no word yet"; no other id has a special meaning here.

    Args:
        *sizes: K_x, K_y, n, m and l, as in `Architecture`.
        **options: The other arguments of `Architecture`, and those of Keras.

    Call arguments:
        inputs: {"source": int32 [B, T_x], "target": int32 [B, T_y]}, padded with 0; the target
            is y_1 .. y_Ty with the end symbol, unshifted.
        training: Whether to apply dropout.

    Returns:
        Logits, float32 [B, T_y, K_y]; `logits[:, i]` scores `target[:, i]`.

    Raises:
        ValueError: Parts do not fit together. The message names both.
    """

    # None: a subclass without them passes both parts to the constructor.
    encoder_class: Any = None
    bridge_class: Any = None

    def __init__(self, *sizes: int, **options: Any) -> None:
        common, of_keras = divided(options)
        super().__init__(**of_keras)
        self.autocast = False  # in half precision ids would be rounded
        arguments = Architecture(*sizes, **common)
        arguments.check(type(self).__name__)
        self._remember(arguments.config())
        dtype = self.dtype_policy
        self.source_embedding = self.target_embedding = make_embedding(arguments, "source", dtype)
        if not arguments.share_embeddings:
            self.target_embedding = make_embedding(arguments, "target", dtype)
        self.encoder = arguments.encoder or self.encoder_class(
            make_cell(arguments, dtype), state_dropout=arguments.state_dropout, dtype=dtype
        )
        self.decoder = make_decoder(arguments, dtype)
        self.bridge = arguments.bridge or self.bridge_class(
            self.decoder.cell.state_size,
            arguments.embedding_dim,
            kernel_initializer=arguments.kernel_initializer,
            dtype=dtype,
        )
        self.readout = arguments.readout or MaxoutReadout(
            arguments.target_vocabulary_size,
            arguments.maxout_units,
            factor_units=arguments.embedding_dim if arguments.factored_output else None,
            tied=arguments.tie_embeddings,
            kernel_initializer=arguments.kernel_initializer,
            dtype=dtype,
        )
        for name in ("embedding_dropout", "annotation_dropout", "readout_dropout"):
            rate = getattr(arguments, name)
            setattr(self, name, keras.layers.Dropout(rate, name=name, dtype=dtype))
        check_fit(self)
        self.build()

    def build(self, input_shape: Shape | None = None) -> None:
        """Makes all weights; their shapes do not depend on the input."""
        if self.built:
            return
        m = self.target_embedding.embedding_dim
        build_once(self.source_embedding, (None, None))
        build_once(self.target_embedding, (None, None))
        build_once(self.encoder, (None, None, m))
        encoded_shape = self.encoder.encoded_shape()
        build_once(self.bridge, encoded_shape)
        self.decoder.build_for(m, encoded_shape)
        context = self.decoder.context_size
        build_once(
            self.readout,
            (None, self.decoder.cell.units),
            (None, m),
            (None, context) if context else None,
        )
        # These have no weights; they are built for `summary`.
        self.embedding_dropout.build((None, None, m))
        self.annotation_dropout.build(encoded_shape.annotations)
        self.readout_dropout.build((None, None, self.readout.hidden_size))
        super().build()  # layers that the user's parts have

    def _remember(self, arguments: dict[str, object]) -> None:
        """Sets the arguments of the constructor that `get_config` returns.

        The configs of parts are those before building: a loaded model builds its parts itself.
        It is a mapping proxy, because Keras would wrap a dict.
        """
        self._arguments = MappingProxyType(arguments)

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), **self._arguments}

    @classmethod
    def from_config(
        cls, config: dict[str, object], custom_objects: dict[str, type] | None = None
    ) -> EncoderDecoder:
        restored = {
            key: keras.saving.deserialize_keras_object(value, custom_objects)
            if isinstance(value, dict) and "class_name" in value
            else value
            for key, value in without_former(cls.__name__, config).items()
        }
        return cls(**restored)

    @classmethod
    def from_preset(cls, name: str, **overrides: Any) -> EncoderDecoder:
        """Makes the model with the arguments of a preset; see `presets`.

        Args:
            name: A preset of this class, such as "rnnsearch-50".
            **overrides: Constructor arguments to change.

        Raises:
            ValueError: There is no such preset for this class.
        """
        return cls(**presets.arguments(cls.__name__, name, overrides))

    @property
    def has_alignment(self) -> bool:
        """Whether `step` returns attention weights."""
        attention = self.decoder.attention
        return attention is not None and attention.has_alignment

    @property
    def source_vocabulary_size(self) -> int:
        """K_x."""
        return self.source_embedding.vocabulary_size

    @property
    def target_vocabulary_size(self) -> int:
        """K_y."""
        return self.target_embedding.vocabulary_size

    def hidden(
        self, inputs: dict[str, tf.Tensor], training: bool = False, words: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, Glimpse]:
        """The readout's hidden layer, and the decoder's `Glimpse`.

        Args:
            inputs: As in `call`.
            training: Whether to apply dropout.
            words: int [N], indices into the B x T_y positions, to get only these; or None.

        Returns:
            t_i, float [B, T_y, l], or [N, l] of `words`; the `Glimpse` of all positions.
        """
        encoded = self._encoded(inputs["source"], training)
        check_ids(type(self).__name__, "target", inputs["target"], self.target_vocabulary_size)
        embedded = self.target_embedding(inputs["target"])
        embedded = self.embedding_dropout(embedded, training=training)
        rows, wanted = embedded.shape[0], encoded.annotations.shape[0]
        if None not in (rows, wanted) and rows != wanted:
            raise ValueError(
                f"{type(self).__name__}: target has {rows} rows, wanted as many as source, {wanted}"
            )
        states, first = self.bridge(encoded)
        glimpse = self.decoder(embedded, first, states, self._attended(encoded), training=training)
        state, previous, context = (
            x if x is None or words is None else rows_at(x, words)
            for x in (glimpse.state, shifted(embedded, first), glimpse.context)
        )
        if context is not None:
            context = self.readout.context_term(context)
        hidden = self.readout.hidden(state, previous, context)
        return self.readout_dropout(hidden, training=training), glimpse

    def _encoded(self, source: tf.Tensor, training: bool) -> Encoded:
        check_ids(type(self).__name__, "source", source, self.source_vocabulary_size)
        embedded = self.source_embedding(source)
        encoded = self.encoder(
            self.embedding_dropout(embedded, training=training),
            mask=source != PAD_ID,
            training=training,
        )
        return self._dropped(encoded, training)

    def _attended(self, encoded: Encoded) -> Nest:
        attention = self.decoder.attention
        return () if attention is None else attention.memory(encoded)

    def _dropped(self, encoded: Encoded, training: bool) -> Encoded:
        def drop(tensor: tf.Tensor) -> tf.Tensor:
            return self.annotation_dropout(tensor, training=training)

        return encoded._replace(
            annotations=drop(encoded.annotations),
            forward_states=tf.nest.map_structure(drop, encoded.forward_states),
            backward_states=tf.nest.map_structure(drop, encoded.backward_states),
        )

    def features(
        self, inputs: dict[str, tf.Tensor], training: bool = False, words: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """See `TranslationModel`."""
        hidden, glimpse = self.hidden(inputs, training, words)
        return self.readout.features(hidden), glimpse.weights

    def output_weights(self) -> OutputWeights:
        """The last matrix and its bias."""
        return self.readout.output_weights(self.target_embedding.embeddings)

    def encode(self, source: tf.Tensor) -> tuple[SourceMemory, DecoderState]:
        """Reads source sentences.

        Args:
            source: int32 [B, T_x], padded with 0.

        Returns:
            The memory, a nest of [B, ...] that no step changes, and the state before the first
            step, a nest of [B, ...].
        """
        encoded = self._encoded(source, training=False)
        states, first = self.bridge(encoded)
        source_memory = self._attended(encoded)
        attended = self.decoder.step_memory(source_memory, self.readout.context_term)
        state = self.decoder.initial_state(states, source_memory)
        return SourceMemory(attended, first), state

    def step(
        self, ids: tf.Tensor, state: DecoderState, memory: SourceMemory
    ) -> tuple[tf.Tensor, DecoderState, tf.Tensor | None]:
        """The features of the next word, for K hypotheses of each sentence.

        Args:
            ids: int32 [B, K], the previous words; `start_id` at the start.
            state: Nest of [B, K, ...].
            memory: From `encode`, nest of [B, ...].

        Returns:
            float [B, K, f]; the new state; the alignment, float32 [B, K, T_x], or None without
            one.
        """
        is_first = ids == self.start_id
        previous = tf.where(
            is_first[..., None], memory.first_input[:, None], self.target_embedding(ids)
        )
        glimpse, state = self.decoder.step(previous, is_first, state, memory.attended)
        hidden = self.readout.hidden(glimpse.state, as_rows(previous), glimpse.readout_term)
        features = self.readout.features(hidden)
        features = reshaped(features, previous, features.shape[-1])
        weights = glimpse.weights
        if weights is not None:
            weights = tf.cast(weights, tf.float32)
        return features, state, weights


def make_embedding(arguments: Architecture, side: str, dtype: keras.DTypePolicy) -> WordEmbedding:
    """E of the words of one side, "source" or "target"."""
    return WordEmbedding(
        getattr(arguments, f"{side}_vocabulary_size"),
        arguments.embedding_dim,
        use_bias=arguments.embedding_bias,
        embeddings_initializer=arguments.embeddings_initializer,
        dtype=dtype,
        name=f"{side}_embedding",
    )


def make_cell(arguments: Architecture, dtype: keras.DTypePolicy) -> GRUCell:
    """The paper's gated unit, for either side."""
    return GRUCell(
        arguments.units,
        kernel_initializer=arguments.kernel_initializer,
        recurrent_initializer=arguments.recurrent_initializer,
        dtype=dtype,
    )


def make_decoder(arguments: Architecture, dtype: keras.DTypePolicy) -> AttentionDecoder:
    """The decoder, of the cell that was given and the attention."""
    cell = arguments.cell or make_cell(arguments, dtype)
    if arguments.step_order == "conditional":
        return ConditionalDecoder(
            cell, arguments.attention, state_dropout=arguments.state_dropout, dtype=dtype
        )
    return AttentionDecoder(
        cell,
        arguments.attention,
        step_order=arguments.step_order,
        state_dropout=arguments.state_dropout,
        kernel_initializer=arguments.kernel_initializer,
        dtype=dtype,
    )


def check_fit(model: EncoderDecoder) -> None:
    """Checks that the parts of a model fit together, before they are built.

    Raises:
        ValueError: Parts contradict one another; it names both.
    """
    bridge, cell = model.bridge, model.decoder.cell
    of_decoder = model.decoder.state_dropout
    dropout_of_encoder = getattr(model.encoder, "state_dropout", of_decoder)
    # Parts that a user may have given, each with a dtype of its own.
    parts = {"attention": model.decoder.attention, "bridge": bridge}
    if isinstance(cell, KerasCell):
        parts["cell"] = cell
    dtypes = [
        (f"{name}.dtype", part.compute_dtype) for name, part in parts.items() if part is not None
    ]
    for (name, value), (other_name, other) in (
        (
            ("readout.vocabulary_size", model.readout.vocabulary_size),
            ("target_vocabulary_size", model.target_vocabulary_size),
        ),
        (
            ("bridge.state_size", tf.nest.flatten(bridge.state_size)),
            ("cell.state_size", tf.nest.flatten(cell.state_size)),
        ),
        (
            ("bridge.embedding_dim", bridge.embedding_dim),
            ("embedding_dim", model.target_embedding.embedding_dim),
        ),
        (("encoder.state_dropout", dropout_of_encoder), ("state_dropout", of_decoder)),
        *((pair, ("dtype", model.compute_dtype)) for pair in dtypes),
    ):
        if value != other:
            raise ValueError(
                f"{type(model).__name__}: {name} ({value}) and {other_name} ({other}) must be equal"
            )
