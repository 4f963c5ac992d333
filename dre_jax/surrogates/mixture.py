"""Many predictions as one: the moments of a mixture."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def mixture_moments(means: Array, variances: Array) -> tuple[Array, Array]:
    """Mean and variance of a mixture of equal parts (law of total variance).

    Args:
      means: f[M, n], of the parts.
      variances: f[M, n], or anything that broadcasts against it.

    Returns:
      Two f[n]. The variance is the mean of the parts' plus the variance of their means, so that nothing cancels.

    Example:
      >>> mean, variance = mixture_moments(jnp.array([[1.0], [3.0]]), jnp.array([[0.5], [0.5]]))
      >>> mean.tolist(), variance.tolist()
      ([2.0], [1.5])
    """
    mean = jnp.mean(means, axis=0)
    return mean, jnp.mean(variances + (means - mean[None, :]) ** 2, axis=0)
