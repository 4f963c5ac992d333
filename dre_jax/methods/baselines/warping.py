"""Bends of columns and of responses that make a Gaussian process a better description of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.response_scale import standardise

_BORDER = 1e-6  # powers have no finite slope at the ends of [0, 1]
_FLAT = 1e-3  # exponents nearer to zero are taken for their limit's first two terms
_REACH = 6.0  # of the exponents looked through, on both sides of 1, the identity
_GRID, _ROUNDS, _FINER = 61, 3, 21


def kumaraswamy(x: Array, log_a: Array, log_b: Array) -> Array:
    """Kumaraswamy's distribution function 1 - (1 - x^a)^b, from [0, 1] to itself, column by column (Snoek et al. 2014).

    f[..., D], f[D] and f[D]; logarithms of 0 bend nothing.

    Example:
      >>> kumaraswamy(jnp.array([[0.5]]), jnp.log(jnp.array([2.0])), jnp.log(jnp.array([1.0]))).round(4).tolist()
      [[0.25]]
    """
    shape = (1,) * (x.ndim - 1) + (-1,)
    a, b = jnp.exp(log_a).reshape(shape), jnp.exp(log_b).reshape(shape)
    inside = jnp.clip(x, _BORDER, 1.0 - _BORDER)
    return -jnp.expm1(b * jnp.log(-jnp.expm1(a * jnp.log(inside))))


def yeo_johnson(y: Array, exponent: Array) -> Array:
    """The power transform of Yeo and Johnson (2000) of f[n], numbers of either sign; 1 changes nothing.

    Example:
      >>> yeo_johnson(jnp.array([3.0, -3.0]), jnp.float32(0.5)).round(4).tolist()
      [2.0, -4.6667]
    """
    power = jnp.where(y >= 0.0, exponent, 2.0 - exponent)
    log = jnp.log1p(jnp.abs(y))
    flat = jnp.abs(power) < _FLAT
    bent = jnp.where(flat, log * (1.0 + 0.5 * power * log), jnp.expm1(power * log) / jnp.where(flat, 1.0, power))
    return jnp.sign(y) * bent


def normal_exponent(y: Array, where: Array) -> Array:
    """Returns the exponent of the highest normal likelihood of standardised responses (Yeo and Johnson 2000, eq. 3.1).

    The search uses a grid from -5 to 7 that is refined three times. Equal responses give an arbitrary exponent.
    """
    count = jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0)
    slope = jnp.sum(jnp.where(where, jnp.sign(y) * jnp.log1p(jnp.abs(y)), 0.0))

    def likelihood(exponent: Array) -> Array:
        deviation = standardise(yeo_johnson(y, exponent), where).deviation
        return (exponent - 1.0) * slope - count * jnp.log(deviation)

    def best(exponents: Array) -> Array:
        return exponents[jnp.argmax(jax.vmap(likelihood)(exponents))]

    exponent = best(1.0 + jnp.linspace(-_REACH, _REACH, _GRID, dtype=y.dtype))
    width = 2.0 * _REACH / (_GRID - 1)
    for _ in range(_ROUNDS):
        exponent = best(exponent + jnp.linspace(-width, width, _FINER, dtype=y.dtype))
        width *= 2.0 / (_FINER - 1)
    return exponent


def to_normal(response: Array, where: Array) -> Array:
    """Returns responses of any scale, transformed to an approximately standard normal sample; 0 in empty slots."""
    y = standardise(response, where).y
    return standardise(yeo_johnson(y, normal_exponent(y, where)), where).y
