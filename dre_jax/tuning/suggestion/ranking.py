"""The responses that order the trials of a study, and the parameters of its method, from several objectives too."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.tuning.objectives.front import (
    has_diverged,
    order_by_front,
    region_above,
    unit_errors,
    unit_reference,
    unit_values,
)
from dre_jax.tuning.objectives.hypervolume_method import ObjectiveParams
from dre_jax.tuning.suggestion.information import feasible_trials
from dre_jax.tuning.suggestion.record import StudyRecord, excess_errors
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState, set_failed
from dre_jax.tuning.trials.responses import capped_responses, dense_ranks, rank_infeasible_last


def rank_trials(config: StudyConfig, state: StudyState) -> StudyState:
    """Returns the study with responses that order its trials; the best one is that of the best feasible trial.

    Several objectives order trials by their place in the front. A trial that has diverged in one of them counts as a
    failed one, so that the model of failures learns from it: the front cannot use it, however good the others are, and
    the process of that objective would take the value, among good neighbours, for noise everywhere.

    A trial outside of the space counts like an infeasible one, as the search cannot return it.
    """
    if state.objectives is not None:
        state = set_failed(state, has_diverged(state.objectives, state.where))
        where = state.where
        state = state._replace(responses=order_by_front(unit_values(state.objectives, where), where))
    if state.constraints is None and state.outside is None:
        return state
    responses = capped_responses(state.responses, feasible_trials(state))
    if state.objectives is None:  # past tasks have no front
        responses = _rank_like_past(config, state, responses, 0)
    return state._replace(responses=responses)


def _rank_like_past(
    config: StudyConfig, state: StudyState, values: Float[AnyArray, " C"], objective: int
) -> Float[AnyArray, " C"]:
    """Returns values where infeasible trials are ranked as in the past tasks of an objective."""
    if state.constraints is None or not config.ranks_infeasible[objective]:
        return values
    xp = namespace(values)
    violations = xp.sum(xp.where(state.constraints > 0, state.constraints, 0.0), axis=1)
    return rank_infeasible_last(values, violations, state.where)


def method_params(config: StudyConfig, state: StudyState, record: StudyRecord, params: Any) -> Any:
    """Returns the method's parameters for some trials, from what it learned: with the values of several objectives."""
    if state.objectives is None:
        return params
    xp, where = namespace(state.points), state.where
    scaled, n_slots, n_objectives = unit_values(state.objectives, where), len(record.rows), state.objectives.shape[1]
    exist = np.arange(n_slots, dtype=np.int32) < record.n
    reference = config.reference
    if reference is not None:
        reference = unit_reference(state.objectives, xp.asarray(reference, scaled.dtype), where)

    def of_trials(values: Any, i: int) -> Any:
        return _rank_like_past(config, state, values[:, i], i)[record.rows]

    responses = [xp.where(exist, of_trials(scaled, i), 0.0) for i in range(n_objectives)]
    levels = [xp.where(exist, dense_ranks(-of_trials(state.objectives, i), exist), 0) for i in range(n_objectives)]
    noise_var = None
    if state.errors is not None:
        errors = unit_errors(state.objectives, state.errors, where)[record.rows]
        noise_var = xp.stack([excess_errors(column, exist) ** 2 for column in errors.T])
    return ObjectiveParams(
        params or (None,) * n_objectives,
        xp.stack(responses),
        xp.stack(levels),
        exist,
        region_above(scaled, state.responses, feasible_trials(state), where, n_slots, reference),
        noise_var,
    )
