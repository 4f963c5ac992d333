"""A model of failures and of constraints: where trials succeed and are feasible.

Success has a Gaussian process classifier (`dre_jax.gp.classification`), and each constraint has a Gaussian process,
by which it is satisfied with probability Phi((t - m) / sqrt(v + n)): t is the bound, m and v are the mean and the
variance of the process, and n is its noise. A method's acquisition is multiplied by the product (Gardner et al. 2014).

The product alone would try a region of failures again and again: no method has a value there, so its expectation stays.
Therefore a probability of success below a half counts with a power. Failures by chance are not affected, as they have
no pattern, and the probability of success is above a half everywhere.
"""

import math
from collections.abc import Sequence
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
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import compile_ahead, jit_with_less_effort
from dre_jax.search.method import Method
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.candidates import CandidateConfig
from dre_jax.suggest.precision import with_precision
from dre_jax.suggest.proposals import Proposals, SuggestionInputs, propose
from dre_jax.suggest.suggester import coarse_capacity_for
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.trials.trial import Trial
from dre_jax.tuning.trials.trial_record import select_trials

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
    fit_rows: Any
    """i32[`FIT_TRIALS`]: slots that hyperparameters are fitted to."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FeasibilityModel:
    """Gaussian processes of success and of K constraints; see `dre_jax.suggest.weighting.Feasibility`."""

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
def fit_feasibility(layout: SpaceLayout, outcomes: Outcomes, decides: Array) -> FeasibilityModel:
    """Returns the model of trials, in the precision of their points.

    ``decides`` is true if no trial is feasible.
    """
    x, rows = layout.columns(outcomes.points, jnp), outcomes.fit_rows

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
    return FeasibilityModel(decides, x, success, processes, posteriors, outcomes.bounds, layout)


def feasibility_outcomes(
    config: EngineConfig,
    observations: Sequence[Trial],
    responses: Floats,
    points: Floats,
    failed_points: Floats,
    pending_points: Floats,
    dtype: type[np.floating[Any]],
) -> tuple[tuple[Outcomes, Array] | None, Floats]:
    """Returns the arrays of `fit_feasibility`, None without failures and constraints, and `capped_responses`.

    The responses f64[n], higher is better, and the points f64[n, P] are those of the trials with a value. The model has
    at most `EngineConfig.max_history` trials, those near the best, and others. Before the first feasible trial, when
    the model alone decides, the constraints of the running trials are imputed by the median, so that parallel trials
    stay apart.
    """
    failed_points = failed_points if config.failure_model else failed_points[:0]
    names = sorted({name for trial in observations for name in trial._constraints})
    if not names and not len(failed_points):
        return None, responses
    constraints = np.array([[trial._constraints.get(name, np.nan) for name in names] for trial in observations])
    constraints = constraints.reshape(len(points), len(names))
    feasible = np.array([trial.is_feasible for trial in observations], bool)
    responses = capped_responses(responses, feasible)
    max_trials = max(config.max_history, FIT_TRIALS)
    decides = len(names) > 0 and not feasible.any()
    best = points[np.argmax(responses)] if len(points) else 0.5
    if decides:
        points = np.vstack([points, pending_points])
        medians = [
            np.median(known_values) if len(known_values := column[~np.isnan(column)]) else np.nan
            for column in constraints.T
        ]
        imputed_constraints = np.tile(medians, (len(pending_points), 1))
        constraints = np.vstack([constraints, imputed_constraints])
    all_points = np.vstack([points, failed_points])
    failure_mask = np.arange(len(all_points)) >= len(points)
    constraints = np.pad(constraints, ((0, len(failed_points)), (0, 0)), constant_values=np.nan)
    rows = select_trials(-np.abs(all_points - best).max(axis=1), max_trials)
    capacity = min(coarse_capacity_for(len(rows)), max_trials)
    outcomes = outcomes_of(all_points[rows], failure_mask[rows], constraints[rows], capacity)
    return jax.device_put((with_precision(outcomes, dtype), np.bool_(decides))), responses


def propose_feasible(
    method: Method,
    layout: SpaceLayout,
    candidates: CandidateConfig,
    space_layout: SpaceLayout,
    outcomes: tuple[Outcomes, Array] | None,
    inputs: SuggestionInputs,
    n: int,
) -> Proposals:
    """Returns the n best candidates by a method and the model of failures, as `dre_jax.suggest.proposals.propose`.

    The outcomes are those of `feasibility_outcomes`, and ``space_layout`` is that of the space they are of.
    """

    def search(outcomes: Any, inputs: SuggestionInputs) -> Proposals:
        if outcomes is not None:
            weights = inputs.weights._replace(feasibility=fit_feasibility(space_layout, *outcomes))
            inputs = inputs._replace(weights=weights)
        return propose(method, layout, candidates, inputs, n)

    compile_ahead(search, outcomes, inputs)
    return search(outcomes, inputs)


def outcomes_of(points: Floats, failure_mask: Mask, constraints: Floats, capacity: int) -> Outcomes:
    """Returns the outcomes of trials with standardised constraints, in arrays of a capacity.

    Constraints f64[n, K] are at most 0 where they are satisfied, and NaN where unknown.
    """
    n, n_constraints = constraints.shape
    values, bounds = np.full((n_constraints, capacity), np.nan), np.zeros(n_constraints)
    for k, constraint in enumerate(constraints.T):
        squashed_values = _squash_outliers(constraint)
        finite = squashed_values[np.isfinite(squashed_values)]
        mean, deviation = (float(finite.mean()), float(finite.std())) if len(finite) else (0.0, 0.0)
        deviation = deviation if deviation > 0 else 1.0
        values[k, :n], bounds[k] = (squashed_values - mean) / deviation, -mean / deviation
    empty = capacity - n
    return Outcomes(
        np.pad(points, ((0, empty), (0, 0))),
        np.pad(np.where(failure_mask, -1.0, 1.0), (0, empty), constant_values=1.0) if failure_mask.any() else None,
        np.arange(capacity) < n,
        np.nan_to_num(values),
        np.isfinite(values),
        bounds,
        fit_rows(n, capacity),
    )


def fit_rows(n: int, capacity: int) -> npt.NDArray[np.int32]:
    """Returns the slots i32[`FIT_TRIALS`] that hyperparameters are fitted to: all of a few, or evenly spaced ones."""
    rows = np.arange(FIT_TRIALS) if capacity <= FIT_TRIALS else np.linspace(0, n - 1, FIT_TRIALS).round()
    return rows.astype(np.int32)


def _squash_outliers(constraint: Floats) -> Floats:
    """Returns values without far outliers; their signs stay."""
    sizes = np.abs(constraint[np.isfinite(constraint)])
    typical = float(np.median(sizes)) if sizes.any() else 1.0
    return np.arcsinh(np.clip(constraint / (typical or float(sizes.max())), -_MAX_RATIO, _MAX_RATIO))


def capped_responses(responses: Floats, feasible: Sequence[bool] | Mask) -> Floats:
    """Returns responses f64[n], higher is better; the best one is that of the best feasible trial.

    The improvement is then one on this trial for every method. Better responses of infeasible trials become the next
    lower number. Without a feasible trial, the responses are unchanged.
    """
    mask = np.asarray(feasible, bool)
    if mask.all() or not mask.any():
        return responses
    best = responses[mask].max()
    return np.where(mask, responses, np.minimum(responses, np.nextafter(best, -np.inf)))
