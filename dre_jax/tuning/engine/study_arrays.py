"""The trials of a study as arrays: what a suggestion reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dre_jax.search.history import coarse_capacity_for
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.objectives.front import has_diverged
from dre_jax.tuning.suggestion.state import StudyState, state_capacity
from dre_jax.tuning.trials.encoding import EncodedTrials
from dre_jax.tuning.trials.objectives import Objectives, values_of
from dre_jax.tuning.trials.responses import check_numbers
from dre_jax.tuning.trials.trial import Trial


def encode_study(
    study: EncodedTrials,
    objectives: Objectives,
    config: EngineConfig,
    errors: np.ndarray,
    spent: float,
    context: Mapping[str, Any] | None = None,
) -> StudyState:
    """Returns the trials of a study, whose cost is ``spent``, in arrays of a few sizes: each needs other programs.

    ``errors`` f64[n, M] are standard errors of the values, 0 where unknown. The next trial is to improve on those that
    have the values of a ``context``. Raises `DataError` for a value that is NaN.
    """
    n_trials, n_failures = len(study.observations) + len(study.pending_points), n_failed(study, objectives)
    # With a model of failures, the first one has other programs anyway.
    has_slots = n_failures > 0 or not config.failure_model
    slots = coarse_capacity_for(n_failures) if has_slots else 0
    known_errors = errors if errors.any() else None
    capacity = state_capacity(n_trials, config.max_history)
    state = study_state(study, objectives, capacity, slots, errors=known_errors, spent=spent)
    if context is None:
        return state
    comparable = np.ones(capacity, bool)  # pending trials are, whatever their context
    comparable[: len(study.observations)] = [has_values(trial, context) for trial in study.observations]
    return state._replace(comparable=comparable)


def has_values(trial: Trial, values: Mapping[str, Any]) -> bool:
    """Returns whether a trial has some values of hyperparameters.

    Example:
      >>> has_values(Trial(0, {"machine": "a", "x": 0.5}), {"machine": "a"})
      True
    """
    return all(trial._params.get(name) == value for name, value in values.items())


def study_state(
    study: EncodedTrials,
    objectives: Objectives,
    capacity: int,
    n_failures: int,
    *,
    errors: np.ndarray | None = None,
    spent: float = 0.0,
) -> StudyState:
    """Returns the trials of a study in arrays of float64, with slots for trials and for failures.

    ``errors`` f64[n, M] are the standard errors of the values, and ``spent`` is the cost of all trials.

    Raises `DataError` for a value that is NaN.
    """
    trials, n, n_pending = study.observations, len(study.observations), len(study.pending_points)
    values = values_of(trials, objectives)
    check_numbers(values)
    constraints, costs = _constraints(trials), _costs(trials)

    def pad(values: np.ndarray, size: int = capacity, empty: float = 0.0) -> np.ndarray:
        widths = [(0, size - len(values))] + [(0, 0)] * (values.ndim - 1)
        return np.pad(values, widths, constant_values=empty)

    return StudyState(
        pad(np.vstack([study.points, study.pending_points])),
        pad(values[:, 0]),
        np.int32(n),
        np.int32(n_pending),
        pad(study.failed_points, n_failures),
        np.int32(len(study.failed_points)),
        pad(values) if len(objectives) > 1 else None,
        None if constraints is None else pad(constraints, empty=np.nan),
        None if errors is None else pad(errors),
        None if costs is None else pad(costs, empty=np.nan),
        None if costs is None else np.float64(spent),
        None if study.outside is None else pad(study.outside, empty=np.nan),
    )


def n_failed(study: EncodedTrials, objectives: Objectives) -> int:
    """Returns the number of failed trials, with those that have diverged in one of several objectives."""
    n = len(study.failed_points)
    if len(objectives) == 1 or not study.observations:
        return n
    values = values_of(study.observations, objectives)
    return n + int(np.sum(has_diverged(values, np.ones(len(values), bool))))


def total_cost(trials: Iterable[Trial]) -> float:
    """Returns the cost of trials, also of those that failed.

    Example:
      >>> total_cost([Trial(0, {}, "complete", 1.0, cost=3.0), Trial(1, {}, "failed", cost=1.0), Trial(2, {})])
      4.0
    """
    return sum(trial.cost or 0.0 for trial in trials)


def _constraints(trials: Sequence[Trial]) -> np.ndarray | None:
    """Returns the constraints f64[n, K] of trials, NaN where unknown; None if no trial has any."""
    names = sorted({name for trial in trials for name in trial._constraints})
    if not names:
        return None
    return np.array([[trial._constraints.get(name, np.nan) for name in names] for trial in trials], np.float64)


def _costs(trials: Sequence[Trial]) -> np.ndarray | None:
    """Returns the costs f64[n] of trials, NaN where unknown; None if no trial has any."""
    costs = np.array([np.nan if trial.cost is None else trial.cost for trial in trials], np.float64)
    return costs if np.isfinite(costs).any() else None
