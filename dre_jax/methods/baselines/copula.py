"""Responses as quantiles of a standard Gaussian (Salinas, Shen and Perrone 2020, section 3.1)."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array
from jax.typing import DTypeLike


def cut_off(count: Array) -> Array:
    """delta_n = 1 / (4 n^(1/4) sqrt(pi log n)): how near to 0 and 1 a winsorised quantile of n responses may come.

    Example:
      >>> float(cut_off(jnp.float32(100.0)).round(4))
      0.0208
    """
    n = jnp.maximum(count, 2.0)
    return 1.0 / (4.0 * n**0.25 * jnp.sqrt(math.pi * jnp.log(n)))


def copula_scale(level: Array, where: Array, dtype: DTypeLike = jnp.float32) -> Array:
    """Phi^-1 of the winsorised share of responses that are at most as high: whatever the scale, always the same.

    Levels are i32[n], smaller is better. Returns f[n], equal for equal ones; 0 in empty slots, and where there is one
    response only.

    Example:
      >>> copula_scale(jnp.array([2, 0, 1]), jnp.ones(3, bool)).round(2).tolist()
      [-0.43, 1.27, 0.43]
    """
    count = jnp.sum(where, dtype=dtype)
    below = (level[None, :] >= level[:, None]) & where[None, :]
    share = jnp.sum(below, axis=1, dtype=dtype) / jnp.maximum(count, 1.0)
    delta = cut_off(count)
    scaled = jax.scipy.special.ndtri(jnp.clip(share, delta, 1.0 - delta))
    return jnp.where(where & (count > 1), scaled, 0.0)


def quantiles(y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """As `copula_scale`, of tables of any length: by sorting.

    Example:
      >>> quantiles(np.array([0.0, 2.0, 1.0])).round(2).tolist()
      [-0.43, 1.27, 0.43]
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata  # a second to import

    n = len(y)
    if n < 2:
        return np.zeros(n)
    delta = 1.0 / (4.0 * n**0.25 * np.sqrt(np.pi * np.log(n)))
    share = rankdata(y, method="max") / n
    quantiles: npt.NDArray[np.float64] = ndtri(np.clip(share, delta, 1.0 - delta))
    return quantiles
