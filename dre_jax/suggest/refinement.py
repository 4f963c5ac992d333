"""Refinement of candidates: local maximisation of a method's values by gradient, from several starts.

Only real numbers move, and only where they are active; all other hyperparameters keep their values.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from dre_jax.optim.quasi_newton import maximise_in_box
from dre_jax.search.method import Method, capabilities_of
from dre_jax.space.layout import SpaceLayout

_REACH = 0.2  # of a step, in each coordinate
_TOLERANCE = 1e-6  # least improvement of a value with which a search continues
_APART = (0.1, 0.01)  # distance of starts from each other, of the first half and of the second


def supports_refinement(method: Method, layout: SpaceLayout) -> bool:
    """Returns whether a method declares ``differentiable``, and there are real numbers that can move.

    Values of candidates then have a gradient, and each depends on its own configuration alone. Ranks have none.
    """
    return capabilities_of(method).differentiable and 0 in layout.sizes


def choose_starts(points: Float[Array, "N P"], values: Float[Array, " N"], count: int) -> Float[Array, "{count} P"]:
    """Returns points of high value with a minimum distance: 0.1 for the first half, 0.01 for the others.

    If no point is far enough from the earlier starts, the next start is the best point that is not among them.
    """

    def choose(distance: Array, apart: Array) -> tuple[Array, Array]:
        """Returns the distances f[N] from all starts chosen so far, and the next start."""
        far = jnp.where(distance > apart, values, -jnp.inf)
        other = jnp.where(distance > 0.0, values, -jnp.inf)
        best = points[jnp.argmax(jnp.where(jnp.any(far > -jnp.inf), far, other))]
        return jnp.minimum(distance, jnp.max(jnp.abs(points - best[None, :]), axis=1)), best

    apart = jnp.where(jnp.arange(count) < -(-count // 2), *_APART).astype(points.dtype)
    _, starts = lax.scan(choose, jnp.full_like(values, jnp.inf), apart)
    return starts


def refine(
    layout: SpaceLayout,
    rate: Callable[[Float[Array, "N P"]], Float[Array, " N"]],
    starts: Float[Array, "S P"],
    fixed_values: Float[Array, " P"] | None,
    steps: int,
    radius: float,
) -> tuple[Float[Array, "S P"], Float[Array, " S"]]:
    """Returns the best points of searches from S starts, within a radius in each coordinate, and their values.

    ``rate`` returns values of points, each of which depends on its own point alone. ``fixed_values`` are NaN where
    coordinates are searched.
    """

    def total(points: Array) -> tuple[Array, Array]:
        values = rate(points)
        return jnp.sum(values), values  # one gradient has those of all points

    def value_and_gradient(points: Array) -> tuple[Array, Array]:
        (_, values), gradient = jax.value_and_grad(total, has_aux=True)(points)
        return values, gradient

    real = jnp.asarray([size == 0 for size in layout.sizes])
    movable = real[None, :] & jnp.stack(layout.active(starts), axis=-1)
    if fixed_values is not None:
        movable &= jnp.isnan(fixed_values)[None, :]
    best = maximise_in_box(
        value_and_gradient,
        starts,
        jnp.maximum(starts - radius, 0.0),
        jnp.minimum(starts + radius, 1.0),
        steps=steps,
        reach=_REACH,
        tolerance=_TOLERANCE,
        movable=movable,
    )
    return best.points, best.values
