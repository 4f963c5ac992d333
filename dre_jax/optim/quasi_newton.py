"""Maxima in a box by projected BFGS, from many starts side by side (Nocedal and Wright 2006, section 6.1).

The inverse Hessian is dense, as there are few coordinates. Coordinates that a bound stops are left out of a step
(Bertsekas 1982). A turn of the loop evaluates one point for every start: a step that does not improve enough is
shortened in the next turn, so starts never wait for each other's line searches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

_SUFFICIENT = 1e-4  # share of the predicted improvement that a step must make (Armijo)
_SHORTEST = 1e-3  # share of a step; where less is needed, the approximated Hessian is wrong

ValueAndGradient = Callable[[Array], tuple[Array, Array]]
"""Of points f[S, P]: values f[S] and their gradients f[S, P]."""


class Maxima(NamedTuple):
    """What S searches meet."""

    points: Array
    """f[S, P], the best."""
    values: Array
    """f[S], of those."""
    first: Array
    """f[S], of the starts; minus infinity where that is no number."""


class _Search(NamedTuple):
    point: Array
    """f[S, P], the best so far."""
    loss: Array
    """f[S]"""
    gradient: Array
    """f[S, P], of the loss; 0 where a coordinate may not move."""
    inverse: Array
    """f[S, P, P]: of the Hessian."""
    plain: Array
    """bool[S]: `inverse` is still the identity."""
    direction: Array
    """f[S, P]"""
    share: Array
    """f[S]: of the direction that is tried next."""
    done: Array
    """bool[S]"""


def maximise_in_box(
    value_and_gradient: ValueAndGradient,
    start: Array,
    low: Array,
    high: Array,
    *,
    steps: int,
    reach: float,
    tolerance: float,
    movable: Array | None = None,
) -> Maxima:
    """The best points that are met.

    A point is never worse than its start. Values and gradients that are not finite are as if they were not met.

    Args:
      value_and_gradient: of S independent points at once.
      start: f[S, P], inside the box.
      low: f[P], the box's lower bounds.
      high: f[P], its upper bounds.
      steps: points that are evaluated after each start, at most.
      reach: the most that a step changes a coordinate by.
      tolerance: a search ends where less improvement than that is predicted.
      movable: bool[S, P]: coordinates that may change; all by default.

    Example:
      >>> bowl = lambda x: (-jnp.sum((x - 2.0) ** 2, axis=1), -2.0 * (x - 2.0))
      >>> box = {"low": jnp.zeros(2), "high": jnp.array([1.0, 5.0])}
      >>> found = maximise_in_box(bowl, jnp.zeros((1, 2)), **box, steps=9, reach=1.0, tolerance=1e-6)
      >>> found.points.round(3).tolist()
      [[1.0, 2.0]]
    """
    free_to_move = jnp.ones(start.shape, bool) if movable is None else movable
    identity = jnp.broadcast_to(jnp.eye(start.shape[1], dtype=start.dtype), (*start.shape, start.shape[1]))
    low, high = (jnp.broadcast_to(bound, start.shape) for bound in (low, high))

    def evaluate(points: Array) -> tuple[Array, Array]:
        value, gradient = value_and_gradient(points)
        usable = free_to_move & jnp.isfinite(gradient)
        return jnp.where(jnp.isfinite(value), -value, jnp.inf), jnp.where(usable, -gradient, 0.0)

    def aim(search: _Search) -> _Search:
        """The next direction; a plain one goes a tenth of the way that it may."""
        point, gradient = search.point, search.gradient
        stopped = ((point <= low) & (gradient > 0.0)) | ((point >= high) & (gradient < 0.0))
        gradient = jnp.where(stopped, 0.0, gradient)
        direction = jnp.where(stopped, 0.0, -_product(search.inverse, gradient))
        longest = jnp.max(jnp.abs(direction), axis=1)
        limit = jnp.where(search.plain, 0.1, 1.0) * reach
        wanted = jnp.where(search.plain, limit, jnp.minimum(longest, limit))
        direction = direction * jnp.where(longest > 0.0, wanted / jnp.where(longest > 0.0, longest, 1.0), 0.0)[:, None]
        done = search.done | (_dot(gradient, direction) > -tolerance * jnp.where(search.plain, 1e-3, 1.0))
        return search._replace(direction=direction, share=jnp.ones_like(search.share), done=done)

    def turn(search: _Search) -> _Search:
        trial = jnp.clip(search.point + search.share[:, None] * search.direction, low, high)
        trial = jnp.where(free_to_move, trial, search.point)
        loss, gradient = evaluate(trial)
        step = trial - search.point
        predicted = jnp.minimum(_dot(search.gradient, step), 0.0)
        better = (loss < search.loss) & (loss <= search.loss + _SUFFICIENT * predicted) & ~search.done
        inverse, plain = _updated(search.inverse, search.plain, step, gradient - search.gradient)
        moved = aim(search._replace(point=trial, loss=loss, gradient=gradient, inverse=inverse, plain=plain))
        shorter = search._replace(share=0.3 * search.share)
        # Steepest ascent once more, unless it was that which failed.
        failed = shorter.share < _SHORTEST
        reset = aim(search._replace(inverse=identity, plain=jnp.ones_like(search.plain)))
        reset = reset._replace(done=reset.done | search.plain)
        return _choose(better, moved, _choose(failed, reset, shorter))

    def goes_on(carry: tuple[Array, Array, _Search]) -> Array:
        return (carry[0] <= steps) & ~jnp.all(carry[2].done)

    def next_turn(carry: tuple[Array, Array, _Search]) -> tuple[Array, Array, _Search]:
        i, first, search = carry
        search = turn(search)
        return i + 1, jnp.where(i == 0, search.loss, first), search

    # The first turn evaluates the starts, as a step of no length: the function is compiled once.
    unknown = jnp.full(start.shape[:1], jnp.inf, start.dtype)
    none, never = jnp.zeros_like(unknown), jnp.zeros(unknown.shape, bool)
    nowhere = jnp.zeros_like(start)
    search = _Search(start, unknown, nowhere, identity, ~never, nowhere, none, never)
    _, first, search = lax.while_loop(goes_on, next_turn, (jnp.int32(0), unknown, search))
    return Maxima(search.point, -search.loss, -first)


def _updated(inverse: Array, plain: Array, step: Array, change: Array) -> tuple[Array, Array]:
    """The inverse Hessian by the change of the gradient over a step (equation 6.17), where the loss curves upwards."""
    curvature, squares = _dot(step, change), _dot(change, change)
    size = jnp.sqrt(_dot(step, step) * squares)
    curved = (curvature > 1e-8 * size) & (size > 0.0) & jnp.isfinite(size)
    curvature = jnp.where(curved, curvature, 1.0)
    scale = jnp.where(plain, curvature / jnp.where(curved, squares, 1.0), 1.0)
    inverse = inverse * scale[:, None, None]
    product = _product(inverse, change)
    both = step[:, :, None] * product[:, None, :] + product[:, :, None] * step[:, None, :]
    factor = (1.0 + _dot(change, product) / curvature) / curvature
    found = inverse - both / curvature[:, None, None] + factor[:, None, None] * step[:, :, None] * step[:, None, :]
    kept = curved & jnp.all(jnp.isfinite(found), axis=(1, 2))
    return jnp.where(kept[:, None, None], found, inverse / scale[:, None, None]), plain & ~kept


def _product(matrices: Array, vectors: Array) -> Array:
    """f[S, P, P] and f[S, P] -> f[S, P]; not as a product, whose factors an accelerator would round."""
    return jnp.sum(matrices * vectors[:, None, :], axis=2)


def _dot(a: Array, b: Array) -> Array:
    return jnp.sum(a * b, axis=1)


def _choose(where: Array, one: _Search, other: _Search) -> _Search:
    """One search where bool[S], elsewhere the other."""
    return jax.tree.map(lambda a, b: jnp.where(where.reshape(-1, *[1] * (a.ndim - 1)), a, b), one, other)
