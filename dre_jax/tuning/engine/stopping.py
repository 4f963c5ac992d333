"""When a search ends because little is left to gain."""

import math
from collections.abc import Mapping, Sequence

PATIENCE = 10
"""Number of suggestions of little expected improvement after which a search ends."""


def gains_little(improvements: Sequence[float], losses: Mapping[int, float], n_trials: int, threshold: float) -> bool:
    """Returns whether the latest ten suggestions were expected to gain less than a threshold, and gained less.

    Args:
      improvements: expected improvements of the latest suggestions, infinite where unknown.
      losses: values of the complete, feasible trials by their numbers, lower is better.
      n_trials: number of all trials.
      threshold: in units of the values.

    Example:
      >>> gains_little([0.01] * 10, {0: 3.0, 9: 2.5, 11: 2.45}, 12, 0.1)
      False
      >>> gains_little([0.01] * 10, {0: 2.5, 9: 2.5, 11: 2.45}, 12, 0.1)
      True
    """
    latest = improvements[-PATIENCE:]
    return len(latest) == PATIENCE and max(latest) < threshold and _latest_gain(losses, n_trials) < threshold


def _latest_gain(losses: Mapping[int, float], n_trials: int) -> float:
    """Returns how much better the best value is than that of all trials but the last ten."""
    best = min(losses.values(), default=math.inf)
    first = min((loss for number, loss in losses.items() if number < n_trials - PATIENCE), default=best)
    return 0.0 if first == best else first - best  # of infinite ones too
