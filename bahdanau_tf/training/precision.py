"""The dtype of products in training, and the scale of the loss."""

from __future__ import annotations

import keras

from bahdanau_tf.optimizers.guarded import Guarded
from bahdanau_tf.options import Recipe
from bahdanau_tf.system.device import has_fast_bfloat16


def product_dtype(recipe: Recipe, model: keras.Model) -> str:
    """The dtype to which the operands of products are rounded."""
    if recipe.product_dtype == "auto":
        is_free = model.compute_dtype == "float32"  # else it rounds itself
        return "bfloat16" if is_free and has_fast_bfloat16() else "float32"
    return recipe.product_dtype


def with_loss_scale(
    optimizer: Guarded, model: keras.Model, dtype: str
) -> keras.optimizers.Optimizer:
    """The optimizer, which scales the loss if something is in float16.

    Without a scale, gradients below 6e-8 would be 0. Keras' optimizer halves
    it and skips the update if a scaled gradient is too large, and doubles it
    after 2,000 updates without; so these skips are no sign of divergence.

    Args:
        optimizer: The optimizer.
        model: The model, which may compute in float16 itself.
        dtype: That of its products.

    Raises:
        ValueError: The model has several replicas, or an update several
            batches: some might be skipped, and others not.
    """
    if "float16" not in (dtype, model.compute_dtype):
        return optimizer
    replicas = model.distribute_strategy.num_replicas_in_sync
    if replicas > 1:
        raise ValueError(
            f"train: float16 on {replicas} replicas, wanted bfloat16, float32 "
            "or one replica"
        )
    if (batches := optimizer.accumulation_steps) is not None:
        raise ValueError(
            f"train: float16 with {batches} batches for an update "
            "(accumulate), wanted bfloat16, float32 or one batch"
        )
    return keras.optimizers.LossScaleOptimizer(optimizer)
