"""Trials whose values do not tell where better ones are: the search then fills the space evenly.

While all values are equal (chance accuracy, a capped loss), an acquisition function consists of the posterior's
deviation alone, which is greatest at the boundary: the search would try corners and edges. The same holds if one or two
trials are worse than all others, since they only tell where not to search. Without past tasks, it also holds if noise
alone explains the values better than a signal (`dre_jax.tuning.engine.signal`). If one or two trials are better, or if
most trials share the best value, every other pair of trials fills the space.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.tuning.engine.signal import has_signal
from dre_jax.tuning.objectives.single import N_START
from dre_jax.tuning.trials.responses import violation_of
from dre_jax.tuning.trials.trial import Trial

Floats = npt.NDArray[np.float64]

_ROUNDING = 1e-12
"""Relative size of differences that sums in another order leave."""
_FEW = 2
"""Number of trials with other values from which a model cannot tell a signal from noise."""
_LONG = 20
"""Number of trials without information after which the search expects no improvement."""
ENOUGH = 20
"""Number of trials that tell a signal from noise: with fewer, three waves in a coordinate look like noise."""


class Information(NamedTuple):
    """What the values of a study say."""

    space_filling_share: float
    """Share of the next trials that fill the space evenly."""
    is_plateau: bool
    """Whether the values are equal, or all but one or two that are worse."""
    is_long: bool
    """Whether at least 20 trials are on such a plateau."""


def information_of(trials: Sequence[Trial], points: Floats, values: Floats, *, has_past: bool) -> Information:
    """Returns the information in values f64[n, M], higher is better; without a feasible trial, in the violations.

    ``has_past`` is whether past tasks say where to search.
    """
    if len(trials) < (N_START if has_past else 1):
        return Information(0.0, is_plateau=False, is_long=False)
    feasible = np.array([trial.is_feasible for trial in trials])
    if feasible.any():
        points, values = points[feasible], values[feasible]
    else:
        values = -np.array([[violation_of(trial)] for trial in trials])
    share = space_filling_share(values)
    is_noise = not share and not has_past and len(values) >= ENOUGH and not np.isnan(values).any()
    is_noise = is_noise and not any(has_signal(points, column) for column in values.T)
    # Past tasks still say where to search while the values of this one say nothing.
    filling_share = 1.0 if is_noise else min(share, 0.5 if has_past else 1.0)
    return Information(filling_share, is_plateau=share == 1.0, is_long=len(values) >= _LONG)


def space_filling_share(values: Floats) -> float:
    """Returns the share of the next trials that fill the space evenly: 1, 0.5 or 0.

    The values f64[n, M], n > 0, are those of M objectives, higher is better. One objective with information is enough.
    """
    return min(map(_share_of_objective, values.T))


def _share_of_objective(values: Floats) -> float:
    if np.isnan(values).any():
        return 0.0  # for the method to refuse
    levels, counts = np.unique(without_rounding(values), return_counts=True)
    most_common = int(np.argmax(counts))
    return float(share_of_counts(len(values), counts[most_common], most_common == len(levels) - 1))


def share_of_counts(n: Any, n_equal: Any, is_best: Any, xp: Any = np) -> Any:
    """Returns the share of the next trials that fill the space evenly, with NumPy or JAX as `xp`.

    ``n_equal`` of n > 0 values have the most common value, and ``is_best`` is whether that is the best one.
    """
    differ_few = n - n_equal <= _FEW
    share = xp.where(differ_few & is_best, 1.0, xp.where(differ_few | is_best, 0.5, 0.0))
    return xp.where(2 * n_equal <= n, xp.where(n == 1, 1.0, 0.0), share)


def without_rounding(values: Any, xp: Any = np) -> Any:
    """Returns values where those that differ only by rounding errors are equal; infinite values do not count."""
    finite = xp.isfinite(values)
    size = xp.max(xp.where(finite, xp.abs(values), 0.0))
    relative = values / xp.where(size > 0.0, size, 1.0)
    spread = xp.max(xp.where(finite, relative, -xp.inf)) - xp.min(xp.where(finite, relative, xp.inf))
    return xp.where(finite & (spread <= _ROUNDING), size, values)


def order_by_outcome(points: Any, trials: Any, succeeded: Any, failed: Any, radius: float, xp: Any = np) -> Any:
    """Returns an order i[N] of points f[N, P]: first those whose nearest trial is a success, then the others.

    Trials f[n, P] with a value that satisfy all constraints have succeeded; those that failed or violate constraints
    have failed; the others do not count. A point within the radius of a failure, in every coordinate, counts as one.
    Without a success, only these points come last. Both groups keep their order.
    """
    apart = xp.abs(points[:, None] - trials[None])

    def nearest(distance: Any, mask: Any) -> Any:
        return xp.min(xp.where(mask[None, :], distance, xp.inf), axis=1, initial=xp.inf)

    squared = xp.sum(apart**2, axis=-1)
    is_failure = (nearest(squared, failed) < nearest(squared, succeeded)) & xp.any(succeeded)
    return xp.argsort(is_failure | (nearest(xp.max(apart, axis=-1), failed) <= radius), stable=True)
