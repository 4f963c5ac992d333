"""The next point of a study inside of a program, and the random parts of its design."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.space.sobol import ScrambledWords, expand_points
from dre_jax.suggest.proposals import Proposals, SuggestionInputs
from dre_jax.suggest.weighting import Weights
from dre_jax.tuning.suggestion.beliefs import belief_weights
from dre_jax.tuning.suggestion.cost import CostModel, cost_record, fit_cost
from dre_jax.tuning.suggestion.feasibility import propose_feasible
from dre_jax.tuning.suggestion.outcomes import outcomes_of
from dre_jax.tuning.suggestion.ranking import method_params, rank_trials
from dre_jax.tuning.suggestion.record import StudyRecord
from dre_jax.tuning.suggestion.space_filling import SEQUENCE
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState, with_capacity
from dre_jax.tuning.suggestion.suggest import suggest_point

_PROPOSALS = 8  # the first new one counts; the search itself proposes no old ones


DesignPoints = ScrambledWords | Any
"""Sobol points: their words, which a program expands, or the points f[..., N, P] themselves."""


class SharedArrays(NamedTuple):
    """The arrays that all studies of a program share."""

    params: Any
    """Result of the method's `fit`."""
    log_densities: Any = None
    """f[P, K + 1]: log densities of likely values; None if no value is likely."""
    past_cost: CostModel | None = None
    """Costs as learned from past studies; None without any."""


class StudyDesign(NamedTuple):
    """What a study's seed decides before its first trial."""

    key: Array
    initial: Array
    """f[I, P]: points of the first trials, such as those of a surrogate's start design."""
    n_initial: Array
    """i32: number of these points."""
    sequence: DesignPoints
    """The Sobol sequences that fill the space, with the blocks of 256 trials in front."""


class NextPoint(NamedTuple):
    """A suggestion."""

    point: Array
    """f[P]"""
    is_undefined: Array
    """bool: the method's values of all candidates are NaN."""
    has_failures: Array
    """bool: trials have failed, or diverged in one of several objectives."""


def next_point(
    config: StudyConfig,
    shared: SharedArrays,
    state: StudyState,
    design: StudyDesign,
    candidates: DesignPoints,
    number: Array,
    capacity: int,
) -> NextPoint:
    """Returns the point that `Optimizer` evaluates in the trial of a number, given the pending trials.

    ``candidates`` are those of the trial. ``config`` and ``capacity``, the slots of the study, are static.
    """
    state = rank_trials(config, with_capacity(state, capacity))
    dtype = state.points.dtype

    def expand(points: DesignPoints, n: int) -> Array:
        return (expand_points(points, n) if isinstance(points, ScrambledWords) else points).astype(dtype)

    def propose(record: StudyRecord) -> Proposals:
        densities = shared.log_densities
        weighs = densities is not None and config.belief_weight > 0
        belief = belief_weights(densities, config.layout, state, config.belief_weight) if weighs else None
        costs = cost_record(config, state, capacity, has_past=shared.past_cost is not None)
        weights = Weights(belief=belief, cost=fit_cost(config, costs, shared.past_cost))
        params = method_params(config, state, record, shared.params)
        points = expand(candidates, config.candidates.even)
        inputs = SuggestionInputs(params, record.trials, points, design.key, number, weights=weights)
        return propose_feasible(config, outcomes_of(config, state, capacity), inputs, _PROPOSALS)

    def filling_points() -> Array:
        block = number // SEQUENCE % len(jax.tree.leaves(design.sequence)[0])
        points = jax.tree.map(lambda a: a[block], design.sequence)
        if not isinstance(points, ScrambledWords):
            points = points[number % 2]
        return jnp.roll(expand(points, SEQUENCE), -(number % SEQUENCE), axis=0)

    suggestion = suggest_point(
        config,
        state,
        number,
        min(capacity, config.max_history),
        propose=propose,
        filling_points=filling_points,
        is_start=number < jnp.maximum(design.n_initial, config.n_start),
    )
    point = suggestion.point
    if len(design.initial):
        point = jnp.where(number < design.n_initial, design.initial[number], point)
    return NextPoint(point, suggestion.is_undefined, state.n_failed > 0)
