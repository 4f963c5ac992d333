"""The next point of a study inside of a program, and the random parts of its design."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.space.sobol import ScrambledWords, expand_points
from dre_jax.suggest.proposals import Proposals, SuggestionInputs
from dre_jax.tuning.suggestion.feasibility import outcome_capacity, outcomes_of, propose_feasible
from dre_jax.tuning.suggestion.record import StudyRecord
from dre_jax.tuning.suggestion.space_filling import SEQUENCE
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState
from dre_jax.tuning.suggestion.suggest import suggest_point

_PROPOSALS = 8  # the first new one counts; the search itself proposes no old ones


class StudyDesign(NamedTuple):
    """What a study's seed decides before its first trial."""

    key: Array
    initial: Array
    """f[I, P]: points of the first trials, such as those of a surrogate's start design."""
    n_initial: Array
    """i32: number of these points."""
    sequence: ScrambledWords
    """Words of the Sobol sequences that fill the space, with the blocks of 256 trials in front."""


class NextPoint(NamedTuple):
    """A suggestion."""

    point: Array
    """f[P]"""
    is_undefined: Array
    """bool: the method's values of all candidates are NaN."""


def next_point(
    config: StudyConfig,
    params: Any,
    state: StudyState,
    design: StudyDesign,
    candidate_words: ScrambledWords,
    number: Array,
    capacity: int,
) -> NextPoint:
    """Returns the point that `Optimizer` evaluates in the trial of a number, given the pending trials.

    ``candidate_words`` are the words of the trial's candidates. ``config`` and ``capacity``, the slots of the study,
    are static.
    """
    state = state._replace(points=state.points[:capacity], responses=state.responses[:capacity])
    dtype = state.points.dtype

    def propose(record: StudyRecord) -> Proposals:
        candidates = expand_points(candidate_words, config.candidates.even, jnp).astype(dtype)
        inputs = SuggestionInputs(params, record.trials, candidates, design.key, number)
        return propose_feasible(
            config, outcomes_of(config, state, outcome_capacity(config, capacity)), inputs, _PROPOSALS
        )

    def filling_points() -> Array:
        words = ScrambledWords(*(array[number // SEQUENCE] for array in design.sequence))
        points = expand_points(words, SEQUENCE, jnp).astype(dtype)
        return jnp.roll(points, -(number % SEQUENCE), axis=0)

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
    return NextPoint(point, suggestion.is_undefined)
