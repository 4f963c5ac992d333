"""Many predictions as one: the moments of a mixture."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def mixture_moments(means: Array, variances: Array) -> tuple[Array, Array]:
    """Mean and variance, two f[n], of a mixture of equal parts with means f[M, n] (law of total variance).

    The variance is the mean of the parts', which broadcast against the means, plus the variance of their means, so that
    nothing cancels.

    Example:
      >>> mean, variance = mixture_moments(jnp.array([[1.0], [3.0]]), jnp.array([[0.5], [0.5]]))
      >>> mean.tolist(), variance.tolist()
      ([2.0], [1.5])
    """
    mean = jnp.mean(means, axis=0)
    return mean, jnp.mean(variances + (means - mean[None, :]) ** 2, axis=0)
