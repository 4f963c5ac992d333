"""Adam with its bias correction folded into the step size (Kingma and Ba 2015, end of section 2).

Equal to `optax.adam` in exact arithmetic. The numbers that depend on the step alone are worked out before a loop, so
that inside it a parameter costs one square root and one division: in networks this small the optimiser takes as long
as the matrix products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

_B1, _B2, _EPS = 0.9, 0.999, 1e-8


class Moments(NamedTuple):
    """Running means of the gradient and of its square, two trees like the parameters."""

    first: Any
    second: Any


class StepSizes(NamedTuple):
    """Adam's scalars of a step, f32[...] each."""

    size: Array
    """Learning rate with the bias corrections of both moments."""
    floor: Array
    """Epsilon, likewise corrected."""


def zero_moments(params: Any) -> Moments:
    """Moments before the first step; two sets of zeros, since a state that is given away must not hold one twice."""
    return Moments(*(jax.tree.map(jnp.zeros_like, params) for _ in range(2)))


def step_sizes(learning_rate: optax.Schedule, steps: Array) -> StepSizes:
    """Step sizes, two f32[n], for steps i32[n] counted from 0.

    Example:
      >>> float(step_sizes(optax.constant_schedule(0.5), jnp.arange(2)).size[0].round(6))
      0.158114
    """
    count = steps.astype(jnp.float32)  # optax's schedules mix a whole count with fractions, which strict types refuse
    rate = jax.vmap(lambda step: jnp.asarray(learning_rate(step), jnp.float32))(count)
    power = count + 1.0
    root = jnp.sqrt(-jnp.expm1(power * jnp.log(_B2)))
    return StepSizes(rate * root / -jnp.expm1(power * jnp.log(_B1)), _EPS * root)


def apply_gradient(params: Any, gradient: Any, moments: Moments, step: StepSizes) -> tuple[Any, Moments]:
    """One Adam step with one step's sizes; returns the new parameters and moments."""
    first = jax.tree.map(lambda m, g: _B1 * m + (1.0 - _B1) * g, moments.first, gradient)
    second = jax.tree.map(lambda v, g: _B2 * v + (1.0 - _B2) * g * g, moments.second, gradient)
    params = jax.tree.map(lambda p, m, v: p - step.size * m / (jnp.sqrt(v) + step.floor), params, first, second)
    return params, Moments(first, second)
