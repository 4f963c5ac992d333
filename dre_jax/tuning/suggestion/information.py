"""Trials whose values do not tell where better ones are: the search then fills the space evenly.

While all values are equal (chance accuracy, a capped loss), an acquisition function consists of the posterior's
deviation alone, which is greatest at the boundary: the search would try corners and edges. The same holds if one or two
trials are worse than all others, since they only tell where not to search. Without past tasks, it also holds if noise
alone explains the values better than a signal (`dre_jax.tuning.suggestion.signal`). If one or two trials are better, or
if most trials share the best value, every other pair of trials fills the space.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dre_jax.runtime.arrays import AnyArray, branch, namespace
from dre_jax.tuning.objectives.single import N_START
from dre_jax.tuning.suggestion.signal import has_signal
from dre_jax.tuning.suggestion.state import StudyState

_ROUNDING = 1e-12
"""Relative size of differences that sums in another order leave."""
_FEW = 2
"""Number of trials with other values from which a model cannot tell a signal from noise."""
_LONG = 20
"""Number of trials without information after which the search expects no improvement."""
_ENOUGH = 20
"""Number of trials that tell a signal from noise: with fewer, three waves in a coordinate look like noise."""


class Information(NamedTuple):
    """What the values of a study say."""

    space_filling_share: Float[AnyArray, ""]
    """Share of the next trials that fill the space evenly."""
    is_plateau: Bool[AnyArray, ""]
    """Whether the values are equal, or all but one or two that are worse."""
    is_long: Bool[AnyArray, ""]
    """Whether at least 20 trials are on such a plateau."""


def information_of(state: StudyState, *, has_past: bool) -> Information:
    """Returns the information in the values of feasible trials; without any, in the violations.

    ``has_past`` is whether past tasks say where to search.
    """
    where, values = _valued_trials(state)
    n, points = where.sum(dtype=np.int32), state.points
    shares = [space_filling_share(values[:, i], where) for i in range(values.shape[1])]
    xp = namespace(values)
    share = xp.min(xp.stack(shares))
    begins = state.n >= (N_START if has_past else 1)
    filling_share = xp.where(begins, share, 0.0)
    if has_past:  # past tasks still say where to search while the values of this one say nothing
        filling_share = xp.minimum(filling_share, 0.5)
    else:

        def is_noise() -> Any:
            return ~xp.any(xp.stack([has_signal(points, values[:, i], where) for i in range(values.shape[1])]))

        may_be_noise = begins & (share == 0.0) & (n >= _ENOUGH)
        filling_share = xp.where(branch(may_be_noise, is_noise, lambda: xp.zeros((), bool)), 1.0, filling_share)
    return Information(filling_share, begins & (share == 1.0), begins & (n >= _LONG))


def feasible_trials(state: StudyState) -> Bool[AnyArray, " C"]:
    """Returns the mask of the trials in the space with a value that are known to satisfy all constraints."""
    where = state.in_space
    return where if state.constraints is None else where & namespace(where).all(state.constraints <= 0, axis=1)


def _valued_trials(state: StudyState) -> tuple[Bool[AnyArray, " C"], Float[AnyArray, "C M"]]:
    """Returns the trials whose values count, and these values, higher is better."""
    where = feasible_trials(state)
    values = state.responses[:, None] if state.objectives is None else state.objectives
    if state.constraints is None:
        return where, values
    xp = namespace(values)
    any_feasible = xp.any(where)
    violation = xp.sum(xp.where(state.constraints > 0, state.constraints, 0.0), axis=1)
    values = xp.where(any_feasible, values, -violation[:, None])
    return xp.where(any_feasible, where, state.in_space), values


def space_filling_share(values: Float[AnyArray, " C"], where: Bool[AnyArray, " C"]) -> Float[AnyArray, ""]:
    """Returns the share of the next trials that fill the space evenly, 1, 0.5 or 0, of values, higher is better.

    ``where`` are the values that count; the share is 1 without any.
    """
    xp, n = namespace(values), where.sum(dtype=np.int32)
    ordered = xp.sort(_without_rounding(xp.where(where, values, xp.nan)))  # empty slots are last
    numbers = np.arange(len(values), dtype=np.int32)
    begins = xp.concatenate([xp.ones(1, bool), ordered[1:] != ordered[:-1]])
    length = numbers + 1 - xp.maximum.accumulate(xp.where(begins, numbers, 0))  # of equal values up to a slot
    length = xp.where(numbers < n, length, 0)
    n_equal, last = xp.max(length), xp.argmax(length)
    is_best = ordered[last] == ordered[xp.maximum(n - 1, 0)]
    differ_few = n - n_equal <= _FEW
    share = xp.where(differ_few & is_best, 1.0, xp.where(differ_few | is_best, 0.5, 0.0))
    return xp.where(2 * n_equal <= n, xp.where(n == 1, 1.0, 0.0), share)


def _without_rounding(values: Float[AnyArray, " C"]) -> Float[AnyArray, " C"]:
    """Returns values where those that differ only by rounding errors are equal; infinite values do not count."""
    xp = namespace(values)
    finite = xp.isfinite(values)
    size = xp.max(xp.where(finite, xp.abs(values), 0.0))
    relative = values / xp.where(size > 0.0, size, 1.0)
    spread = xp.max(xp.where(finite, relative, -xp.inf)) - xp.min(xp.where(finite, relative, xp.inf))
    return xp.where(finite & (spread <= _ROUNDING), size, values)
