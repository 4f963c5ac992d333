"""Parzen estimators of good and of bad configurations (Bergstra et al. 2011, section 4)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.kernels import LOG_2PI

_NARROWEST, _WIDEST = 0.03, 1.0  # of a kernel on [0, 1]


def bandwidths(x: Array, where: Array) -> Array:
    """Width of the kernels in each column by Scott's rule, deviation times n^(-1 / (D + 4)); f[n, D] -> f[D].

    Kept between 0.03 and 1: a column that is constant so far does not exclude the rest of its range.
    """
    count = jnp.maximum(jnp.sum(where, dtype=x.dtype), 1.0)
    mean = jnp.sum(jnp.where(where[:, None], x, 0.0), axis=0) / count
    variance = jnp.sum(jnp.where(where[:, None], (x - mean[None, :]) ** 2, 0.0), axis=0) / count
    width = jnp.sqrt(variance) * count ** (-1.0 / (x.shape[-1] + 4))
    return jnp.clip(width, _NARROWEST, _WIDEST)


def log_parzen(x: Array, where: Array, new: Array) -> Array:
    """Log-density of a mixture of Gaussians, one on each row, and of one uniform on [0, 1]^D that weighs as much.

    f[n, D], bool[n] and f[m, D] -> f[m]; 0, the uniform's, where there is no row.
    """
    width = bandwidths(x, where)
    squared = jnp.sum(((new[:, None, :] - x[None, :, :]) / width[None, None, :]) ** 2, axis=-1)
    kernels = -0.5 * squared - jnp.sum(jnp.log(width)) - 0.5 * x.shape[-1] * LOG_2PI
    kernels = jnp.where(where[None, :], kernels, -jnp.inf)
    uniform = jnp.zeros((new.shape[0], 1), x.dtype)
    count = jnp.sum(where, dtype=x.dtype) + 1.0
    return jax.nn.logsumexp(jnp.concatenate([kernels, uniform], axis=1), axis=1) - jnp.log(count)
