"""Responses as quantiles of a standard Gaussian (Salinas, Shen and Perrone 2020, section 3.1), and half-way to them."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.surrogates.standard import standardise


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


def blended_scale(response: Array, level: Array, where: Array) -> Array:
    """Half-way between standardised responses and their quantiles, standardised; f[n], 0 in empty slots.

    Responses alone let a few that are far off decide; quantiles alone forget by how much one is better.

    Args:
      response: f[n].
      level: i32[n], smaller is better.
      where: bool[n].
    """
    plain = standardise(response, where).y
    by_rank = standardise(copula_scale(level, where), where).y
    return standardise(plain + by_rank, where).y


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
    found: npt.NDArray[np.float64] = ndtri(np.clip(share, delta, 1.0 - delta))
    return found


def blend(y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """As `blended_scale`, of tables of any length; all 0 where responses are equal.

    Example:
      >>> blend(np.array([1.0, 1.0])).tolist()
      [0.0, 0.0]
    """
    return _standard(_standard(y) + _standard(quantiles(y)))


def _standard(y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if len(y) == 0 or y.min() == y.max():
        return np.zeros(len(y))
    # To one first: sums and squares stay finite when the responses are at the end of a float's range.
    y = y / np.abs(y).max()
    off = (y - y.mean()) / np.ptp(y)
    return off / off.std()
