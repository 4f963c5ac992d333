"""Outcomes of trials, as the model of failures and constraints reads them."""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int

from dre_jax.data.tasks import spaced_rows
from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.search.history import coarse_capacity_for
from dre_jax.tuning.suggestion.information import feasible_trials
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState
from dre_jax.tuning.trials.responses import medians
from dre_jax.tuning.trials.selection import select_slots

FIT_TRIALS = 64
"""Maximum number of trials that hyperparameters are fitted to; the processes are conditioned on all."""
_MAX_RATIO = 1e6
"""Maximum ratio of a constraint and its median size."""


class Outcomes(NamedTuple):
    """Trials that have ended, C slots, and K constraints of each."""

    points: Float[AnyArray, "C P"]
    """Points of the unit cube."""
    labels: Float[AnyArray, " C"] | None
    """1 for success and -1 for failure; None if no trial failed."""
    slot_mask: Bool[AnyArray, " C"]
    """The filled slots."""
    values: Float[AnyArray, "K C"]
    """Standardised constraints, lower is better; 0 without a value."""
    where: Bool[AnyArray, "K C"]
    """Slots with a value of the constraint."""
    bounds: Float[AnyArray, " K"]
    """Values up to the bound are feasible."""
    fit_slots: Int[AnyArray, " FIT_TRIALS"]
    """Slots that hyperparameters are fitted to."""
    decides: Bool[AnyArray, ""]
    """No trial is feasible yet."""
    applies: Bool[AnyArray, ""]
    """Whether a trial failed, or there are constraints."""


class _EndedTrials(NamedTuple):
    """Trials in N slots: those with a value or pending, then the failed ones."""

    points: Float[AnyArray, "N P"]
    counts: Bool[AnyArray, " N"]
    """The slots whose outcome counts."""
    failed: Bool[AnyArray, " N"]
    constraints: Float[AnyArray, "N K"]
    """NaN where unknown."""


def outcomes_of(config: StudyConfig, state: StudyState, n_trials: int) -> Outcomes | None:
    """Returns the outcomes of a study of at most ``n_trials`` trials, None without constraints and failures.

    Failures are ignored unless ``config.failure_model``. If there are more trials than the method gets, outcomes are
    those near the best, and others.
    """
    learns_failures = config.failure_model and len(state.failures) > 0
    if state.constraints is None and not learns_failures:
        return None
    xp, dtype = namespace(state.points), state.points.dtype
    capacity = min(coarse_capacity_for(n_trials), max(config.max_history, FIT_TRIALS))  # each is another program
    decides = xp.zeros((), bool) if state.constraints is None else ~xp.any(feasible_trials(state))
    trials = _ended_trials(state, decides, learns_failures=learns_failures)
    rows, filled, n = select_slots(-_distance_from_best(state, trials.points), trials.counts, capacity, capacity)
    values, bounds = _standardise(xp.where(filled[:, None], trials.constraints[rows], xp.nan))
    finite = xp.isfinite(values)
    labels = xp.where(filled & trials.failed[rows], -1.0, 1.0).astype(dtype)
    return Outcomes(
        xp.where(filled[:, None], trials.points[rows], 0.0),
        labels if learns_failures else None,
        filled,
        xp.where(finite, values, 0.0).T,
        finite.T,
        bounds,
        spaced_rows(n, FIT_TRIALS, FIT_TRIALS),
        decides,
        applies=(state.n_failed > 0) | xp.asarray(state.constraints is not None),
    )


def _ended_trials(state: StudyState, decides: Bool[AnyArray, ""], *, learns_failures: bool) -> _EndedTrials:
    """Returns the trials that have ended.

    Before the first feasible trial, when the model alone decides, constraints of the running trials are imputed by the
    median, so that parallel trials stay apart.
    """
    xp, n = namespace(state.points), len(state.points)
    counts, constraints = state.in_space, xp.zeros((n, 0), state.points.dtype)
    if state.constraints is not None:
        typical = medians(state.constraints, counts)
        constraints = xp.where(counts[:, None], state.constraints, typical[None, :])
    counts = counts | (decides & state.pending)
    if not learns_failures:
        return _EndedTrials(state.points, counts, xp.zeros(n, bool), constraints)
    unknown = xp.full((len(state.failures), constraints.shape[1]), xp.nan, constraints.dtype)
    return _EndedTrials(
        xp.concatenate([state.points, state.failures]),
        xp.concatenate([counts, state.has_failed]),
        xp.concatenate([xp.zeros(n, bool), state.has_failed]),
        xp.concatenate([constraints, unknown]),
    )


def _distance_from_best(state: StudyState, points: Float[AnyArray, "N P"]) -> Float[AnyArray, " N"]:
    """Returns the maximum distances of points from the best trial, or from the middle without any."""
    xp, has_value = namespace(points), state.in_space
    best = state.points[xp.argmax(xp.where(has_value, state.responses, -xp.inf))]
    return xp.max(xp.abs(points - xp.where(xp.any(has_value), best, 0.5)[None, :]), axis=1)


def _standardise(constraints: Float[AnyArray, "n K"]) -> tuple[Float[AnyArray, "n K"], Float[AnyArray, " K"]]:
    """Returns constraints without far outliers, standardised, and where 0 is on that scale.

    NaN stays. Sizes are in units of their median, so that signs stay, and are compressed.
    """
    xp = namespace(constraints)
    finite = xp.isfinite(constraints)
    sizes = xp.where(finite, xp.abs(constraints), 0.0)
    largest = xp.max(sizes, axis=0, initial=0.0)
    typical = medians(xp.where(finite, sizes, xp.nan), xp.ones(len(sizes), bool))
    unit = xp.where(typical > 0, typical, xp.where(largest > 0, largest, 1.0))
    values = xp.arcsinh(xp.clip(constraints / unit[None, :], -_MAX_RATIO, _MAX_RATIO))
    finite = xp.isfinite(values)
    n = xp.maximum(xp.sum(finite, axis=0, dtype=values.dtype), 1.0)
    mean = xp.sum(xp.where(finite, values, 0.0), axis=0) / n
    deviation = xp.sqrt(xp.sum(xp.where(finite, (values - mean[None, :]) ** 2, 0.0), axis=0) / n)
    deviation = xp.where(deviation > 0, deviation, 1.0)
    return (values - mean[None, :]) / deviation[None, :], -mean / deviation
