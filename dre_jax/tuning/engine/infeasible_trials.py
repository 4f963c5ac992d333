"""The rule that ranks trials that violate constraints below all others, in past studies and in the current one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_MAX = 1e300  # so that the span of values is finite


def violation_of(trial: Any) -> float:
    """Returns the sum of the constraints that a trial violates; 0 if it satisfies all, or has none.

    Constraints are at most 0 where they are satisfied, as those of this library and of Optuna.

    Example:
      >>> from dre_jax.tuning import Evaluated
      >>> violation_of(Evaluated({"x": 0.5}, 2.0, constraints={"memory": 3.0, "latency": -1.0}))
      3.0
    """
    return float(sum(value for value in (getattr(trial, "constraints", None) or {}).values() if value > 0))


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


def rank_like_past(
    surrogate: Any, trials: Sequence[Any], responses: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Returns responses f64[n] of trials, with infeasible ones ranked like those of the surrogate's past, if any."""
    if surrogate is None or not surrogate.constrained:
        return responses
    return rank_infeasible_last(responses, np.array([violation_of(trial) for trial in trials], np.float64))
