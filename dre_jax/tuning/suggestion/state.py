"""A study as arrays: its trials, and what does not change from trial to trial."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.search.method import Method
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.candidates import CandidateConfig
from dre_jax.suggest.suggester import capacity_for, coarse_capacity_for
from dre_jax.tuning.trials.selection import slots

FIRST_CAPACITY = 32
"""Slots of the shortest padded history: fewer would save milliseconds for one more program of a study."""
SAME = 1e-6
"""Maximum distance in every coordinate of points that count as equal."""


@dataclass(frozen=True)
class StudyConfig:
    """What does not change during a study; static inside of programs."""

    method: Method
    layout: SpaceLayout
    """Layout of the space."""
    encoding: SpaceLayout
    """The same layout with the columns that the method knows."""
    candidates: CandidateConfig
    has_past: bool
    n_start: int
    """Number of trials that precede those of the method, without past tasks."""
    values_first_trial: bool
    """Whether the method values candidates before any trial has a value."""
    max_history: int
    """Maximum number of trials that the method gets, pending ones included."""
    failed_radius: float
    """No configuration is proposed within this distance of a failed trial, in every coordinate."""
    failure_model: bool
    """Whether the probability of success is learned from failed trials."""
    belief_weight: float = 0.0
    """Weight of likely values before the first trial; see `dre_jax.tuning.suggestion.beliefs`."""
    reports: bool = False
    """Whether a trial that fills the space has the improvement that the method expects of its own best candidate."""

    @cached_property
    def is_finite(self) -> bool:
        """Whether the space has no real number."""
        return bool(np.isfinite(self.layout.size))


class StudyState(NamedTuple):
    """The trials of a study, in C slots, and the failed ones, in F; arrays of NumPy or of JAX."""

    points: Any
    """f[C, P]: points of the trials with a value, then of the pending trials."""
    responses: Any
    """f[C], higher is better; they order the trials."""
    n: Any
    """i32: number of trials with a value."""
    n_pending: Any
    failures: Any
    """f[F, P]: points of the failed trials."""
    n_failed: Any
    objectives: Any = None
    """f[C, M]: values of several objectives, higher is better; None for a single one, whose values are responses."""
    constraints: Any = None
    """f[C, K]: at most 0 where satisfied, NaN where unknown; None without constraints."""
    errors: Any = None
    """f[C]: standard errors of the responses; None without any."""


def state_capacity(n: int, max_history: int) -> int:
    """Returns the slots of a study of n trials.

    Example:
      >>> [state_capacity(n, 192) for n in (3, 33, 190, 193, 300)]
      [32, 64, 192, 256, 1024]
    """
    return min(max(capacity_for(n), FIRST_CAPACITY), max_history) if n <= max_history else coarse_capacity_for(n)


def empty_state(capacity: int, n_failures: int, n_parts: int, dtype: Any) -> StudyState:
    """Returns a study without trials, with room for ``capacity`` of them and for failures."""
    none = jnp.int32(0)
    points, failures = jnp.zeros((capacity, n_parts), dtype), jnp.zeros((n_failures, n_parts), dtype)
    return StudyState(points, jnp.zeros(capacity, dtype), none, none, failures, none)


def add_pending(state: StudyState, point: Array) -> StudyState:
    """Returns the study with another pending trial."""
    points = state.points.at[state.n + state.n_pending].set(point, mode="drop")
    return state._replace(points=points, n_pending=state.n_pending + 1)


def tell_pending(state: StudyState, points: Array, responses: Array) -> StudyState:
    """Returns the study with the outcomes f[q] of its pending trials f[q, P]; NaN is a failure."""
    numbers, failed = slots(len(responses)), jnp.isnan(responses)
    order, count = jnp.argsort(failed, stable=True), jnp.sum(failed, dtype=jnp.int32)
    new, last = state.n + numbers, jnp.argsort(~failed, stable=True)
    return state._replace(
        points=state.points.at[new].set(points[order], mode="drop"),
        responses=state.responses.at[new].set(jnp.nan_to_num(responses[order]), mode="drop"),
        n=state.n + len(responses) - count,
        n_pending=jnp.zeros_like(state.n_pending),
        failures=state.failures.at[state.n_failed + numbers].set(points[last], mode="drop"),
        n_failed=state.n_failed + count,
    )
