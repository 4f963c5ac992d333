"""Weights of the positions of a ranked list: the paper, appendix C; position 1 is the best."""

from __future__ import annotations

from typing import Literal, get_args

import jax.numpy as jnp
from jax import Array

from dre_jax.checks import one_of

PositionWeights = Literal["inverse_log", "inverse_linear", "attention", "none"]


def position_weights(kind: PositionWeights, position: Array, length: Array) -> Array:
    """Weight of each position of a list, f32[..., n].

    "inverse_log" is 1/ln(j+1), "inverse_linear" 1/j, "attention" (k-j+1) / (1+...+k) for lists of `length` k, "none" 1.
    Positions j count from 1; smaller ones, of empty slots ahead of the first item, are read as 1.

    Raises:
      ConfigError: for an unknown kind.

    Example:
      >>> position_weights("inverse_linear", jnp.arange(1.0, 5.0), jnp.array(4.0)).tolist()
      [1.0, 0.5, 0.3333333432674408, 0.25]
    """
    one_of("position weights", kind, get_args(PositionWeights))
    j = jnp.maximum(position, 1.0)
    if kind == "inverse_log":
        return 1.0 / jnp.log(j + 1.0)
    if kind == "inverse_linear":
        return 1.0 / j
    if kind == "attention":
        k = jnp.maximum(length, 1.0)
        return (k - j + 1.0) / (k * (k + 1.0) / 2.0)
    return jnp.ones_like(j)
