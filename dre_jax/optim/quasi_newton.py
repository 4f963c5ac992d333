"""Maximisation in a box by projected BFGS from a batch of starts (Nocedal and Wright 2006, section 6.1).

The approximation of the inverse Hessian is dense, because there are few coordinates. A step does not change coordinates
whose bound is active (Bertsekas 1982). One iteration evaluates one point for every start. A step without a sufficient
improvement is shortened in the next iteration, so that starts do not wait for each other's line searches.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float

_SUFFICIENT = 1e-4  # share of the predicted improvement that a step must make (Armijo)
_SHORTEST = 1e-3  # share of a step; if a shorter one is needed, the approximate Hessian is reset

ValueAndGradient = Callable[[Float[Array, "S P"]], tuple[Float[Array, " S"], Float[Array, "S P"]]]
"""Maps points to values and gradients."""


class Maxima(NamedTuple):
    """Results of S searches."""

    points: Float[Array, "S P"]
    """The best points."""
    values: Float[Array, " S"]
    """The values there."""
    first: Float[Array, " S"]
    """The values of the starts; -inf if not finite."""


class _Search(NamedTuple):
    point: Float[Array, "S P"]
    """The best points so far."""
    loss: Float[Array, " S"]
    gradient: Float[Array, "S P"]
    """Gradient of the loss; 0 for fixed coordinates."""
    inverse: Float[Array, "S P P"]
    """Approximate inverse Hessian."""
    is_identity: Bool[Array, " S"]
    """Whether `inverse` is still the identity."""
    direction: Float[Array, "S P"]
    share: Float[Array, " S"]
    """Share of the direction of the next step."""
    is_done: Bool[Array, " S"]
    """Whether the search has ended."""


def maximise_in_box(
    value_and_gradient: ValueAndGradient,
    start: Float[Array, "S P"],
    low: Float[Array, "*#searches P"],
    high: Float[Array, "*#searches P"],
    *,
    steps: int,
    reach: float,
    tolerance: float,
    movable: Bool[Array, "S P"] | None = None,
) -> Maxima:
    """Returns the best points of projected BFGS.

    A point is never worse than its start. Points with a value that is not finite are rejected; elements of a gradient
    that are not finite count as 0.

    Args:
      value_and_gradient: values and gradients of S independent points.
      start: inside the box.
      low: lower bounds, of all searches or of each.
      high: upper bounds, as `low`.
      steps: maximum number of points evaluated after each start.
      reach: the largest change of a coordinate in a step.
      tolerance: a search ends if the predicted improvement is smaller.
      movable: coordinates that may change; all by default.
    """
    free_to_move = jnp.ones(start.shape, bool) if movable is None else movable
    identity = jnp.broadcast_to(jnp.eye(start.shape[1], dtype=start.dtype), (*start.shape, start.shape[1]))
    low, high = (jnp.broadcast_to(bound, start.shape) for bound in (low, high))

    def evaluate(points: Array) -> tuple[Array, Array]:
        value, gradient = value_and_gradient(points)
        usable = free_to_move & jnp.isfinite(gradient)
        return jnp.where(jnp.isfinite(value), -value, jnp.inf), jnp.where(usable, -gradient, 0.0)

    def choose_direction(search: _Search) -> _Search:
        """Returns the search with its next direction, which is steepest ascent of a tenth of `reach` at first."""
        point, gradient = search.point, search.gradient
        active = ((point <= low) & (gradient > 0.0)) | ((point >= high) & (gradient < 0.0))
        gradient = jnp.where(active, 0.0, gradient)
        direction = jnp.where(active, 0.0, -_product(search.inverse, gradient))
        longest = jnp.max(jnp.abs(direction), axis=1)
        limit = jnp.where(search.is_identity, 0.1, 1.0) * reach
        target = jnp.where(search.is_identity, limit, jnp.minimum(longest, limit))
        direction = direction * jnp.where(longest > 0.0, target / jnp.where(longest > 0.0, longest, 1.0), 0.0)[:, None]
        is_done = search.is_done | (_dot(gradient, direction) > -tolerance * jnp.where(search.is_identity, 1e-3, 1.0))
        return search._replace(direction=direction, share=jnp.ones_like(search.share), is_done=is_done)

    def iterate(search: _Search) -> _Search:
        trial = jnp.clip(search.point + search.share[:, None] * search.direction, low, high)
        trial = jnp.where(free_to_move, trial, search.point)
        loss, gradient = evaluate(trial)
        step = trial - search.point
        predicted_change = jnp.minimum(_dot(search.gradient, step), 0.0)
        better = (loss < search.loss) & (loss <= search.loss + _SUFFICIENT * predicted_change) & ~search.is_done
        inverse, is_identity = _update_inverse(search.inverse, search.is_identity, step, gradient - search.gradient)
        next_search = choose_direction(
            search._replace(point=trial, loss=loss, gradient=gradient, inverse=inverse, is_identity=is_identity)
        )
        shorter = search._replace(share=0.3 * search.share)
        # Reset to steepest ascent, unless steepest ascent has failed.
        is_failed = shorter.share < _SHORTEST
        reset = choose_direction(search._replace(inverse=identity, is_identity=jnp.ones_like(search.is_identity)))
        reset = reset._replace(is_done=reset.is_done | search.is_identity)
        return _select(better, next_search, _select(is_failed, reset, shorter))

    def has_work(carry: tuple[Array, Array, _Search]) -> Array:
        return (carry[0] <= steps) & ~jnp.all(carry[2].is_done)

    def next_iteration(carry: tuple[Array, Array, _Search]) -> tuple[Array, Array, _Search]:
        i, first, search = carry
        search = iterate(search)
        return i + 1, jnp.where(i == 0, search.loss, first), search

    # The first iteration evaluates the starts as a step of length zero, so that the function is compiled once.
    unknown = jnp.full(start.shape[:1], jnp.inf, start.dtype)
    none, never = jnp.zeros_like(unknown), jnp.zeros(unknown.shape, bool)
    nowhere = jnp.zeros_like(start)
    search = _Search(start, unknown, nowhere, identity, ~never, nowhere, none, never)
    _, first, search = lax.while_loop(has_work, next_iteration, (jnp.int32(0), unknown, search))
    return Maxima(search.point, -search.loss, -first)


def _update_inverse(
    inverse: Float[Array, "S P P"],
    is_identity: Bool[Array, " S"],
    step: Float[Array, "S P"],
    change: Float[Array, "S P"],
) -> tuple[Float[Array, "S P P"], Bool[Array, " S"]]:
    """Returns the BFGS update of the inverse Hessian (equation 6.17), if the curvature along the step is positive."""
    curvature, squares = _dot(step, change), _dot(change, change)
    size = jnp.sqrt(_dot(step, step) * squares)
    has_curvature = (curvature > 1e-8 * size) & (size > 0.0) & jnp.isfinite(size)
    curvature = jnp.where(has_curvature, curvature, 1.0)
    scale = jnp.where(is_identity, curvature / jnp.where(has_curvature, squares, 1.0), 1.0)
    inverse = inverse * scale[:, None, None]
    product = _product(inverse, change)
    cross_terms = step[:, :, None] * product[:, None, :] + product[:, :, None] * step[:, None, :]
    factor = (1.0 + _dot(change, product) / curvature) / curvature
    update = (
        inverse - cross_terms / curvature[:, None, None] + factor[:, None, None] * step[:, :, None] * step[:, None, :]
    )
    is_updated = has_curvature & jnp.all(jnp.isfinite(update), axis=(1, 2))
    return jnp.where(is_updated[:, None, None], update, inverse / scale[:, None, None]), is_identity & ~is_updated


def _product(matrices: Float[Array, "S P P"], vectors: Float[Array, "S P"]) -> Float[Array, "S P"]:
    """Returns matrix-vector products, with inputs that accelerators do not round."""
    return jnp.sum(matrices * vectors[:, None, :], axis=2)


def _dot(a: Float[Array, "S P"], b: Float[Array, "S P"]) -> Float[Array, " S"]:
    return jnp.sum(a * b, axis=1)


def _select(where: Bool[Array, " S"], first: _Search, second: _Search) -> _Search:
    """Returns the first search where ``where`` holds, the second elsewhere."""
    return jax.tree.map(lambda a, b: jnp.where(where.reshape(-1, *[1] * (a.ndim - 1)), a, b), first, second)
