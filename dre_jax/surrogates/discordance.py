"""How far a model's order of the trials is from the order of their responses."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def misranked(predicted: Array, level: Array, where: Array) -> Array:
    """Pairs of trials that a prediction puts in the wrong order, as a share of the pairs with different responses.

    Pairs that are predicted equal count half (Feurer et al. 2018, equation 3; Wistuba et al. 2016, equation 11).

    Args:
      predicted: f[..., n], higher is better.
      level: i32[n], smaller is better, equal where responses are tied.
      where: bool[n].

    Returns:
      f[...] in [0, 1]; 0 where no two responses differ.

    Example:
      >>> levels, where = jnp.array([0, 1, 2]), jnp.ones(3, bool)
      >>> float(misranked(jnp.array([3.0, 2.0, 1.0]), levels, where))
      0.0
      >>> float(misranked(jnp.array([1.0, 2.0, 3.0]), levels, where))
      1.0
    """
    pairs = (level[:, None] < level[None, :]) & where[:, None] & where[None, :]
    better, worse = predicted[..., :, None], predicted[..., None, :]
    wrong = jnp.where(better < worse, 1.0, jnp.where(better == worse, 0.5, 0.0)).astype(predicted.dtype)
    count = jnp.sum(pairs, dtype=predicted.dtype)
    return jnp.sum(jnp.where(pairs, wrong, 0.0), axis=(-2, -1)) / jnp.maximum(count, 1.0)
