"""Ranks of learning curves: how far behind the best past trials were, and whether a running trial is farther.

In a study of random trials, ranks do not depend on units, on the model or on the data. In a study that converges, later
trials are better than earlier ones: a trial can be better than most random trials although many others are ahead.
"""

from collections.abc import Sequence

import numpy as np

from dre_jax.tuning.past.curves import Curve


def rank_rises(curves: np.ndarray) -> np.ndarray:
    """Returns by how much, at most, the share of better curves was above that at the last step, f64[n] of f64[n, G]."""
    shares = (curves[:, None, :] < curves).sum(1) / max(len(curves) - 1, 1)
    return np.asarray((shares - shares[:, -1:]).max(-1))


def lags(curve: Curve, curves: Sequence[Curve], share: float, margin: int) -> bool:
    """Returns whether a curve is behind more curves at its last step than a share of random ones and a margin allow.

    ``curves`` are the other curves, in order. A curve that ends before the step is behind. The margin is a number of
    curves.
    """
    step = max(curve)
    values = np.array([_value(other, step) if max(other) >= step else -np.inf for other in curves])
    n_ahead = np.count_nonzero(values > _value(curve, step))
    return bool(n_ahead > margin + (1.0 - (1.0 - share) ** _best_of(values)) * len(curves))


def _best_of(values: np.ndarray) -> float:
    """Returns k >= 1: the best of k random values beats a value as often as a later value beats an earlier one."""
    later, earlier = np.tril_indices(len(values), -1)
    later, earlier = values[later], values[earlier]
    share = np.mean((later > earlier) + (later == earlier) / 2) if len(later) else 0.5
    return max(1.0, share / (1.0 - share)) if share < 1.0 else np.inf


def _value(curve: Curve, step: float) -> float:
    value = curve[step] if step in curve else float(np.interp(step, list(curve), list(curve.values())))
    return -np.inf if np.isnan(value) else value
