"""Adam in one compiled loop: the only one of the surrogates, whether they train on a history or on batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from dre_jax.optim.adam import Moments, StepSizes, apply_gradient, step_sizes, zero_moments

T = TypeVar("T")


class Descent(NamedTuple, Generic[T]):
    """State of a descent."""

    params: T
    moments: Moments
    best: tuple[T, Array] | None
    """The parameters of the lowest finite loss so far, and that loss; None where they are not kept."""
    average: T | None = None
    """Running average of the parameters, of about the last ninth of the steps; None where it is not kept."""


_SUFFIX = 8.0
"""eta of the polynomial-decay averaging (Shamir and Zhang 2013): the larger, the shorter the average's memory."""


def begin(params: T, *, keep_best: bool = False, keep_average: bool = False) -> Descent[T]:
    """A descent before its first step."""
    best = (params, jnp.full((), jnp.inf, _dtype(params))) if keep_best else None
    return Descent(params, zero_moments(params), best, params if keep_average else None)


def _dtype(params: Any) -> Any:
    return jax.tree.leaves(params)[0].dtype


def descend(
    loss: Callable[[T, Any], Array],
    descent: Descent[T],
    rates: optax.Schedule,
    steps: Array,
    inputs: Any = None,
    *,
    project: Callable[[T], T] = lambda params: params,
    unroll: int = 1,
) -> tuple[Descent[T], Array]:
    """Adam's steps down a loss; an element of the gradient that is not finite moves nothing.

    Args:
      loss: of parameters and one step's inputs, a scalar.
      descent: from `begin`, or from earlier steps.
      rates: learning rates.
      steps: i32[n], the numbers of the steps, from 0.
      inputs: what the steps learn from, a tree whose leaves have n in front; None where it is always the same.
      project: brings parameters back to where the loss is defined, after every step.
      unroll: steps in a turn of the loop.

    Returns:
      The descent after n steps, and the loss before each, f[n].
    """
    value_and_gradient = jax.value_and_grad(loss)

    def step(descent: Descent[T], given: tuple[StepSizes, Array, Any]) -> tuple[Descent[T], Array]:
        params, moments, best, average = descent
        size, share, inputs = given
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
    shares = (_SUFFIX + 1.0) / (steps.astype(dtype) + 1.0 + _SUFFIX)
    return lax.scan(step, descent, (sizes, shares, inputs), unroll=unroll)


def maximise(
    objective: Callable[[T], Array], start: T, *, steps: int, learning_rate: float, project: Callable[[T], T]
) -> tuple[T, Array]:
    """The best point that Adam comes across, its rate falling along a cosine, and the objective there.

    That many points are tried, the start among them; at least one is. ``project`` brings a point back to where the
    objective is defined. Minus infinity and the start if it was finite nowhere.

    Example:
      >>> hill = lambda a: -((a - 2.0) ** 2)
      >>> best, value = maximise(hill, jnp.float32(0.0), steps=99, learning_rate=0.1, project=abs)
      >>> float(best.round(1))
      2.0
    """
    rates, numbers = optax.cosine_decay_schedule(learning_rate, max(steps, 1)), jnp.arange(max(steps, 1))
    descent = begin(start, keep_best=True)
    descent, _ = descend(lambda params, _: -objective(params), descent, rates, numbers, project=project)
    assert descent.best is not None
    best, lowest = descent.best
    return best, -lowest
