"""Distances of a model's order of the trials from the order of their responses."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def misranked(predicted: Array, level: Array, where: Array) -> Array:
    """Share of the pairs of trials with different responses that predictions f[..., n] put in the wrong order.

    Pairs that are predicted equal count half (Feurer et al. 2018, equation 3; Wistuba et al. 2016, equation 11). Levels
    are i32[n], smaller is better, equal where responses are tied. Returns f[...]; 0 where no two responses differ.

    Example:
      >>> levels, where = jnp.array([0, 1, 2]), jnp.ones(3, bool)
      >>> misranked(jnp.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]), levels, where).tolist()
      [0.0, 1.0]
    """
    pairs = (level[:, None] < level[None, :]) & where[:, None] & where[None, :]
    return _share(_wrong(predicted[..., :, None], predicted[..., None, :]), pairs)


def misranked_left_out(predicted: Array, level: Array, where: Array) -> Array:
    """Share of such pairs that models without one of the two put in the wrong order.

    Row j of the predictions f[..., n, n] is of the model without trial j: of each model those pairs count that hold the
    trial which it has not seen (Feurer et al. 2018, section 4.1).

    Example:
      >>> levels, where = jnp.array([0, 1]), jnp.ones(2, bool)
      >>> float(misranked_left_out(jnp.array([[2.0, 1.0], [1.0, 3.0]]), levels, where))
      0.5
    """
    left_out = jnp.diagonal(predicted, axis1=-2, axis2=-1)[..., :, None]
    better = level[:, None] < level[None, :]
    pairs = (level[:, None] != level[None, :]) & where[:, None] & where[None, :]
    return _share(jnp.where(better, _wrong(left_out, predicted), _wrong(predicted, left_out)), pairs)


def _wrong(better: Array, worse: Array) -> Array:
    """1 where what is better is not predicted to be, a half where both are predicted equal; NaN is wrong."""
    return jnp.where(better > worse, 0.0, jnp.where(better == worse, 0.5, 1.0)).astype(better.dtype)


def _share(wrong: Array, pairs: Array) -> Array:
    count = jnp.sum(pairs, dtype=wrong.dtype)
    return jnp.sum(jnp.where(pairs, wrong, 0.0), axis=(-2, -1)) / jnp.maximum(count, 1.0)
