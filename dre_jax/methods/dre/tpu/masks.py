"""Lists that epochs draw as masks over the history: a list in the order of relevance is the history without some."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from dre_jax.losses import PositionWeights, position_weights
from dre_jax.methods.dre.ensemble import deep_set_response
from dre_jax.methods.dre.lists import SampledLists
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.tpu.kernel import Draws


def masks_of(
    model: ModelConfig,
    weights: PositionWeights,
    level: Array,
    where: Array,
    response: Array,
    epochs: SampledLists,
) -> tuple[Array, Draws]:
    """Returns the first of each trial's tie group, i32[C], and the draws of the epochs.

    The weights are those of `dre_jax.losses.rank_sorted` where tied items share theirs. Tie groups are the same in all
    epochs, so that sums over them are products with one matrix, not gathers.
    """
    slot = jnp.arange(where.shape[0], dtype=jnp.int32)
    in_support = (epochs.support[:, :, None] == slot[None, None, :]) & epochs.support_where[:, :, None]
    support = jnp.any(in_support, axis=1)
    count = jnp.sum(support, axis=1, keepdims=True, dtype=response.dtype)
    share = support.astype(response.dtype) / jnp.maximum(count, 1.0)
    scaled = deep_set_response(model, jnp.broadcast_to(response, support.shape), support)
    tied = level[:, None] == level[None, :]
    first = jnp.min(jnp.where(tied, slot[None, :], slot.shape[0]), axis=1)
    return first, Draws(share, scaled, _weight(weights, where[None, :] & ~support, tied).astype(response.dtype))


def _weight(weights: PositionWeights, query: Array, tied: Array) -> Array:
    """Weights of the positions f32[E, C]: tied items share the mean of theirs; zero where nothing is ranked."""
    ranked, same = query.astype(jnp.float32), tied.astype(jnp.float32)
    up_to = jnp.triu(jnp.ones(tied.shape, jnp.float32))
    length = jnp.sum(ranked, axis=1, keepdims=True)
    weight = jnp.where(query, position_weights(weights, _sums(ranked, up_to), length), 0.0)
    return jnp.where(query, _sums(weight, same) / jnp.maximum(_sums(ranked, same), 1.0), 0.0)


def _sums(values: Array, matrix: Array) -> Array:
    return jnp.matmul(values, matrix, precision=lax.Precision.HIGHEST)
