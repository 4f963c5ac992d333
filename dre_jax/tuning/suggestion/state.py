"""A study as arrays: its trials, and what does not change from trial to trial."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.search.history import capacity_for, coarse_capacity_for
from dre_jax.search.method import Method
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.candidates import CandidateConfig

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
    budget: float | None = None
    """Total cost of a study; None without one."""
    reference: tuple[float, ...] | None = None
    """The worst values of several objectives that count, higher is better; None for the worst so far."""
    ranks_infeasible: tuple[bool, ...] = (False,)
    """By objective: whether its past tasks have trials that violate constraints, and rank these last."""
    reports: bool = False
    """Whether a trial that fills the space has the improvement that the method expects of its own best candidate."""

    @cached_property
    def is_finite(self) -> bool:
        """Whether the space has no real number."""
        return bool(np.isfinite(self.layout.size))


class StudyState(NamedTuple):
    """The trials of a study, in C slots, and the failed ones, in F; arrays of NumPy or of JAX."""

    points: Float[AnyArray, "C P"]
    """Points of the trials with a value, then of the pending trials."""
    responses: Float[AnyArray, " C"]
    """Higher is better; they order the trials."""
    n: Int[AnyArray, ""]
    """Number of trials with a value."""
    n_pending: Int[AnyArray, ""]
    failures: Float[AnyArray, "F P"]
    """Points of the failed trials."""
    n_failed: Int[AnyArray, ""]
    objectives: Float[AnyArray, "C M"] | None = None
    """Values of several objectives, higher is better; None for a single one, whose values are responses."""
    constraints: Float[AnyArray, "C K"] | None = None
    """At most 0 where satisfied, NaN where unknown; None without constraints."""
    errors: Float[AnyArray, "C M"] | None = None
    """Standard errors of the values in each objective; None without any."""
    costs: Float[AnyArray, " C"] | None = None
    """Costs of the trials with a value, NaN where unknown; None without any."""
    spent: Float[AnyArray, ""] | None = None
    """Cost of all trials, also of the failed ones; None without costs."""
    outside: Float[AnyArray, "C D"] | None = None
    """Columns, as the method knows them, of the trials outside of the space, whose points are only near them; NaN for
    the others. None without any."""

    comparable: Bool[AnyArray, " C"] | None = None
    """The trials that the next one is to improve on; None for all."""

    @property
    def where(self) -> Bool[AnyArray, " C"]:
        """The slots of the trials with a value."""
        return _numbers(self.points) < self.n

    @property
    def pending(self) -> Bool[AnyArray, " C"]:
        """The slots of the pending trials."""
        numbers = _numbers(self.points)
        return (numbers >= self.n) & (numbers < self.n + self.n_pending)

    @property
    def has_failed(self) -> Bool[AnyArray, " F"]:
        """The filled slots of the failures."""
        return _numbers(self.failures) < self.n_failed

    @property
    def in_space(self) -> Bool[AnyArray, " C"]:
        """The slots of the trials with a value in the space."""
        return self.where if self.outside is None else self.where & namespace(self.points).isnan(self.outside[:, 0])


class OutcomeShape(NamedTuple):
    """What the trials of a study have."""

    n_objectives: int = 1
    n_constraints: int = 0
    has_costs: bool = False


class TrialOutcomes(NamedTuple):
    """What a program knows of q trials that have ended."""

    responses: Float[Array, "q M"]
    """Values in the objectives, higher is better, NaN for a trial that failed."""
    constraints: Float[Array, "q K"] | None = None
    """NaN where unknown; None without constraints."""
    costs: Float[Array, " q"] | None = None
    """NaN where unknown; None without costs."""


def state_capacity(n: int, max_history: int) -> int:
    """Returns the slots of a study of n trials.

    Example:
      >>> [state_capacity(n, 192) for n in (3, 33, 190, 193, 300)]
      [32, 64, 192, 256, 1024]
    """
    return min(max(capacity_for(n), FIRST_CAPACITY), max_history) if n <= max_history else coarse_capacity_for(n)


def empty_state(capacity: int, n_failures: int, n_parts: int, dtype: Any, *, shape: OutcomeShape) -> StudyState:
    """Returns a study without trials, with room for ``capacity`` of them and for failures."""
    none, (_, constraints, costs) = jnp.int32(0), no_outcomes(shape, capacity, dtype)
    points, failures = jnp.zeros((capacity, n_parts), dtype), jnp.zeros((n_failures, n_parts), dtype)
    objectives = jnp.zeros((capacity, shape.n_objectives), dtype) if shape.n_objectives > 1 else None
    spent = jnp.zeros((), dtype) if shape.has_costs else None
    counts = none, none, failures, none
    return StudyState(points, jnp.zeros(capacity, dtype), *counts, objectives, constraints, None, costs, spent)


def no_outcomes(shape: OutcomeShape, n: int, dtype: Any) -> TrialOutcomes:
    """Returns the outcomes of n trials, all unknown."""
    return TrialOutcomes(
        jnp.full((n, shape.n_objectives), jnp.nan, dtype),
        jnp.full((n, shape.n_constraints), jnp.nan, dtype) if shape.n_constraints else None,
        jnp.full(n, jnp.nan, dtype) if shape.has_costs else None,
    )


def with_capacity(state: StudyState, capacity: int) -> StudyState:
    """Returns a study with the first slots of its trials alone."""
    fields = ("points", "responses", "objectives", "constraints", "errors", "costs", "outside")
    arrays = {name: getattr(state, name) for name in fields}
    return state._replace(**{name: array[:capacity] for name, array in arrays.items() if array is not None})


def add_pending(state: StudyState, point: Float[Array, " P"]) -> StudyState:
    """Returns the study with another pending trial."""
    points = state.points.at[state.n + state.n_pending].set(point, mode="drop")
    return state._replace(points=points, n_pending=state.n_pending + 1)


def tell_pending(state: StudyState, points: Float[Array, "q P"], outcomes: TrialOutcomes) -> StudyState:
    """Returns the study with the outcomes of its q pending trials; a response that is NaN is a failure."""
    responses, constraints, costs = outcomes
    numbers, failed = _numbers(responses), jnp.any(jnp.isnan(responses), axis=1)
    order, count = jnp.argsort(failed, stable=True), jnp.sum(failed, dtype=jnp.int32)
    new, last = state.n + numbers, jnp.argsort(~failed, stable=True)

    def added(array: Array | None, values: Array | None) -> Array | None:
        return None if array is None or values is None else array.at[new].set(values[order], mode="drop")

    known_responses = jnp.where(failed[:, None], 0.0, responses)
    return state._replace(
        points=added(state.points, points),
        responses=added(state.responses, known_responses[:, 0]),
        n=state.n + len(responses) - count,
        n_pending=jnp.zeros_like(state.n_pending),
        failures=state.failures.at[state.n_failed + numbers].set(points[last], mode="drop"),
        n_failed=state.n_failed + count,
        objectives=added(state.objectives, known_responses),
        constraints=added(state.constraints, constraints),
        costs=added(state.costs, costs),
        spent=None if costs is None or state.spent is None else state.spent + jnp.sum(jnp.nan_to_num(costs)),
    )


def set_failed(state: StudyState, mask: Bool[AnyArray, " C"]) -> StudyState:
    """Returns the study where trials of a mask have failed.

    There must be room for them among the failures.
    """
    xp, numbers = namespace(state.points), _numbers(state.points)
    count, n_trials = xp.sum(mask, dtype=np.int32), state.n + state.n_pending
    order = xp.argsort(mask | (numbers >= n_trials), stable=True)
    failed = state.points[xp.argsort(~mask, stable=True)]
    room = _numbers(state.failures)
    is_new = (room >= state.n_failed) & (room < state.n_failed + count)
    added = failed[xp.clip(room - state.n_failed, 0, len(failed) - 1)]

    def kept(array: Any) -> Any:
        return None if array is None else array[order]

    return state._replace(
        points=kept(state.points),
        responses=kept(state.responses),
        n=state.n - count,
        failures=xp.where(is_new[:, None], added, state.failures),
        n_failed=state.n_failed + count,
        objectives=kept(state.objectives),
        constraints=kept(state.constraints),
        errors=kept(state.errors),
        costs=kept(state.costs),
        outside=kept(state.outside),
    )


def _numbers(slots: AnyArray) -> Int[np.ndarray, " n"]:
    """Returns the numbers of the slots of an array."""
    return np.arange(len(slots), dtype=np.int32)
