"""Responses of trials, higher is better: finite, without far outliers, and those that violate constraints last."""

from typing import Any

import numpy as np

from dre_jax.errors import DataError
from dre_jax.runtime.arrays import namespace

REACH = 5.0
"""Bound of responses below the median, in distances from the median to the best."""
_MAX = 1e300
"""Maximum size of a response: sums of larger numbers may overflow."""
_MAX_SINGLE = 1e36
"""The same in float32."""
_MAX_RELATIVE_ERROR = 1e3


def check_numbers(responses: np.ndarray) -> None:
    """Raises `DataError` if a response f64[n] is NaN."""
    if np.isnan(responses).any():
        raise DataError("a response must be a number, but got NaN")


def clip_responses(responses: Any, where: Any = None) -> Any:
    """Returns finite responses f64[n], higher is better, none far below the others; of NumPy or JAX.

    ``where`` bool[n] are those that count, by default all.

    A diverged training may give a loss of 1e12 or infinity, which would make all other responses equal on a scale of
    [0, 1]. The lower bound is the median minus five times the distance from the median to the best; infinite responses
    are set a tenth of the range beyond the others. `History.level` keeps the order of clipped responses.

    Example:
      >>> clip_responses(np.array([1.0, 2.0, 3.0, -1e12, -np.inf])).tolist()
      [1.0, 2.0, 3.0, -6.0, -6.9]
    """
    if not len(responses):
        return responses
    limit, xp = _limit(responses), namespace(responses)
    finite = xp.isfinite(responses) if where is None else xp.isfinite(responses) & where
    n = xp.sum(finite)
    bounded_responses = xp.clip(responses, -limit, limit)
    values = xp.sort(xp.where(finite, bounded_responses, limit))
    middle = 0.5 * (values[xp.maximum(n - 1, 0) // 2] + values[xp.minimum(n // 2, len(values) - 1)])
    best, least = values[xp.maximum(n - 1, 0)], values[0]
    low = xp.where(best > middle, xp.maximum(least, middle - REACH * (best - middle)), least)
    tenth = xp.where(best > low, (best - low) / 10.0, 1.0)
    beyond = xp.where(responses > 0, best + tenth, low - tenth)
    clipped_responses = xp.where(finite, xp.maximum(bounded_responses, low), beyond)
    return xp.where(n > 0, clipped_responses, xp.where(responses > 0, 1.0, 0.0))


def relative_errors(errors: Any, responses: Any, where: Any = None) -> Any:
    """Returns standard errors f[n] on the scale on which the responses f[n] have the range 1, at most 1000.

    ``where`` bool[n] are those that count, by default all.

    Example:
      >>> relative_errors(np.array([0.5, 1.0]), np.array([0.0, 5e-324])).tolist()
      [1000.0, 1000.0]
    """
    xp = namespace(responses)
    where = xp.ones(len(responses), bool) if where is None else where
    high, low = xp.max(xp.where(where, responses, -xp.inf)), xp.min(xp.where(where, responses, xp.inf))
    spread = xp.where(high > low, high - low, 1.0)
    return xp.where(where, xp.minimum(errors, _MAX_RELATIVE_ERROR * spread) / spread, 0.0)


def violation_of(trial: Any) -> float:
    """Returns the sum of the constraints that a trial violates; 0 if it satisfies all, or has none.

    Constraints are at most 0 where they are satisfied, as those of this library and of Optuna.

    Example:
      >>> from dre_jax.tuning import Evaluated
      >>> violation_of(Evaluated({"x": 0.5}, 2.0, constraints={"memory": 3.0, "latency": -1.0}))
      3.0
    """
    return float(sum(value for value in (getattr(trial, "constraints", None) or {}).values() if value > 0))


def capped_responses(responses: Any, feasible: Any) -> Any:
    """Returns responses f[n], higher is better; the best one is that of the best feasible trial, bool[n].

    The improvement is then one on this trial for every method. Better responses of infeasible trials become the next
    lower number. Without a feasible trial, the responses are unchanged.
    """
    xp = namespace(responses)
    best = xp.max(xp.where(feasible, responses, -xp.inf), initial=-xp.inf)
    capped = xp.where(feasible, responses, xp.minimum(responses, xp.nextafter(best, -xp.inf)))
    return xp.where(xp.any(feasible), capped, responses)


def rank_infeasible_last(responses: Any, violations: Any, where: Any = None) -> Any:
    """Returns responses with those that violate constraints below all others, the larger the violation the lower.

    Both are f[n]; violations are sums of violated constraints, 0 where all are satisfied. ``where`` bool[n] are the
    trials that count, by default all.
    """
    xp = namespace(responses)
    where = xp.ones(len(responses), bool) if where is None else where
    feasible, n = where & (violations <= 0), xp.maximum(xp.sum(where, dtype=responses.dtype), 1.0)
    finite, limit = feasible & xp.isfinite(responses), _limit(responses)
    bounded = xp.clip(responses, -limit, limit)
    any_finite = xp.any(finite)
    low = xp.where(any_finite, xp.min(xp.where(finite, bounded, xp.inf), initial=xp.inf), 0.0)
    high = xp.where(any_finite, xp.max(xp.where(finite, bounded, -xp.inf), initial=-xp.inf), 0.0)
    span = xp.maximum(high - low, 1e-9 * xp.maximum(xp.abs(low), xp.abs(high)))
    span = xp.where(span > 0, span, 1.0)
    rank = (dense_ranks(violations, where) - xp.any(feasible).astype(np.int32)).astype(responses.dtype)
    last = low - span * (2.0 + rank / n)
    ranked = xp.where(feasible, xp.clip(responses, low - span, high + span), last)
    return xp.where(xp.any(where & ~feasible), ranked, responses)


def dense_ranks(values: Any, where: Any) -> Any:
    """Returns the ranks i32[n] of values f[n] in slots bool[n], 0 the least, equal ones alike.

    Example:
      >>> dense_ranks(np.array([3.0, 1.0, 3.0, 0.0]), np.array([True, True, True, False]))[:3].tolist()
      [1, 0, 1]
    """
    xp = namespace(values)
    keys = xp.where(where, values, xp.inf)
    order = xp.argsort(keys, stable=True)
    ordered = keys[order]
    begins = xp.concatenate([xp.zeros(1, bool), ordered[1:] != ordered[:-1]])
    return xp.cumsum(begins, dtype=np.int32)[xp.argsort(order, stable=True)]


def medians(values: Any, where: Any) -> Any:
    """Returns the medians f[K] of the finite values f[n, K] in slots bool[n]; NaN without any."""
    xp = namespace(values)
    finite = where[:, None] & xp.isfinite(values)
    n = xp.sum(finite, axis=0, dtype=np.int32)
    ordered = xp.sort(xp.where(finite, values, xp.inf), axis=0)
    ends = [
        xp.take_along_axis(ordered, xp.clip(i, 0, len(values) - 1)[None, :], axis=0)[0] for i in ((n - 1) // 2, n // 2)
    ]
    return xp.where(n > 0, 0.5 * (ends[0] + ends[1]), xp.nan)


def _limit(responses: Any) -> float:
    return _MAX if responses.dtype == np.float64 else _MAX_SINGLE
