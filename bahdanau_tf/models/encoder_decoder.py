"""Translation models made of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.layers import decoder
from bahdanau_tf.layers.attention import Attention
from bahdanau_tf.layers.cells import GRUCell, KerasCell
from bahdanau_tf.layers.copying import Copied, Copying, CopyMemory, CopyState, Match, mixed_logits
from bahdanau_tf.layers.embedding import WordEmbedding
from bahdanau_tf.layers.readout import MaxoutReadout, OutputWeights
from bahdanau_tf.layers.recurrent import Encoded, shifted
from bahdanau_tf.layers.weights import as_rows, build_once, reshaped, rows_at
from bahdanau_tf.models.architecture import Architecture, divided, preset_arguments
from bahdanau_tf.models.stepwise import PAD_ID, Output, StepwiseModel, TranslationModel, check_ids
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class SourceMemory(NamedTuple):
    """What the steps read of a source sentence."""

    attended: decoder.StepMemory | tuple[()]  # () without a context
    first_input: tf.Tensor  # float [B, m], used in place of E y_0
    copied: CopyMemory | tuple[()] = ()  # () if nothing is copied
    forced: tf.Tensor | tuple[()] = ()  # float32 [B, 1, T_x], α_i in place of the model's, or NaN


class EncoderDecoder(StepwiseModel):
    """A translation model made of parts; base class of the papers' models.

    Args:
        *sizes: K_x, K_y, n, m and l, as in `Architecture`.
        **options: The other arguments of `Architecture`, and those of Keras.

    Call arguments, returns: see `StepwiseModel`.

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
        m, dtype = arguments.embedding_dim, self.dtype_policy
        start = {"kernel_initializer": arguments.kernel_initializer, "dtype": dtype}
        dropout = {"state_dropout": arguments.state_dropout, "dtype": dtype}

        def make_embedding(side: str) -> WordEmbedding:
            return WordEmbedding(
                getattr(arguments, f"{side}_vocabulary_size"),
                m,
                use_bias=arguments.embedding_bias,
                embeddings_initializer=arguments.embeddings_initializer,
                dtype=dtype,
                name=f"{side}_embedding",
            )

        def make_cell() -> GRUCell:
            initializer = arguments.recurrent_initializer
            return GRUCell(arguments.units, recurrent_initializer=initializer, **start)

        self.source_embedding = self.target_embedding = make_embedding("source")
        if not arguments.share_embeddings:
            self.target_embedding = make_embedding("target")
        self.encoder = arguments.encoder or self.encoder_class(make_cell(), **dropout)
        cell, attention = arguments.cell or make_cell(), arguments.attention
        self.decoder = (
            decoder.ConditionalDecoder(cell, attention, **dropout)
            if arguments.step_order == "conditional"
            else decoder.AttentionDecoder(cell, attention, arguments.step_order, **dropout | start)
        )
        state_size = self.decoder.cell.state_size
        self.bridge = arguments.bridge or self.bridge_class(state_size, m, **start)
        self.readout = arguments.readout or MaxoutReadout(
            arguments.target_vocabulary_size,
            arguments.maxout_units,
            factor_units=m if arguments.factored_output else None,
            tied=arguments.tie_embeddings,
            **start,
        )
        self.copying: Any = None  # or `Copying`
        if arguments.copying != "off":
            hints = self.readout.pieces * (self.readout.units or 0)
            self.copying = Copying(arguments.source_vocabulary_size, hints, **start)
        for name in ("embedding_dropout", "annotation_dropout", "readout_dropout"):
            rate = getattr(arguments, name)
            setattr(self, name, keras.layers.Dropout(rate, name=name, dtype=dtype))
        _check_fit(self)
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
        width = self.decoder.context_size
        context_shape = (None, width) if width else None
        build_once(self.readout, (None, self.decoder.cell.units), (None, m), context_shape)
        if self.copying is not None:
            width = self.readout.factor_units or self.readout.hidden_size
            build_once(self.copying, (None, None, width))
        # These have no weights; they are built for `summary`.
        self.embedding_dropout.build((None, None, m))
        self.annotation_dropout.build(encoded_shape.annotations)
        self.readout_dropout.build((None, None, self.readout.hidden_size))
        super().build()  # layers that the user's parts have

    def _remember(self, arguments: dict[str, object]) -> None:
        """Sets the arguments of the constructor that `get_config` returns.

        Parts are as before building: a loaded model builds its parts itself.
        """
        self._arguments = MappingProxyType(arguments)  # Keras would wrap a dict

    def get_config(self) -> dict[str, object]:
        parts = vars(self).items()
        frozen = [name for name, x in parts if isinstance(x, keras.Layer) and not x.trainable]
        return {**super().get_config(), **self._arguments, **({"frozen": frozen} if frozen else {})}

    @classmethod
    def from_config(
        cls, config: dict[str, object], custom_objects: dict[str, type] | None = None
    ) -> EncoderDecoder:
        restored = {
            key: keras.saving.deserialize_keras_object(value, custom_objects)
            if isinstance(value, dict) and "class_name" in value
            else value
            for key, value in config.items()
        }
        frozen = cast("list[str]", restored.pop("frozen", []))
        model = cls(**restored)
        for part in frozen:
            getattr(model, part).trainable = False
        return model

    @classmethod
    def from_preset(cls, name: str, **overrides: Any) -> EncoderDecoder:
        """The model of a preset of this class, see `bahdanau_tf.from_preset`.

        Raises:
            ValueError: There is no such preset for this class.
        """
        return cls(**preset_arguments(cls.__name__, name, overrides))

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
    ) -> tuple[tf.Tensor, decoder.Glimpse]:
        """The readout's t_i, float [B, T_y, l], and the decoder's `Glimpse`.

        Arguments as in `features`; of `words` alone, t_i is [N, l].
        """
        return self._whole(inputs, training, words)[:2]

    def _whole(
        self, inputs: dict[str, tf.Tensor], training: bool, words: tf.Tensor | None
    ) -> tuple[tf.Tensor, decoder.Glimpse, Match | None]:
        """`hidden`, and what is copied."""
        encoded = self._encoded(inputs["source"], training)
        check_ids(type(self).__name__, "target", inputs["target"], self.target_vocabulary_size)
        embedded = self.target_embedding(inputs["target"])
        embedded = self.embedding_dropout(embedded, training=training)
        rows, wanted = embedded.shape[0], encoded.annotations.shape[0]
        if None not in (rows, wanted) and rows != wanted:
            raise Refusal(
                type(self).__name__, f"target has {rows} rows, wanted as many as source, {wanted}"
            )
        states, first = self.bridge(encoded)
        glimpse = self.decoder(embedded, first, states, self._attended(encoded), training=training)
        state, previous, context = (
            x if x is None or words is None else rows_at(x, words)
            for x in (glimpse.state, shifted(embedded, first), glimpse.context)
        )
        if context is not None:
            context = self.readout.context_term(context)
        match = self.matched(inputs["source"], inputs["target"], glimpse.weights)
        if match is not None and words is not None:
            match = tf.nest.map_structure(lambda x: rows_at(x, words), match)
        hidden = self.read_out(state, previous, context, match)
        return self.readout_dropout(hidden, training=training), glimpse, match

    def matched(
        self, source: tf.Tensor, target: tf.Tensor, weights: tf.Tensor | None
    ) -> Match | None:
        """What is copied from the source as each target word, given α; None if nothing is."""
        copying = self.copying
        return None if copying is None else copying.of_sentences(source, target, weights)

    def read_out(
        self,
        state: tf.Tensor,
        previous: tf.Tensor,
        context_term: tf.Tensor | None,
        match: Match | None,
    ) -> tf.Tensor:
        """The readout's t_i, float [..., l]; `context_term` is C_o c_i, or None."""
        if match is not None:
            context_term = self.copying.hinted(context_term, match)
        return self.readout.hidden(state, previous, context_term)

    def _encoded(self, source: tf.Tensor, training: bool) -> Encoded:
        check_ids(type(self).__name__, "source", source, self.source_vocabulary_size)
        embedded = self.embedding_dropout(self.source_embedding(source), training=training)
        encoded: Encoded = self.encoder(embedded, mask=source != PAD_ID, training=training)
        annotations, forward, backward = tf.nest.map_structure(
            lambda x: self.annotation_dropout(x, training=training), encoded[:3]
        )
        return Encoded(annotations, forward, backward, encoded.mask)

    def _attended(self, encoded: Encoded) -> Nest:
        attention = self.decoder.attention
        return () if attention is None else attention.memory(encoded)

    def features(
        self, inputs: dict[str, tf.Tensor], training: bool = False, words: tf.Tensor | None = None
    ) -> tuple[tf.Tensor | Copied, tf.Tensor | None]:
        """See `TranslationModel`."""
        hidden, glimpse, match = self._whole(inputs, training, words)
        return self.copied(self.readout.features(hidden), match), glimpse.weights

    def copied(self, features: tf.Tensor, match: Match | None) -> tf.Tensor | Copied:
        """The features, with the odds of the source's words if there is a match."""
        return features if match is None else self.copying.copied(features, match)

    def output_weights(self) -> OutputWeights:
        """The last matrix and its bias."""
        return self.readout.output_weights(self.target_embedding.embeddings)

    def logits(self, features: tf.Tensor | Copied, output: Output) -> tf.Tensor:
        """See `TranslationModel`."""
        return self.normalized(features, output)[0]

    def normalized(
        self, features: tf.Tensor | Copied, output: Output
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """See `TranslationModel`."""
        if isinstance(features, Copied):
            return mixed_logits(features, output)
        return output.logits(features), None

    def encode(self, source: tf.Tensor) -> tuple[SourceMemory, Nest]:
        """See `TranslationModel`."""
        encoded = self._encoded(source, training=False)
        states, first = self.bridge(encoded)
        source_memory = self._attended(encoded)
        attended = self.decoder.step_memory(source_memory, self.readout.context_term)
        state = self.decoder.initial_state(states, source_memory)
        if self.copying is None:
            return SourceMemory(attended, first), state
        none = tf.zeros_like(source, tf.float32)
        start = CopyState(state, none, none)
        return SourceMemory(attended, first, self.copying.memory(source)), start

    def step(
        self, ids: tf.Tensor, state: Nest, memory: SourceMemory
    ) -> tuple[tf.Tensor | Copied, Nest, tf.Tensor | None]:
        """See `TranslationModel`."""
        before = state
        if self.copying is not None:
            state = before.decoder
        is_first = ids == self.start_id
        first, embedded = memory.first_input[:, None], self.target_embedding(ids)
        previous = tf.where(is_first[..., None], first, embedded)
        glimpse, state = self.decoder.step(previous, is_first, state, memory.attended)
        weights, match = glimpse.weights, None
        if weights is not None:
            weights = tf.cast(weights, tf.float32)
        if tf.is_tensor(memory.forced):
            weights = tf.where(tf.math.is_nan(memory.forced), weights, memory.forced)
        if self.copying is not None:
            runs = self.copying.runs(memory.copied, before.runs, ids)
            match = self.copying.match(memory.copied, runs, before.weights, weights)
            state = CopyState(state, runs, weights)
        hidden = self.read_out(glimpse.state, as_rows(previous), glimpse.context, match)
        features = self.readout.features(hidden)
        features = reshaped(features, previous, features.shape[-1])
        return self.copied(features, match), state, weights


# Rows [T_x] of weights by step; None where they are the model's own.
ForcedRows: TypeAlias = "np.ndarray | Sequence[ArrayLike | None] | Mapping[int, ArrayLike | None]"
_SUM = 1e-3  # how far the sum of a row may be from 1


def forced_rows(
    model: TranslationModel, attention: ForcedRows, places: Sequence[int]
) -> dict[int, np.ndarray]:
    """Checks rows of attention to force: by step, with a column for each id, float32 [T_x].

    `places` are those of the columns of `attention` among the ids. Raises ValueError if a row
    does not fit them, or the model is not one of this module whose attention has no state.
    """
    layer = getattr(getattr(model, "decoder", None), "attention", None)
    start = isinstance(layer, Attention) and type(layer).initial_state
    if not isinstance(model, EncoderDecoder) or start is not Attention.initial_state:
        raise Refusal(
            "Translator",
            f"attention cannot be set in {type(layer or model).__name__}, wanted one "
            "model with an attention without a state, such as BahdanauAttention",
        )
    try:
        items = attention.items() if isinstance(attention, Mapping) else enumerate(attention)
        rows = {int(i): np.asarray(row, np.float32) for i, row in items if row is not None}
    except (TypeError, ValueError) as error:
        raise Refusal(
            "Translator", f"attention is {attention!r}, wanted rows of weights, or a dict of rows"
        ) from error
    for step, row in rows.items():
        is_sum = row.shape == (len(places),) and (row >= 0).all() and abs(row.sum() - 1) < _SUM
        if step < 0 or not is_sum:
            raise Refusal(
                "Translator",
                f"attention is {row} at step {step}, wanted weights of the "
                f"{len(places) - 1} source tokens and the end symbol, which sum to 1",
            )
    return {step: row[np.argsort(places)] for step, row in rows.items()}


def forced_attention(model: TranslationModel, rows: Mapping[int, np.ndarray]) -> TranslationModel:
    """The same model with `forced_rows` at some steps, of every hypothesis."""
    return cast("TranslationModel", _Forced(model, rows)) if rows else model


class _Forced:
    """A model that reads one context at all positions, so that any weights average to it."""

    def __init__(self, model: TranslationModel, rows: Mapping[int, np.ndarray]) -> None:
        self.model = model
        padded = np.full([1, max(rows) + 2, len(next(iter(rows.values())))], np.nan, np.float32)
        padded[0, [*rows]] = [*rows.values()]
        self.rows = tf.constant(padded)  # [1, T_y, T_x], the last row for all later steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def encode(self, source: tf.Tensor) -> tuple[Nest, Nest]:
        """The memory and the rows; the state and the number of steps so far, int32 [B]."""
        memory, state = self.model.encode(source)
        return (memory, self.rows), (state, tf.zeros_like(source[:, 0]))

    def step(self, ids: tf.Tensor, state: Nest, memory: Nest) -> tuple[tf.Tensor, Nest, tf.Tensor]:
        """The model's, with the row of this step if it has one."""
        (memory, rows), (state, time) = memory, state
        last = tf.shape(rows)[1] - 1
        row = tf.gather(rows, tf.minimum(time[:, 0], last), batch_dims=1)[:, None]  # [B, 1, T_x]
        is_forced = ~tf.math.is_nan(row[..., :1])
        terms = memory.attended.terms
        forced = tf.matmul(tf.cast(tf.where(is_forced, row, 0.0), terms.dtype), terms)
        attended = memory.attended._replace(terms=tf.where(is_forced, forced, terms))
        memory = memory._replace(attended=attended, forced=row)
        features, state, weights = self.model.step(ids, state, memory)
        return features, (state, time + 1), weights


def _check_fit(model: EncoderDecoder) -> None:
    """Raises ValueError if parts of a model contradict one another, before they are built."""
    bridge, cell = model.bridge, model.decoder.cell
    words, vocabulary = model.readout.vocabulary_size, model.target_vocabulary_size
    m, dropout = model.target_embedding.embedding_dim, model.decoder.state_dropout
    of_encoder = getattr(model.encoder, "state_dropout", dropout)
    sizes, wanted = (tf.nest.flatten(part.state_size) for part in (bridge, cell))
    # Parts that a user may have given, each with a dtype of its own.
    parts = {"attention": model.decoder.attention, "bridge": bridge}
    if isinstance(cell, KerasCell):
        parts["cell"] = cell
    dtypes = [
        (f"{name}.dtype", part.compute_dtype, "dtype", model.compute_dtype)
        for name, part in parts.items()
        if part is not None
    ]
    if model.copying is not None and not model.has_alignment:
        raise Refusal(
            type(model).__name__,
            "copying is on without attention weights, wanted an attention that has them",
        )
    for name, value, other_name, other in (
        ("readout.vocabulary_size", words, "target_vocabulary_size", vocabulary),
        ("bridge.state_size", sizes, "cell.state_size", wanted),
        ("bridge.embedding_dim", bridge.embedding_dim, "embedding_dim", m),
        ("encoder.state_dropout", of_encoder, "state_dropout", dropout),
        *dtypes,
    ):
        if value != other:
            raise Refusal(
                type(model).__name__, f"{name} ({value}) and {other_name} ({other}) must be equal"
            )
