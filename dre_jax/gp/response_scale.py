"""Responses on a scale that priors can count on."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.runtime.jit import jit_eager_calls


class Standard(NamedTuple):
    """Standardised responses, and what they were divided by."""

    y: Array
    """f[n], mean 0 and deviation 1 over the filled slots, 0 in empty ones."""
    deviation: Array
    """Scalar; 1 where all responses are equal."""


@jit_eager_calls()
def standardise(response: Array, where: Array) -> Standard:
    """Mean 0 and deviation 1 over the filled slots, `response` f[n] and `where` bool[n]; equal responses become 0.

    Example:
      >>> standardise(jnp.array([1.0, 3.0, 9.0]), jnp.array([True, True, False])).y.tolist()
      [-1.0, 1.0, 0.0]
    """
    count = jnp.maximum(jnp.sum(where, dtype=response.dtype), 1.0)
    mean = jnp.sum(jnp.where(where, response, 0.0)) / count
    off = jnp.where(where, response - mean, 0.0)
    deviation = jnp.sqrt(jnp.sum(off**2) / count)
    # Rounding leaves a rest where all are equal, which must not be blown up to a deviation of one.
    varied = deviation > 1e-6 * jnp.maximum(jnp.abs(mean), 1e-6)
    deviation = jnp.where(varied, deviation, 1.0)
    return Standard(jnp.where(varied, off / deviation, 0.0), deviation)


def best_of(y: Array, where: Array) -> Array:
    """The highest response of the filled slots, minus infinity without any; `y` f[n], `where` bool[n] -> scalar."""
    return jnp.max(jnp.where(where, y, -jnp.inf))
