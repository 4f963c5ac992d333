"""Trials whose values say nothing of where better ones are: the search then fills the space evenly.

While all values are equal (chance accuracy, a capped loss), the only content of an acquisition function is the
posterior's deviation, which is greatest at the boundary: the search would try corners and edges. The same holds if one
or two trials are worse than all others, since they only say where not to search. If one or two are better, or if most
trials share the best value, every other pair of trials fills the space.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_ROUNDING = 1e-12
"""Relative size of differences that sums in another order leave."""
_FEW = 2
"""Trials that differ from all others, of which a model cannot tell noise from signal."""


def even_share(values: Floats) -> float:
    """Returns the share of the next trials that fill the space evenly: 1, 0.5 or 0.

    Args:
      values: f64[n, M] of M objectives, higher is better, n > 0. One objective with information is enough.

    Example:
      >>> [even_share(np.array([column]).T) for column in ([3.0, 3.0, 3.0], [3.0, 3.0, 4.0], [3.0, 4.0, 5.0])]
      [1.0, 0.5, 0.0]
    """
    return min(map(_even_share_of, values.T))


def _even_share_of(values: Floats) -> float:
    if np.isnan(values).any():
        return 0.0  # for the method to refuse
    levels, counts = np.unique(_without_rounding(values), return_counts=True)
    most_common = int(np.argmax(counts))
    if 2 * counts[most_common] <= len(values):
        return 1.0 if len(values) == 1 else 0.0
    differ_few, is_best = len(values) - counts[most_common] <= _FEW, most_common == len(levels) - 1
    return 1.0 if differ_few and is_best else 0.5 if differ_few or is_best else 0.0


def _without_rounding(values: Floats) -> Floats:
    """Returns values of which those that differ by rounding errors are equal."""
    finite = np.isfinite(values)
    size = float(np.abs(values[finite]).max(initial=0.0))
    is_flat = finite.any() and np.ptp(values[finite] / (size or 1.0)) <= _ROUNDING
    return np.where(finite, size, values) if is_flat else values


def order_by_outcome(points: Floats, successes: Floats, failures: Floats, radius: float) -> npt.NDArray[np.intp]:
    """Returns an order i64[N] of points f64[N, P]: first those whose nearest trial is a success, then the others.

    Args:
      points: in an order that stays among both.
      successes: f64[n, P], points of trials.
      failures: f64[m, P], points of trials that failed, or are infeasible.
      radius: distance in every coordinate up to which a point counts as a failure.
    """
    from scipy.spatial.distance import cdist  # which takes a tenth of a second

    nearest_success, nearest_failure = (
        cdist(points, others).min(axis=1, initial=np.inf) for others in (successes, failures)
    )
    step = cdist(points, failures, "chebyshev").min(axis=1, initial=np.inf)
    is_failure = (step <= radius) | ((nearest_failure < nearest_success) & (len(successes) > 0))
    return np.argsort(is_failure, kind="stable")
