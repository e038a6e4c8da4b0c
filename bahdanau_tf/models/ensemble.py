"""Several models that predict the next word together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from bahdanau_tf.layers.weights import KerasOptions
from bahdanau_tf.models.stepwise import Alignment, Output, StepwiseModel, TranslationModel
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.system.tensors import Nest

if TYPE_CHECKING:
    from typing_extensions import Unpack

AVERAGES = ("probability", "log_probability")


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Ensemble(StepwiseModel):
    """The mean of the next-word distributions of M models.

        p(y_i | y_<i, x) = 1/M Σ_m p_m(y_i | y_<i, x)      "probability"
        p(y_i | y_<i, x) ∝ Π_m p_m(y_i | y_<i, x)^(1/M)    "log_probability"

    The members may be of any kind, each with its own source side (words or sub-words, reversed
    or not); they share the target vocabulary. An ensemble follows the protocol of a single
    model, so it is searched, scored and exported like one.

    Args:
        members: M models.
        average: "probability" or "log_probability".
        sources: For each member the number of the source that it reads; if None, all read source
            0. With more than one source, every argument `source` is a tuple.

    Call arguments, returns: see `StepwiseModel`.

    Raises:
        ValueError: There are no members, one has several sources, their target vocabularies or
            start ids differ, or `average` or `sources` is invalid.

    Reference:
        Sutskever et al. 2014, arXiv 1409.3215, section 3.7.
    """

    def __init__(
        self,
        members: Sequence[TranslationModel],
        average: str = "probability",
        sources: Sequence[int] | None = None,
        **kwargs: Unpack[KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        sources = [0] * len(members) if sources is None else list(sources)
        _check(members, average, sources)
        self.average = average
        self.sources = tuple(sources)
        # Attributes, not a list: exports of TensorFlow lack the weights of Keras layers that are
        # in a list.
        for number, member in enumerate(members):
            setattr(self, f"member_{number}", member)
        self.start_id = members[0].start_id
        self.target_vocabulary_size = members[0].target_vocabulary_size
        self.built = True

    @property
    def members(self) -> list[TranslationModel]:
        """The models, in order."""
        return [getattr(self, f"member_{number}") for number in range(len(self.sources))]

    @property
    def _readers(self) -> Iterator[tuple[int, TranslationModel]]:
        """The members, each with the number of its source."""
        return zip(self.sources, self.members, strict=True)

    @property
    def source_vocabulary_size(self) -> int | tuple[int, ...]:
        """K_x; a tuple of them if there is more than one source."""
        sizes = {source: member.source_vocabulary_size for source, member in self._readers}
        ordered: list[int] = tf.nest.flatten(sizes)
        return tuple(ordered) if len(ordered) > 1 else ordered[0]

    @property
    def has_alignment(self) -> bool:
        """Whether a member that reads source 0 returns attention weights."""
        return any(source == 0 and member.has_alignment for source, member in self._readers)

    def encode(self, source: Nest) -> tuple[Nest, Nest]:
        """The members' memories and their states, two tuples; see `TranslationModel`."""
        sources = tf.nest.flatten(source)
        encoded = [member.encode(sources[number]) for number, member in self._readers]
        memories, states = zip(*encoded, strict=True)
        return memories, states

    def step(self, ids: tf.Tensor, state: Nest, memory: Nest) -> tuple[Nest, Nest, Alignment]:
        """The members' features and new states, two tuples, and the alignment to source 0.

        That is the mean over the members that have one, float32 [B, K, T_x], or None.
        """
        parts = zip(self.members, state, memory, strict=True)
        steps = [member.step(ids, *nests) for member, *nests in parts]
        features, states, weights = zip(*steps, strict=True)
        return features, states, self._mean_alignment(weights)

    def features(
        self, inputs: dict[str, Nest], training: bool = False, words: tf.Tensor | None = None
    ) -> tuple[Nest, Alignment]:
        """The features of every member; see `TranslationModel`."""
        sources, target = tf.nest.flatten(inputs["source"]), inputs["target"]
        outputs = [
            member.features({"source": sources[number], "target": target}, training, words)
            for number, member in self._readers
        ]
        features, weights = zip(*outputs, strict=True)
        return features, self._mean_alignment(weights)

    def output_weights(self) -> tuple[Output, ...]:
        """The output weights of every member."""
        return tuple(member.output_weights() for member in self.members)

    def logits(self, features: Nest, output: Output) -> tf.Tensor:
        """The mean of the members' distributions; see `TranslationModel`."""
        parts = zip(self.members, features, output, strict=True)
        return self.mean([member.logits(*pair) for member, *pair in parts])

    def _mean_alignment(self, weights: Sequence[Alignment]) -> Alignment:
        """The mean over the members that read source 0 and have one."""
        aligned = [
            tf.cast(alignment, tf.float32)
            for source, alignment in zip(self.sources, weights, strict=True)
            if source == 0 and alignment is not None
        ]
        return tf.add_n(aligned) / len(aligned) if aligned else None

    def mean(self, logits: Sequence[tf.Tensor]) -> tf.Tensor:
        """Combines the logits of all members: float32, of the same shape."""
        log_probs = tf.stack([tf.nn.log_softmax(tf.cast(x, tf.float32)) for x in logits])
        if self.average == "probability":
            return tf.reduce_logsumexp(log_probs, axis=0)  # log M too large
        return tf.reduce_mean(log_probs, axis=0)

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "members": [keras.saving.serialize_keras_object(member) for member in self.members],
            "average": self.average,
            "sources": list(self.sources),
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, type] | None = None
    ) -> Ensemble:
        load = keras.saving.deserialize_keras_object
        members = [load(member, custom_objects) for member in config["members"]]
        return cls(**{**config, "members": members})


def _check(members: Sequence[TranslationModel], average: str, sources: Sequence[int]) -> None:
    if not members:
        raise Refusal("Ensemble", "no members, wanted one or more")
    if average not in AVERAGES:
        raise Refusal("Ensemble", f"average is {average!r}, wanted one of {list(AVERAGES)}")
    if len(sources) != len(members) or set(sources) != set(range(max(sources) + 1)):
        raise Refusal(
            "Ensemble",
            f"sources is {list(sources)} for {len(members)} members, "
            "wanted the source number of each, counted from 0 without gaps",
        )
    for name in ("target_vocabulary_size", "start_id"):
        values = [getattr(member, name) for member in members]
        if len(set(values)) > 1:
            raise Refusal("Ensemble", f"{name} of the members is {values}, wanted all equal")
    sizes: dict[int, int] = {}
    for source, member in zip(sources, members, strict=True):
        size = member.source_vocabulary_size
        if isinstance(size, tuple):
            raise Refusal(
                "Ensemble", f"a member has {len(size)} sources, wanted one for each member"
            )
        if sizes.setdefault(source, size) != size:
            raise Refusal(
                "Ensemble",
                f"source_vocabulary_size of members of source "
                f"{source} is {sizes[source]} and {size}, wanted equal ones",
            )
