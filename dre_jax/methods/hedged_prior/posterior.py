"""The predictive mixture of the recommended method: learned priors under hypotheses, and processes of the task alone.

A component is a member's learned prior or the common process of past tasks under one hypothesis (`hypotheses`), or a
Gaussian process of the task (`task_process`), whose hyperparameters are fixed or fitted, with or without the learned
trend. Before the first trial the former two have the total weight `HedgedPriorParams.transfer_log_odds` (as a
probability), of which `CommonPrior.log_odds` is the common process's part, and the processes of the task have the
remaining weight. The marginal likelihood of the trials then updates the weights.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dre_jax.gp.student import ConditionedStudentT
from dre_jax.methods.hedged_prior.common_process import CommonPrior
from dre_jax.methods.hedged_prior.folds import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import HypothesisArrays, PriorPosterior, condition_prior, scale_variances
from dre_jax.methods.hedged_prior.prior import (
    LearnedPrior,
    LearnedPriorConfig,
    Trials,
    prior_covariance,
    prior_variance,
)
from dre_jax.methods.hedged_prior.task_process import (
    TaskHyperpriors,
    TaskPosterior,
    TaskProcessConfig,
    condition_processes,
    log_shares,
    task_covariance,
    task_variance,
)
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.acquisition import log_augmented_improvement


class HedgedPriorParams(NamedTuple):
    """Parameters of `HedgedPrior`: learned priors, hypotheses and hyperpriors."""

    priors: LearnedPrior
    """J members, J in front of each array."""
    hypotheses: HypothesisArrays
    """Hypotheses with their weights."""
    transfer_log_odds: Array
    """Scalar: log-odds, before the first trial, of the learned priors against the processes of the task."""
    hyperpriors: TaskHyperpriors
    """Priors of the hyperparameters of the processes of the task."""
    steps: Array
    """i32: number of training steps of the priors."""
    held_out: HeldOutEvidence
    """Held-out evidence that chose the number of steps and the probability of transfer."""
    common: CommonPrior | None = None
    """The process that few past tasks have in common."""


class HedgedPosterior(NamedTuple):
    """The mixture given a history, with J members, H hypotheses and K processes of the task.

    The common process has C hypotheses; C is 0 without it.
    """

    past: tuple[PriorPosterior, ...]
    """What past tasks taught: the learned priors, with J in front of each array, and the common process if any, with 1
    in front."""
    trials: Trials
    """The history; its trend is the mean over members."""
    task_posteriors: TaskPosterior
    """Posteriors of the processes of the task; K in front."""
    log_weight: Array
    """f[J H + C + K]: logarithms of weights that sum to one."""

    @property
    def n_past(self) -> int:
        """J H + C."""
        return sum(group.log_weight.size for group in self.past)

    @property
    def past_weights(self) -> list[Array]:
        """Weights of the members of each group under its hypotheses: f[J, H], and f[1, C] of the common process."""
        shapes = [group.log_weight.shape for group in self.past]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = jnp.split(jnp.exp(self.log_weight[: self.n_past]), ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    @property
    def process_weights(self) -> Array:
        """Weights of the processes of the task, f[K]."""
        return jnp.exp(self.log_weight[self.n_past :])


def condition_mixture(
    config: LearnedPriorConfig, process_config: TaskProcessConfig, params: HedgedPriorParams, trials: Trials
) -> HedgedPosterior:
    """Conditions the mixture on a history, trials in the order of their evaluation; any numbers in empty slots."""
    x, y, where = trials.x, trials.y, trials.where
    trials = trials._replace(x=jnp.where(where[:, None], x, 0.0), y=jnp.where(where, y, 0.0))

    def condition(hypotheses: HypothesisArrays, priors: Any) -> PriorPosterior:
        return jax.vmap(lambda prior: condition_prior(config, hypotheses, prior, trials))(priors)

    common = params.common
    past, log_share_of_past = [condition(params.hypotheses, params.priors)], [jnp.zeros((), y.dtype)]
    if common is not None:
        past.append(condition(common.hypotheses, common.process))
        log_share_of_past = [jax.nn.log_sigmoid(-common.log_odds), jax.nn.log_sigmoid(common.log_odds)]
    trend = jnp.mean(past[0].features.trend, axis=0)
    trials = trials._replace(trend=jnp.where(where, trend, 0.0))
    tasks = condition_processes(process_config, params.hyperpriors, trials, config.degrees_of_freedom)
    # Equal responses do not identify the variance scale, so they must not change the weights.
    task_evidence = jnp.where(jnp.any(where & (trials.y != 0.0)), tasks.log_density, 0.0)
    log_transfer = jax.nn.log_sigmoid(params.transfer_log_odds)
    log_weights = [
        log_transfer - math.log(len(one.log_weight)) + one.log_weight.ravel() + log_share
        for one, log_share in zip(past, log_share_of_past, strict=True)
    ]
    own = jax.nn.log_sigmoid(-params.transfer_log_odds) + log_shares(process_config, y.dtype) + task_evidence
    log_weight = jax.nn.log_softmax(jnp.concatenate([*log_weights, own]))
    return HedgedPosterior(tuple(past), trials, tasks, log_weight)


def past_weight(posterior: HedgedPosterior) -> Array:
    """Returns the total weight of the components with the trend of past tasks, a scalar.

    These are the learned priors and the common process under the hypotheses that keep or weaken the trend, and the
    process of the task with the trend. The others drop or reverse the trend.
    """
    trend_weight = posterior.task_posteriors.process.trend_weight
    total = jnp.sum(jnp.where(trend_weight > 0.0, posterior.process_weights, 0.0))
    for group, weights in zip(posterior.past, posterior.past_weights, strict=True):
        total = jnp.sum(jnp.where(group.hypotheses.slope_mean > 0.0, weights, 0.0)) + total
    return total


def component_moments(config: LearnedPriorConfig, posterior: HedgedPosterior, new: Array) -> tuple[Array, Array]:
    """Returns the mean and variance of every component at new configurations f[m, D]; two f[J H + C + K, m]."""

    def member_moments(member: PriorPosterior) -> tuple[Array, Array, Array]:
        features = member.prior.compute_features(config, new)
        features = features._replace(trend=features.trend - member.trend_mean)

        def moments(hypothesis: HypothesisArrays, student_t: ConditionedStudentT) -> tuple[Array, Array]:
            scaled_prior = scale_variances(member.prior, hypothesis)
            cross = prior_covariance(member.features, features, scaled_prior)
            residual, variance = student_t.predict(cross, prior_variance(features, scaled_prior))
            return hypothesis.slope_mean * features.trend + residual, variance

        return *jax.vmap(moments)(member.hypotheses, member.student_t), features.trend

    def moments_of(group: PriorPosterior) -> tuple[Array, ...]:
        """Returns means and variances f[J H, m], and trends f[J, m]."""
        # One after the other needs less memory, all at once fewer operations: the candidates of a suggestion, in
        # float64, are few.
        map_members = jax.vmap(member_moments) if new.dtype == jnp.float64 else partial(lax.map, member_moments)
        means, variances, trends = map_members(group)
        return means.reshape(-1, new.shape[0]), variances.reshape(-1, new.shape[0]), trends

    groups = [moments_of(group) for group in posterior.past]
    trends = groups[0][2]
    trials, trend = posterior.trials, jnp.mean(trends, axis=0)

    def process_moments(task: TaskPosterior) -> tuple[Array, Array]:
        cross = task_covariance(task.process, trials.x, new, trials.trend, trend)
        residual, variance = task.student_t.predict(cross, task_variance(task.process, trend))
        return task.process.trend_weight * trend + residual, variance

    tasks = jax.vmap(process_moments)(posterior.task_posteriors)
    means, variances = (jnp.concatenate([*(group[i] for group in groups), tasks[i]]) for i in range(2))
    return means, variances


def predict_mixture(config: LearnedPriorConfig, posterior: HedgedPosterior, new: Array) -> tuple[Array, Array]:
    """Returns the mean and variance of the mixture at any number of new configurations f[m, D]; two f[m]."""
    share = jnp.exp(posterior.log_weight)[:, None]

    def block(rows: Array) -> tuple[Array, Array]:
        means, variances = component_moments(config, posterior, rows)
        # Accelerators round the inputs of matrix products, but not those of elementwise products and sums.
        mean = jnp.sum(share * means, axis=0)
        variance = jnp.sum(share * (variances + (means - mean[None, :]) ** 2), axis=0)
        return mean, jnp.maximum(variance, jnp.finfo(variance.dtype).tiny)

    return by_blocks(block, new)


def _noise_deviation(posterior: HedgedPosterior) -> Array:
    """Returns the standard deviation of every component's noise, f[J H + C + K]."""
    parts = []
    for group in posterior.past:
        log_noise_var = group.prior.log_noise_var[:, None] + group.hypotheses.log_noise_variance_factor
        parts.append((jnp.exp(log_noise_var) * group.student_t.variance_scale).ravel())
    tasks = posterior.task_posteriors
    parts.append(jnp.exp(tasks.process.log_noise_var) * tasks.student_t.variance_scale)
    return jnp.sqrt(jnp.concatenate(parts))


def improvement_weights(posterior: HedgedPosterior, n_fixed: int, interpolation: float) -> Array:
    """Returns the logarithms of the components' weights in the expected improvement, f[J H + C + K].

    Few short past studies cannot tell a fast variation from noise. A mixture that takes most of the variance of the
    responses for noise expects improvement nowhere near the best trials, and suggests what it knows least of. Where
    past tasks have a common process, ``interpolation`` times the noise's share of the variance therefore goes to the
    fixed processes of the task, which have little noise (an epsilon-contamination of the mixture; Berger and Berliner
    1986).

    Args:
      posterior: the mixture given a history.
      n_fixed: number of the fixed processes of the task.
      interpolation: their weight if all variance is noise; less than 1.
    """
    log_weight = posterior.log_weight
    if len(posterior.past) == 1 or interpolation == 0.0:
        return log_weight
    noise_var = jnp.sum(jnp.exp(log_weight) * _noise_deviation(posterior) ** 2)
    share = interpolation * jnp.minimum(noise_var, 1.0)  # standardised responses have the variance 1
    rest, log_fixed, log_fitted = jnp.split(log_weight, [posterior.n_past, posterior.n_past + n_fixed])
    log_extra = jnp.log(share) + jax.nn.log_softmax(log_fixed)
    log_rest = jnp.log1p(-share)
    return jnp.concatenate([rest + log_rest, jnp.logaddexp(log_fixed + log_rest, log_extra), log_fitted + log_rest])


def mean_and_improvement(
    config: LearnedPriorConfig, posterior: HedgedPosterior, new: Array, incumbent: Array, log_weight: Array
) -> tuple[Array, Array]:
    """Returns the mean of the mixture and the log of its expected improvement at new configurations, two f[m].

    The expected improvement is the weighted sum over components. The improvement of one Gaussian with the moments of
    the mixture differs: a component of little weight and another mean increases the variance everywhere.

    Args:
      config: sizes of the learned priors.
      posterior: the mixture given a history.
      new: f[m, D].
      incumbent: the best response, a scalar.
      log_weight: f[J H + C + K], the weights in the expected improvement (`improvement_weights`).
    """
    share = jnp.exp(posterior.log_weight)[:, None]
    noise = _noise_deviation(posterior)[:, None]

    def block(rows: Array) -> tuple[Array, Array]:
        means, variances = component_moments(config, posterior, rows)
        each = log_augmented_improvement(-means, jnp.sqrt(variances), -incumbent, noise)
        improvement = jax.nn.logsumexp(log_weight[:, None] + each, axis=0)
        return jnp.sum(share * means, axis=0), improvement

    return by_blocks(block, new)
