"""Responses of trials, higher is better: finite, without far outliers, and those that violate constraints last."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.runtime.arrays import namespace

REACH = 5.0
"""Bound of responses below the median, in distances from the median to the best."""
_MAX = 1e300
"""Maximum size of a response: sums of larger numbers may overflow."""
_MAX_SINGLE = 1e36
"""The same in float32."""
_MAX_RELATIVE_ERROR = 1e3


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
    xp = namespace(responses)
    finite = xp.isfinite(responses) if where is None else xp.isfinite(responses) & where
    n, limit = xp.sum(finite), _MAX if responses.dtype == np.float64 else _MAX_SINGLE
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


def capped_responses(responses: npt.NDArray[np.float64], feasible: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Returns responses f64[n], higher is better; the best one is that of the best feasible trial.

    The improvement is then one on this trial for every method. Better responses of infeasible trials become the next
    lower number. Without a feasible trial, the responses are unchanged.
    """
    mask = np.asarray(feasible, bool)
    if mask.all() or not mask.any():
        return responses
    best = responses[mask].max()
    return np.where(mask, responses, np.minimum(responses, np.nextafter(best, -np.inf)))


def rank_infeasible_last(
    responses: npt.NDArray[np.float64], violations: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Returns responses with those that violate constraints below all others, the larger the violation the lower.

    Both are f64[n]; violations are sums of violated constraints, 0 where all are satisfied.
    """
    feasible = violations <= 0
    if feasible.all():
        return responses
    finite = responses[feasible & np.isfinite(responses)].clip(-_MAX, _MAX)
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    span = max(high - low, 1e-9 * max(abs(low), abs(high))) or 1.0
    rank = np.unique(violations, return_inverse=True)[1] - int(feasible.any())
    return np.where(feasible, np.clip(responses, low - span, high + span), low - span * (2.0 + rank / len(responses)))
