"""The next point of a sequence that fills the space, where no method chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.suggest.candidates import canonicalize
from dre_jax.tuning.suggestion.information import feasible_trials
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState

SEQUENCE = 256
"""Points of a Sobol sequence that fills the space."""
_IDENTICAL = 1e-9
"""Maximum distance of the numbers of a configuration, in every coordinate."""
_FORBIDDEN = 3
"""What is added to the ranks of points that the rules forbid."""
_MAX_ENUMERATION = 4096
"""Number of configurations of a space up to which all are listed."""


def space_filling_point(
    config: StudyConfig,
    state: StudyState,
    points: Float[AnyArray, "N P"],
    is_exact: Callable[[Any], bool] | None,
    fixed: Float[AnyArray, " P"] | None,
    *,
    avoids_failures: Bool[AnyArray, ""],
) -> tuple[Float[AnyArray, " P"], Bool[AnyArray, ""]]:
    """Returns the first new one of the points, or any new point of a small space, and whether it is new.

    With ``avoids_failures``, points whose nearest trial failed come last. If all have been evaluated, the point is
    one that is not pending. ``fixed`` are coordinates that all points have, NaN for the others; for ``is_exact`` see
    `first_allowed`.
    """
    xp, feasible = namespace(state.points), feasible_trials(state)
    violates = state.in_space & ~feasible & xp.any(feasible)
    outcomes = (
        xp.concatenate([state.points, state.failures]),
        xp.concatenate([feasible, xp.zeros_like(state.has_failed)]),
        xp.concatenate([violates, state.has_failed]),
    )
    order = order_by_outcome(canonicalize(config.layout, points), *outcomes, config.failed_radius)
    points = xp.where(avoids_failures, points[order], points)
    if config.layout.size <= _MAX_ENUMERATION:
        points = xp.concatenate([points, xp.asarray(config.layout.all_points(), points.dtype)])
    if fixed is not None:
        points = xp.where(xp.isnan(fixed)[None, :], points, fixed[None, :])
    points = config.layout.round_to_values(points)
    # The first of all that are new, else of those that are not pending, else of all.
    is_pending = _is_near(points, state.points, state.pending)
    is_known = is_known_point(state, points)
    rank = xp.where(is_known, xp.where(is_pending, 2, 1), 0)
    first, _ = first_allowed(config, rank, points, is_exact)
    return points[first], ~is_known[first]


def first_allowed(
    config: StudyConfig,
    rank: Int[AnyArray, " N"],
    points: Float[AnyArray, "N P"],
    is_exact: Callable[[Any], bool] | None,
) -> tuple[Int[AnyArray, ""], Bool[AnyArray, " N"]]:
    """Returns the first point of the least rank among those that the rules allow, and which these are.

    ``is_exact`` returns whether the rules allow the configuration at a point, too. A configuration takes a tenth of a
    millisecond, so only the first one is made, and others where that one is refused. None inside of programs.
    """
    is_allowed, xp = config.layout.is_allowed(points), namespace(points)
    while True:
        first = xp.argmin(xp.where(is_allowed, rank, rank + _FORBIDDEN))
        if is_exact is None or not is_allowed[first] or is_exact(points[first]):
            return first, is_allowed
        is_allowed[first] = False


def is_known_point(state: StudyState, points: Float[AnyArray, "N P"]) -> Bool[AnyArray, " N"]:
    """Returns which points have been evaluated, failed, or are pending."""
    is_trial, has_failed = state.where | state.pending, state.has_failed
    return _is_near(points, state.points, is_trial) | _is_near(points, state.failures, has_failed)


def _is_near(
    points: Float[AnyArray, "N P"], trials: Float[AnyArray, "C P"], where: Bool[AnyArray, " C"]
) -> Bool[AnyArray, " N"]:
    """Returns which points are among the trials in filled slots."""
    apart = abs(points[:, None] - trials[None]).max(axis=-1)
    return ((apart < _IDENTICAL) & where[None, :]).any(axis=1)


def order_by_outcome(
    points: Float[AnyArray, "N P"],
    trials: Float[AnyArray, "n P"],
    succeeded: Bool[AnyArray, " n"],
    failed: Bool[AnyArray, " n"],
    radius: float,
) -> Int[AnyArray, " N"]:
    """Returns an order of points: first those whose nearest trial is a success, then the others.

    Trials with a value that satisfy all constraints have succeeded; those that failed or violate constraints have
    failed; the others do not count. A point within the radius of a failure, in every coordinate, counts as one.
    Without a success, only these points come last. Both groups keep their order.
    """
    xp = namespace(points)
    apart = xp.abs(points[:, None] - trials[None])

    def nearest(distance: Any, mask: Any) -> Any:
        return xp.min(xp.where(mask[None, :], distance, xp.inf), axis=1, initial=np.inf)

    squared = xp.sum(apart**2, axis=-1)
    is_failure = (nearest(squared, failed) < nearest(squared, succeeded)) & xp.any(succeeded)
    return xp.argsort(is_failure | (nearest(xp.max(apart, axis=-1), failed) <= radius), stable=True)
