"""Gradient descent by Adam in one compiled loop, on the same inputs or on a batch in every step."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Float, Int

from dre_jax.optim.adam import Moments, StepSizes, apply_gradient, step_sizes, zero_moments

T = TypeVar("T")


class Descent(NamedTuple, Generic[T]):
    """State of a gradient descent."""

    params: T
    moments: Moments
    best: tuple[T, Float[Array, ""]] | None
    """The parameters of the lowest finite loss so far, and that loss; None without ``keep_best``."""
    average: T | None = None
    """Running average of the parameters over about the last ninth of the steps; None without ``keep_average``."""


_AVERAGING_ETA = 8.0
"""eta of polynomial-decay averaging (Shamir and Zhang 2013); a larger eta averages fewer steps."""


def begin(params: T, *, keep_best: bool = False, keep_average: bool = False) -> Descent[T]:
    """Returns the state before the first step."""
    best = (params, jnp.full((), jnp.inf, _dtype(params))) if keep_best else None
    return Descent(params, zero_moments(params), best, params if keep_average else None)


def _dtype(params: Any) -> Any:
    return jax.tree.leaves(params)[0].dtype


def descend(
    loss: Callable[[T, Any], Float[Array, ""]],
    descent: Descent[T],
    rates: optax.Schedule,
    steps: Int[Array, " n"],
    inputs: Any = None,
    *,
    project: Callable[[T], T] = lambda params: params,
    unroll: int = 1,
) -> tuple[Descent[T], Float[Array, " n"]]:
    """Minimises a loss by Adam steps; elements of the gradient that are not finite count as 0.

    The loss is a function of parameters and the inputs of one step. The inputs are a tree with n steps in front, or
    None. ``steps`` are the numbers of the steps, counted from 0, and ``rates`` is the schedule of the learning rate.
    ``project`` maps parameters to the domain of the loss after every step.

    Returns the state after n steps, and the loss before each step.
    """
    value_and_gradient = jax.value_and_grad(loss)

    def step(descent: Descent[T], step_inputs: tuple[StepSizes, Array, Any]) -> tuple[Descent[T], Array]:
        params, moments, best, average = descent
        size, share, inputs = step_inputs
        value, gradient = value_and_gradient(params, inputs)
        gradient = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0.0), gradient)
        if best is not None:
            better = jnp.isfinite(value) & (value < best[1])
            best = jax.tree.map(lambda new, old: jnp.where(better, new, old), (params, value), best)
        params, moments = apply_gradient(params, gradient, moments, size)
        params = project(params)
        if average is not None:
            average = jax.tree.map(lambda old, new: old + share * (new - old), average, params)
        return Descent(params, moments, best, average), value

    dtype = _dtype(descent.params)
    sizes = jax.tree.map(lambda a: a.astype(dtype), step_sizes(rates, steps))
    shares = (_AVERAGING_ETA + 1.0) / (steps.astype(dtype) + 1.0 + _AVERAGING_ETA)
    return lax.scan(step, descent, (sizes, shares, inputs), unroll=unroll)


def maximise(
    objective: Callable[[T], Float[Array, ""]],
    start: T,
    *,
    steps: int,
    learning_rate: float,
    project: Callable[[T], T],
) -> tuple[T, Float[Array, ""]]:
    """Returns the best point of Adam with a cosine schedule to a rate of zero, and the objective there.

    ``steps`` points are evaluated, the start included, and at least one. ``project`` maps a point to the domain of the
    objective. Without a finite value it returns the start and -inf.
    """
    rates, numbers = optax.cosine_decay_schedule(learning_rate, max(steps, 1)), jnp.arange(max(steps, 1))
    descent = begin(start, keep_best=True)
    descent, _ = descend(lambda params, _: -objective(params), descent, rates, numbers, project=project)
    assert descent.best is not None
    best, lowest = descent.best
    return best, -lowest
