"""The compiled program of many searches: trials of each are a loop, searches go one by one or side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh

from dre_jax.functions.objective import Objective
from dre_jax.runtime.jit import less_effort_options
from dre_jax.search.execution import map_runs
from dre_jax.tuning.compiled.study import DesignPoints, NextPoint, SharedArrays, StudyDesign, next_point
from dre_jax.tuning.suggestion.state import (
    OutcomeShape,
    StudyConfig,
    StudyState,
    TrialOutcomes,
    add_pending,
    empty_state,
    no_outcomes,
    tell_pending,
)


@dataclass(frozen=True)
class ProgramConfig:
    """What all searches share; static."""

    study: StudyConfig
    objective: Objective
    shape: OutcomeShape
    batch: int
    """q: trials that are suggested before any of them is evaluated."""
    mesh: Mesh | None = None
    """See `dre_jax.search.execution.mesh_of`."""


class Searches(NamedTuple):
    """The arrays in which searches differ, with the searches in front."""

    task: Any
    design: StudyDesign
    candidates: DesignPoints
    """Sobol points among the candidates of all trials."""
    noise_key: Array


class Progress(NamedTuple):
    """Progress of searches."""

    state: StudyState
    points: Array
    """f[C, P], in the order of the trials."""
    outcomes: TrialOutcomes
    """Of the trials, C in front."""
    is_undefined: Array
    """bool: the method's values were NaN."""
    has_failures: Array
    """bool: a suggestion had failures to learn from."""


def no_progress(config: ProgramConfig, capacity: int, n_searches: int, dtype: Any) -> Progress:
    """Returns searches without trials, which have room for C of them."""
    n_parts = len(config.objective.space)
    progress = Progress(
        empty_state(capacity, capacity, n_parts, dtype, shape=config.shape),
        jnp.zeros((capacity, n_parts), dtype),
        no_outcomes(config.shape, capacity, dtype),
        jnp.bool_(False),
        jnp.bool_(False),
    )
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (n_searches, *a.shape)), progress)


def advance(*args: Any, **kwargs: Any) -> Progress:
    """Calls the compiled `_advance`, on a CPU compiled with less effort: as fast, in half of the time."""
    return _compiled(tuple(less_effort_options().items()))(*args, **kwargs)


@cache
def _compiled(options: tuple[tuple[str, Any], ...]) -> Any:
    static = ("config", "capacity")
    return jax.jit(_advance, static_argnames=static, donate_argnames="progress", compiler_options=dict(options))


def _advance(
    config: ProgramConfig,
    shared: SharedArrays,
    searches: Searches,
    progress: Progress,
    count: Array,
    start: Array,
    stop: Array,
    *,
    capacity: int,
) -> Progress:
    """Returns the progress of B searches after the batches of trials from ``start`` to ``stop``.

    The first ``count`` searches are wanted; the others are padding. ``config`` and ``capacity``, the slots of a
    history, are static.
    """

    def advance_search(shared: SharedArrays, search: Searches, progress: Progress) -> Progress:
        return lax.fori_loop(start, stop, partial(_take_batch, config, shared, search, capacity), progress)

    result: Progress = map_runs(advance_search, config.mesh, shared, searches, progress, count)
    return result


def _take_batch(
    config: ProgramConfig, shared: SharedArrays, search: Searches, capacity: int, i: Array, progress: Progress
) -> Progress:
    def suggest(state: StudyState, number: Array) -> tuple[StudyState, NextPoint]:
        candidates = jax.tree.map(lambda a: a[number], search.candidates)
        suggestion = next_point(config.study, shared, state, search.design, candidates, number, capacity)
        return add_pending(state, suggestion.point), suggestion

    numbers = i * config.batch + jnp.arange(config.batch, dtype=jnp.int32)
    state, (points, is_undefined, has_failures) = lax.scan(suggest, progress.state, numbers)

    def evaluate(point: Array, number: Array) -> TrialOutcomes:
        return config.objective(search.task, point, jax.random.fold_in(search.noise_key, number))

    outcomes = jax.vmap(evaluate)(points, numbers)
    return Progress(
        tell_pending(state, points, outcomes),
        progress.points.at[numbers].set(points),
        jax.tree.map(lambda a, new: a.at[numbers].set(new), progress.outcomes, outcomes),
        progress.is_undefined | jnp.any(is_undefined),
        progress.has_failures | jnp.any(has_failures),
    )
