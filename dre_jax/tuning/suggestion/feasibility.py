"""A model of failures and of constraints: where trials succeed and are feasible.

Success has a Gaussian process classifier (`dre_jax.gp.classification`), and each constraint has a Gaussian process,
by which it is satisfied with probability Phi((t - m) / sqrt(v + n)): t is the bound, m and v are the mean and the
variance of the process, and n is its noise. A method's acquisition is multiplied by the product (Gardner et al. 2014).

The product alone would try a region of failures again and again: no method has a value there, so its expectation stays.
Therefore a probability of success below a half counts with a power. Failures by chance are not affected, as they have
no pattern, and the probability of success is above a half everywhere.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.gp.classification import Classifier, condition_classifier, fit_classifier, log_probability
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import GPParams, PreparedGP, condition_on_history, predict_signal_at
from dre_jax.runtime.arrays import namespace
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import jit_with_less_effort
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.proposals import Proposals, SuggestionInputs, propose
from dre_jax.suggest.suggester import coarse_capacity_for
from dre_jax.tuning.suggestion.information import feasible_trials
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState
from dre_jax.tuning.trials.selection import select_rows, slots

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

FITTING = GPConfig(optimiser="bfgs", steps=15, first_log_noises=(-6.0, -1.0), log_noise_prior=(-5.0, 3.0))
"""Search for the hyperparameters of constraints."""
FIT_TRIALS = 64
"""Maximum number of trials that hyperparameters are fitted to; the processes are conditioned on all."""
_CAUTION = 4.0
"""Power of a probability of success below a half."""
_MAX_RATIO = 1e6
"""Maximum ratio of a constraint and its median size."""


class Outcomes(NamedTuple):
    """Trials that have ended, C slots, and K constraints of each."""

    points: Any
    """f[C, P], points of the unit cube."""
    labels: Any
    """f[C], 1 for success and -1 for failure; None if no trial failed."""
    slot_mask: Any
    """bool[C]: the filled slots."""
    values: Any
    """f[K, C], standardised constraints, lower is better; 0 without a value."""
    where: Any
    """bool[K, C]: slots with a value of the constraint."""
    bounds: Any
    """f[K]: values up to the bound are feasible."""
    fit_slots: Any
    """i32[`FIT_TRIALS`]: slots that hyperparameters are fitted to."""
    decides: Any
    """bool: no trial is feasible yet."""
    applies: Any
    """bool: whether a trial failed, or there are constraints."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FeasibilityModel:
    """Gaussian processes of success and of K constraints; see `dre_jax.suggest.weighting.Feasibility`."""

    applies: Array
    """bool: whether a trial failed, or there are constraints; otherwise the other arrays have no meaning."""
    decides: Array
    """bool: no trial is feasible yet."""
    x: Array
    """f[C, D], columns of the trials."""
    success: Classifier | None
    """None if no trial failed."""
    processes: GPParams | None
    """Hyperparameters of the constraints, K in front of each array; None without constraints."""
    posteriors: PreparedGP | None
    """Posteriors of the processes, conditioned on the constraints, K in front of each array."""
    bounds: Array
    """f[K]"""
    layout: SpaceLayout = field(metadata={"static": True})

    def log_weight(self, points: Array) -> Array:
        """Returns the log weight f[N] of configurations at points f[N, P]."""
        return by_blocks(self._log_weight, self.layout.columns(points, jnp))

    def _log_weight(self, new: Array) -> Array:
        def log_probability_below(process: Any, posterior: Any, bound: Array) -> Array:
            mean, variance = predict_signal_at(process, self.x, posterior, new)
            return jax.scipy.special.log_ndtr((bound - mean) / jnp.sqrt(variance + jnp.exp(process.log_noise)))

        total = jnp.zeros(len(new), new.dtype)
        if len(self.bounds):
            total += jnp.sum(jax.vmap(log_probability_below)(self.processes, self.posteriors, self.bounds), axis=0)
        if self.success is not None:
            success = log_probability(self.success, self.x, new)
            total += success + (_CAUTION - 1.0) * jnp.minimum(success - math.log(0.5), 0.0)
        return total


@jit_with_less_effort("layout", purpose="the model of failures and constraints")
def fit_feasibility(layout: SpaceLayout, outcomes: Outcomes) -> FeasibilityModel:
    """Returns the model of trials, in the precision of their points."""
    x, rows = layout.columns(outcomes.points, jnp), outcomes.fit_slots

    def fit(constraint: tuple[Array, Array]) -> tuple[GPParams, PreparedGP]:
        values, where = constraint
        process = fit_gp(FITTING, x[rows], values[rows], where[rows])
        return process, condition_on_history(process, x, values, where)

    success = None
    if outcomes.labels is not None:
        params = fit_classifier(x[rows], outcomes.labels[rows], outcomes.slot_mask[rows])
        success = condition_classifier(params, x, outcomes.labels, outcomes.slot_mask)
    # Without constraints, the loop would be traced and compiled for nothing.
    has_constraints = len(outcomes.values) > 0
    processes, posteriors = jax.lax.map(fit, (outcomes.values, outcomes.where)) if has_constraints else (None, None)
    return FeasibilityModel(
        outcomes.applies, outcomes.decides, x, success, processes, posteriors, outcomes.bounds, layout
    )


def outcomes_of(config: StudyConfig, state: StudyState, capacity: int) -> Outcomes | None:
    """Returns the outcomes of a study's trials in a number of slots, None without constraints and failures.

    Failures are ignored unless ``config.failure_model``. If there are too many trials for the slots, outcomes are those
    near the best, and others. Before the first feasible trial, when the model alone decides, constraints of the running
    trials are imputed by the median, so that parallel trials stay apart.
    """
    if state.constraints is None and not (config.failure_model and len(state.failures)):
        return None
    xp, numbers = namespace(state.points), slots(len(state.points))
    has_value, dtype = numbers < state.n, state.points.dtype
    constraints = xp.zeros((len(numbers), 0), dtype) if state.constraints is None else state.constraints
    decides = xp.zeros((), bool)
    if state.constraints is not None:
        decides = ~xp.any(feasible_trials(state))
        constraints = xp.where(has_value[:, None], constraints, _medians(constraints, has_value)[None, :])
    counts = has_value | (decides & (numbers < state.n + state.n_pending))
    best = state.points[xp.argmax(xp.where(has_value, state.responses, -xp.inf))]
    best = xp.where(state.n > 0, best, 0.5)
    points, failed = state.points, xp.zeros(len(numbers), bool)
    if config.failure_model:
        points = xp.concatenate([points, state.failures])
        has_failed = slots(len(state.failures)) < state.n_failed
        counts, failed = xp.concatenate([counts, has_failed]), xp.concatenate([failed, has_failed])
        unknown = xp.full((len(state.failures), constraints.shape[1]), xp.nan, dtype)
        constraints = xp.concatenate([constraints, unknown])
    rows, n = select_rows(-xp.max(xp.abs(points - best[None, :]), axis=1), counts, capacity)
    rows = xp.minimum(xp.pad(rows, (0, max(capacity - len(rows), 0)))[:capacity], len(points) - 1)
    filled = slots(capacity) < n
    values, bounds = _standardise(xp.where(filled[:, None], constraints[rows], xp.nan))
    labels = xp.where(filled & failed[rows], -1.0, 1.0).astype(dtype) if len(state.failures) else None
    labels = labels if config.failure_model else None
    points = xp.where(filled[:, None], points[rows], 0.0)
    finite = xp.isfinite(values)
    values = xp.where(finite, values, 0.0)
    applies = (state.n_failed > 0) | xp.asarray(state.constraints is not None)
    return Outcomes(points, labels, filled, values.T, finite.T, bounds, fit_slots(n, xp), decides, applies)


def _fit_where_needed(config: StudyConfig, outcomes: Outcomes) -> FeasibilityModel:
    """Returns the model; inside of a program, one of zeros if it does not apply. A host calls for others only."""
    if not isinstance(outcomes.applies, jax.core.Tracer):
        return fit_feasibility(config.layout, outcomes)

    def fit() -> FeasibilityModel:
        return fit_feasibility(config.layout, outcomes)

    def zeros() -> FeasibilityModel:
        model: FeasibilityModel = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(fit))
        return model

    return jax.lax.cond(outcomes.applies, fit, zeros)


def outcome_capacity(config: StudyConfig, n: int) -> int:
    """Returns the slots of the outcomes of n trials: few numbers, as each is another program to compile."""
    return min(coarse_capacity_for(n), max(config.max_history, FIT_TRIALS))


def fit_slots(n: Any, xp: Any = np) -> Any:
    """Returns the slots i32[`FIT_TRIALS`] that hyperparameters are fitted to: all of a few, or evenly spaced ones."""
    spacing = xp.maximum((n - 1) / (FIT_TRIALS - 1), 1.0)
    return xp.round(slots(FIT_TRIALS).astype(spacing.dtype) * spacing).astype(np.int32)


def _medians(values: Any, where: Any) -> Any:
    """Returns the medians f[K] of the finite values f[n, K] in slots bool[n]; NaN without any."""
    xp = namespace(values)
    finite = where[:, None] & xp.isfinite(values)
    n = xp.sum(finite, axis=0, dtype=np.int32)
    ordered = xp.sort(xp.where(finite, values, xp.inf), axis=0)
    ends = [
        xp.take_along_axis(ordered, xp.clip(i, 0, len(values) - 1)[None, :], axis=0)[0] for i in ((n - 1) // 2, n // 2)
    ]
    return xp.where(n > 0, 0.5 * (ends[0] + ends[1]), xp.nan)


def _standardise(constraints: Any) -> tuple[Any, Any]:
    """Returns constraints f[n, K] without far outliers, standardised, and where 0 is on that scale, f[K].

    NaN stays. Sizes are in units of their median, so that signs stay, and are compressed.
    """
    xp = namespace(constraints)
    finite = xp.isfinite(constraints)
    sizes = xp.where(finite, xp.abs(constraints), 0.0)
    largest = xp.max(sizes, axis=0, initial=0.0)
    typical = _medians(xp.where(finite, sizes, xp.nan), xp.ones(len(sizes), bool))
    unit = xp.where(typical > 0, typical, xp.where(largest > 0, largest, 1.0))
    values = xp.arcsinh(xp.clip(constraints / unit[None, :], -_MAX_RATIO, _MAX_RATIO))
    finite = xp.isfinite(values)
    n = xp.maximum(xp.sum(finite, axis=0, dtype=values.dtype), 1.0)
    mean = xp.sum(xp.where(finite, values, 0.0), axis=0) / n
    deviation = xp.sqrt(xp.sum(xp.where(finite, (values - mean[None, :]) ** 2, 0.0), axis=0) / n)
    deviation = xp.where(deviation > 0, deviation, 1.0)
    return (values - mean[None, :]) / deviation[None, :], -mean / deviation


def propose_feasible(config: StudyConfig, outcomes: Outcomes | None, inputs: SuggestionInputs, n: int) -> Proposals:
    """Returns the n best candidates by a method and the model of failures, as `dre_jax.suggest.proposals.propose`."""
    if outcomes is not None:
        model = _fit_where_needed(config, outcomes)
        inputs = inputs._replace(weights=inputs.weights._replace(feasibility=model))
    return propose(config.method, config.encoding, config.candidates, inputs, n)


def capped_responses(responses: Floats, feasible: npt.ArrayLike) -> Floats:
    """Returns responses f64[n], higher is better; the best one is that of the best feasible trial.

    The improvement is then one on this trial for every method. Better responses of infeasible trials become the next
    lower number. Without a feasible trial, the responses are unchanged.
    """
    mask = np.asarray(feasible, bool)
    if mask.all() or not mask.any():
        return responses
    best = responses[mask].max()
    return np.where(mask, responses, np.minimum(responses, np.nextafter(best, -np.inf)))
