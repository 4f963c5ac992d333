"""Standardised responses, the scale that the priors of the Gaussian processes assume."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.runtime.jit import jit_eager_calls


class StandardisedResponses(NamedTuple):
    """Standardised responses and their divisor."""

    y: Array
    """f[n], mean 0 and deviation 1 over the filled slots, 0 in empty ones."""
    deviation: Array
    """Scalar: the standard deviation of the responses; 1 if all responses are equal."""


@jit_eager_calls()
def standardise(response: Array, where: Array) -> StandardisedResponses:
    """Standardises responses to mean 0 and deviation 1 over the filled slots; equal responses become 0.

    Args:
      response: f[n].
      where: bool[n], the filled slots.

    Example:
      >>> standardise(jnp.array([1.0, 3.0, 9.0]), jnp.array([True, True, False])).y.tolist()
      [-1.0, 1.0, 0.0]
    """
    count = jnp.maximum(jnp.sum(where, dtype=response.dtype), 1.0)
    mean = jnp.sum(jnp.where(where, response, 0.0)) / count
    residual = jnp.where(where, response - mean, 0.0)
    deviation = jnp.sqrt(jnp.sum(residual**2) / count)
    # Rounding leaves a small deviation where all responses are equal. It must not be scaled up to one.
    has_spread = deviation > 1e-6 * jnp.maximum(jnp.abs(mean), 1e-6)
    deviation = jnp.where(has_spread, deviation, 1.0)
    return StandardisedResponses(jnp.where(has_spread, residual / deviation, 0.0), deviation)


def masked_mean(values: Array, where: Array) -> Array:
    """Returns the mean of f[n] over the filled slots, a scalar; 0 if no slot is filled."""
    return jnp.sum(jnp.where(where, values, 0.0)) / jnp.maximum(jnp.sum(where, dtype=values.dtype), 1.0)


def best_response(y: Array, where: Array) -> Array:
    """Returns the highest response `y` f[n] of the slots `where` bool[n], a scalar; -inf if no slot is filled."""
    return jnp.max(jnp.where(where, y, -jnp.inf))
