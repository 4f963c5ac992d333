"""The compiled call that suggests the next trial of each of many studies."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from dre_jax.runtime.jit import jit_with_less_effort
from dre_jax.search.execution import map_runs
from dre_jax.tuning.compiled.study import DesignPoints, NextPoint, SharedArrays, StudyDesign, next_point
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState


class StudySuggestion(NamedTuple):
    """The part of a study that a suggestion reads."""

    state: StudyState
    design: StudyDesign
    candidates: DesignPoints
    """Sobol points among this trial's candidates."""
    number: Array
    """i32: number of the trial."""


@jit_with_less_effort("config", "mesh")
def suggest_points(
    config: StudyConfig, mesh: Mesh | None, shared: SharedArrays, studies: StudySuggestion, count: Array
) -> NextPoint:
    """Returns the next points of B studies, whose histories have a size.

    The first ``count`` studies are wanted; the others are padding.
    """
    n, capacity, n_parts = studies.state.points.shape

    def suggest_point(shared: SharedArrays, study: StudySuggestion, _: NextPoint) -> NextPoint:
        state, design, candidates, number = study
        return next_point(config, shared, state, design, candidates, number, capacity)

    empty = NextPoint(jnp.zeros((n, n_parts), studies.state.points.dtype), jnp.zeros(n, bool), jnp.zeros(n, bool))
    result: NextPoint = map_runs(suggest_point, mesh, shared, studies, empty, count)
    return result
