"""One study as arrays: its trials, the random parts of its design, and its next point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dre_jax.search.history import History
from dre_jax.search.loop import min_max_scale
from dre_jax.search.method import Method
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.sobol import ScrambledWords, expand_points
from dre_jax.suggest.candidates import CandidateConfig, canonicalize
from dre_jax.suggest.proposals import SuggestionInputs, TrialRecord, propose
from dre_jax.tuning.compiled.information import space_filling_share
from dre_jax.tuning.engine.engine_config import SAME
from dre_jax.tuning.engine.initial_design import SEQUENCE
from dre_jax.tuning.engine.plateau import order_by_outcome
from dre_jax.tuning.trials.responses import clip_responses

_IDENTICAL = 1e-9  # configurations whose numbers differ by less are one
_PROPOSALS = 8  # the first new one counts; the search itself proposes no old ones
_MAX_ENUMERATION = 4096


@dataclass(frozen=True)
class StudyConfig:
    """What all studies of a program share; static."""

    method: Method
    layout: SpaceLayout
    """Layout of the space, without rules."""
    encoding: SpaceLayout
    """The same layout with the columns that the method knows."""
    candidates: CandidateConfig
    has_past: bool
    n_start: int
    """Number of initial trials. After the points of the design, they are points of the space-filling sequence."""
    failed_radius: float

    @cached_property
    def is_finite(self) -> bool:
        """Whether the space has no real number."""
        return bool(np.isfinite(self.layout.size))


class StudyState(NamedTuple):
    """The trials of a study."""

    points: Array
    """f[C, P]: points of the trials with a value, then of the pending trials."""
    responses: Array
    """f[C], higher is better."""
    n: Array
    """i32: number of trials with a value."""
    n_pending: Array
    failures: Array
    """f[F, P]: points of the failed trials."""
    n_failed: Array


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


def _slots(n: int) -> Array:
    return jnp.arange(n, dtype=jnp.int32)


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
    slots, failed = _slots(len(responses)), jnp.isnan(responses)
    order, count = jnp.argsort(failed, stable=True), jnp.sum(failed, dtype=jnp.int32)
    new, last = state.n + slots, jnp.argsort(~failed, stable=True)
    return state._replace(
        points=state.points.at[new].set(points[order], mode="drop"),
        responses=state.responses.at[new].set(jnp.nan_to_num(responses[order]), mode="drop"),
        n=state.n + len(responses) - count,
        n_pending=jnp.zeros_like(state.n_pending),
        failures=state.failures.at[state.n_failed + slots].set(points[last], mode="drop"),
        n_failed=state.n_failed + count,
    )


def round_to_values(layout: SpaceLayout, point: Array) -> Array:
    """Returns the point f[..., P] of the configuration at a point: that of its values, 0.5 where inactive."""
    parts = zip(layout.parts, layout.values(point, jnp), layout.active(point, jnp), strict=True)
    coordinates = [jnp.where(active, part.coordinates(values, jnp), 0.5) for part, values, active in parts]
    return jnp.clip(jnp.stack(coordinates, axis=-1), 0.0, 1.0)


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

    ``candidate_words`` are the words of the trial's candidates. ``config`` and ``capacity`` are static. The
    slots of the history hold at least all trials with a value and the pending ones.
    """
    state = state._replace(points=state.points[:capacity], responses=state.responses[:capacity])
    where = _slots(capacity) < state.n
    is_start = number < jnp.maximum(design.n_initial, config.n_start)
    share = space_filling_share(state.points, state.responses, where, has_past=config.has_past)
    fills = ((number % 4).astype(share.dtype) < 4.0 * share) | ((state.n == 0) & (not config.has_past)) | is_start
    nothing = _Choice(state.points[0], jnp.bool_(False), jnp.bool_(False))

    def by_method() -> _Choice:
        return _best_point(config, params, state, where, design, candidate_words, number)

    choice = lax.cond(fills, lambda: nothing, by_method)

    def fill() -> Array:
        return _next_space_filling_point(config, state, where, design, number, fills & ~is_start)

    point = lax.cond(choice.is_new, lambda: choice.point, fill)
    if len(design.initial):
        point = jnp.where(number < design.n_initial, design.initial[number], point)
    return NextPoint(point, choice.is_undefined)


class _Choice(NamedTuple):
    """The new point f[P] that the method values most, if there is one."""

    point: Array
    is_new: Array
    is_undefined: Array


def _best_point(
    config: StudyConfig,
    params: Any,
    state: StudyState,
    where: Array,
    design: StudyDesign,
    candidate_words: ScrambledWords,
    number: Array,
) -> _Choice:
    candidates = expand_points(candidate_words, config.candidates.even, jnp).astype(state.points.dtype)
    inputs = SuggestionInputs(params, _record(config, state, where), candidates, design.key, number)
    proposals = propose(config.method, config.encoding, config.candidates, inputs, _PROPOSALS)
    points = round_to_values(config.layout, proposals.points)
    is_new = (proposals.values > -jnp.inf) & ~_is_known(state, points)
    return _Choice(points[jnp.argmax(is_new)], jnp.any(is_new), proposals.is_undefined)


def _record(config: StudyConfig, state: StudyState, where: Array) -> TrialRecord:
    """Returns the trials as the search for candidates reads them."""
    responses = jnp.where(where, state.responses, 0.0)
    above = where[None, :] & (responses[None, :] > responses[:, None])
    level = jnp.where(where, jnp.sum(above, axis=1, dtype=jnp.int32), 0)
    scaled = min_max_scale(clip_responses(responses, where, jnp), None, level, where)
    columns = jnp.where(where[:, None], config.encoding.columns(state.points, jnp), 0.0)
    slots = _slots(len(where))
    pending = (slots >= state.n) & (slots < state.n + state.n_pending)
    radius = SAME if config.is_finite else config.failed_radius
    radii = jnp.where(_slots(len(state.failures)) < state.n_failed, radius, -1.0).astype(state.points.dtype)
    return TrialRecord(History(columns, scaled, level, where), state.points, pending, state.failures, radii)


def _is_known(state: StudyState, points: Array) -> Array:
    """Returns which points f[N, P] have been evaluated, failed, or are pending, bool[N]."""

    def is_near(known_points: Array, n: Array) -> Array:
        apart = jnp.max(jnp.abs(points[:, None] - known_points[None]), axis=-1)
        return jnp.any((apart < _IDENTICAL) & (_slots(len(known_points)) < n)[None, :], axis=1)

    return is_near(state.points, state.n + state.n_pending) | is_near(state.failures, state.n_failed)


def _next_space_filling_point(
    config: StudyConfig, state: StudyState, where: Array, design: StudyDesign, number: Array, avoids_failures: Array
) -> Array:
    """Returns the first new point of the space-filling sequence, or any new point of a small space.

    With ``avoids_failures``, points whose nearest trial failed come last.
    """
    words = ScrambledWords(*(array[number // SEQUENCE] for array in design.sequence))
    points = expand_points(words, SEQUENCE, jnp).astype(state.points.dtype)
    points = jnp.roll(points, -(number % SEQUENCE), axis=0)
    has_failed = _slots(len(state.failures)) < state.n_failed
    outcomes = (
        jnp.concatenate([state.points, state.failures]),
        jnp.concatenate([where, jnp.zeros_like(has_failed)]),
        jnp.concatenate([jnp.zeros_like(where), has_failed]),
    )
    order = order_by_outcome(canonicalize(config.layout, points), *outcomes, config.failed_radius, jnp)
    points = jnp.where(avoids_failures, points[order], points)
    if config.layout.size <= _MAX_ENUMERATION:
        points = jnp.concatenate([points, jnp.asarray(config.layout.all_points(), points.dtype)])
    points = round_to_values(config.layout, points)
    return points[jnp.argmax(~_is_known(state, points))]
