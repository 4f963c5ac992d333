"""Responses as quantiles of a standard Gaussian (Salinas, Shen and Perrone 2020, section 3.1)."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array


def cut_off(count: Array) -> Array:
    """delta_n = 1 / (4 n^(1/4) sqrt(pi log n)): how near to 0 and 1 a winsorised quantile of n responses may come.

    Example:
      >>> float(cut_off(jnp.float32(100.0)).round(4))
      0.0208
    """
    n = jnp.maximum(count, 2.0)
    return 1.0 / (4.0 * n**0.25 * jnp.sqrt(math.pi * jnp.log(n)))


def copula_scale(level: Array, where: Array) -> Array:
    """Phi^-1 of the winsorised share of responses that are at most as high: whatever the scale, always the same.

    Levels are i32[n], smaller is better. Returns f32[n], equal for equal ones; 0 in empty slots, and where there is one
    response only.

    Example:
      >>> copula_scale(jnp.array([2, 0, 1]), jnp.ones(3, bool)).round(2).tolist()
      [-0.43, 1.27, 0.43]
    """
    count = jnp.sum(where, dtype=jnp.float32)
    below = (level[None, :] >= level[:, None]) & where[None, :]
    share = jnp.sum(below, axis=1, dtype=jnp.float32) / jnp.maximum(count, 1.0)
    delta = cut_off(count)
    scaled = jax.scipy.special.ndtri(jnp.clip(share, delta, 1.0 - delta))
    return jnp.where(where & (count > 1), scaled, 0.0)
