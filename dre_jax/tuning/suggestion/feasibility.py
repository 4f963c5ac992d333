"""A model of failures and of constraints: where trials succeed and are feasible.

Success has a Gaussian process classifier (`dre_jax.gp.classification`), and each constraint has a Gaussian process,
by which it is satisfied with probability Phi((t - m) / sqrt(v + n)): t is the bound, m and v are the mean and the
variance of the process, and n is its noise. A method's acquisition is multiplied by the product (Gardner et al. 2014).

The product alone would try a region of failures again and again: no method has a value there, so its expectation stays.
Therefore a probability of success below a half counts with a power. Failures by chance are not affected, as they have
no pattern, and the probability of success is above a half everywhere.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from dre_jax.gp.classification import Classifier, condition_classifier, fit_classifier, log_probability
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import GPParams, PreparedGP, condition_on_history, predict_signal_at
from dre_jax.runtime.arrays import branch
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import jit_with_less_effort
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.proposals import Proposals, SuggestionInputs, propose
from dre_jax.tuning.suggestion.outcomes import Outcomes
from dre_jax.tuning.suggestion.state import StudyConfig

FITTING = GPConfig(optimiser="bfgs", steps=15, first_log_noises=(-6.0, -1.0), log_noise_prior=(-5.0, 3.0))
"""Search for the hyperparameters of constraints."""
T = TypeVar("T")
_CAUTION = 4.0
"""Power of a probability of success below a half."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FeasibilityModel:
    """Gaussian processes of success and of K constraints; see `dre_jax.suggest.weighting.Feasibility`."""

    applies: Bool[Array, ""]
    """Whether a trial failed, or there are constraints; otherwise the other arrays have no meaning."""
    decides: Bool[Array, ""]
    """No trial is feasible yet."""
    x: Float[Array, "C D"]
    """Columns of the trials."""
    success: Classifier | None
    """None if no trial failed."""
    processes: GPParams | None
    """Hyperparameters of the constraints, K in front of each array; None without constraints."""
    posteriors: PreparedGP | None
    """Posteriors of the processes, conditioned on the constraints, K in front of each array."""
    bounds: Float[Array, " K"]
    """Values of the constraints up to the bound are feasible."""
    layout: SpaceLayout = field(metadata={"static": True})

    def log_weight(self, points: Float[Array, "N P"]) -> Float[Array, " N"]:
        """Returns the log weight of configurations at points."""
        return by_blocks(self._log_weight, self.layout.columns(points))

    def _log_weight(self, new: Float[Array, "N D"]) -> Float[Array, " N"]:
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
    x, rows = layout.columns(outcomes.points), outcomes.fit_slots

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


def fit_where_needed(applies: Any, fit: Callable[[], T]) -> T:
    """Returns a model; one of zeros, which is not fitted, if it does not apply."""

    def zeros() -> T:
        model: T = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(fit))
        return model

    return branch(applies, fit, zeros)


def propose_feasible(config: StudyConfig, outcomes: Outcomes | None, inputs: SuggestionInputs, n: int) -> Proposals:
    """Returns the n best candidates by a method and the model of failures, as `dre_jax.suggest.proposals.propose`."""
    if outcomes is not None:
        model = fit_where_needed(outcomes.applies, lambda: fit_feasibility(config.layout, outcomes))
        inputs = inputs._replace(weights=inputs.weights._replace(feasibility=model))
    return propose(config.method, config.encoding, config.candidates, inputs, n)
