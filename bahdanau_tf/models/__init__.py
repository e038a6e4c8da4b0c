"""Translation models: from word ids to logits of target words."""

from __future__ import annotations

from typing import Any

from bahdanau_tf.models.architecture import preset_class
from bahdanau_tf.models.encoder_decoder import EncoderDecoder as EncoderDecoder
from bahdanau_tf.models.ensemble import Ensemble as Ensemble
from bahdanau_tf.models.papers import (
    RNNEncDec as RNNEncDec,
    RNNSearch as RNNSearch,
    Seq2SeqLSTM as Seq2SeqLSTM,
)
from bahdanau_tf.models.scoring import token_log_probs as token_log_probs
from bahdanau_tf.models.stepwise import (
    StepwiseModel as StepwiseModel,
    TranslationModel as TranslationModel,
)


def from_preset(name: str, **overrides: Any) -> EncoderDecoder:
    """Creates the model of a preset.

    Args:
        name: Such as "rnnsearch-50".
        **overrides: Constructor arguments to change.

    Returns:
        A model of the preset's class.

    Raises:
        ValueError: There is no such preset.
    """
    owner: type[EncoderDecoder] = globals()[preset_class(name)]
    return owner.from_preset(name, **overrides)
