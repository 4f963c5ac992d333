"""Adam with its bias corrections in the step size (Kingma and Ba 2015, end of section 2).

It equals `optax.adam` in exact arithmetic. `step_sizes` computes the scalars of all steps before the loop, so that a
parameter costs one square root and one division in a step. In networks this small the optimiser takes as long as the
matrix products.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

_B1, _B2, _EPS = 0.9, 0.999, 1e-8


class Moments(NamedTuple):
    """Running means of the gradient and of its square, two trees with the structure of the parameters."""

    first: Any
    second: Any


class StepSizes(NamedTuple):
    """Scalars of Adam steps."""

    size: Float[Array, " *steps"]
    """Learning rate times the bias corrections of both moments."""
    floor: Float[Array, " *steps"]
    """Epsilon times the bias correction of the second moment."""


def zero_moments(params: Any) -> Moments:
    """Returns zero moments. They do not share arrays, because a donated state must not contain an array twice."""
    return Moments(*(jax.tree.map(jnp.zeros_like, params) for _ in range(2)))


def step_sizes(learning_rate: optax.Schedule, steps: Int[Array, " n"]) -> StepSizes:
    """Returns the scalars of steps, counted from 0."""
    count = steps.astype(jnp.float32)  # optax adds integers and fractions, which strict promotion refuses
    rate = jax.vmap(lambda step: jnp.asarray(learning_rate(step), jnp.float32))(count)
    power = count + 1.0
    root = jnp.sqrt(-jnp.expm1(power * jnp.log(_B2)))
    return StepSizes(rate * root / -jnp.expm1(power * jnp.log(_B1)), _EPS * root)


def apply_gradient(params: Any, gradient: Any, moments: Moments, step: StepSizes) -> tuple[Any, Moments]:
    """Returns the parameters and moments after one Adam step; ``step`` holds scalars."""
    first = jax.tree.map(lambda m, g: _B1 * m + (1.0 - _B1) * g, moments.first, gradient)
    second = jax.tree.map(lambda v, g: _B2 * v + (1.0 - _B2) * g * g, moments.second, gradient)
    params = jax.tree.map(lambda p, m, v: p - step.size * m / (jnp.sqrt(v) + step.floor), params, first, second)
    return params, Moments(first, second)
