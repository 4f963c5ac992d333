"""The predictive mixture of the recommended method: learned priors under hypotheses, and processes of the task alone.

A component is either a member's learned prior under one hypothesis (`hypotheses`) or a Gaussian process of the task
(`task_process`), whose hyperparameters are fixed or fitted, with or without the learned trend. Before the first trial
the learned priors have the total weight `HedgedPriorParams.transfer_log_odds` (as a probability) and the processes of
the task have the remaining weight. The marginal likelihood of the trials then updates the weights.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.gp.regression import PreparedGP, predict_signal, prepare_gp
from dre_jax.methods.hedged_prior.hypotheses import (
    HypothesisArrays,
    PriorPosterior,
    condition_prior,
    scale_variances,
)
from dre_jax.methods.hedged_prior.prior import (
    LearnedPrior,
    LearnedPriorConfig,
    compute_features,
    prior_covariance,
    prior_variance,
)
from dre_jax.methods.hedged_prior.task_process import (
    TaskPosterior,
    TaskProcessConfig,
    Trials,
    condition_processes,
    log_shares,
    task_covariance,
    task_variance,
)
from dre_jax.methods.hedged_prior.weights import HedgedPriorParams
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.acquisition import log_augmented_improvement


class HedgedPosterior(NamedTuple):
    """The mixture given a history, with J members, H hypotheses and K processes of the task."""

    prior_posteriors: PriorPosterior
    """Posteriors of the learned priors; J in front."""
    prepared_priors: PreparedGP
    """Their processes, prepared for predictions; [J, H] in front."""
    trials: Trials
    """The history; its trend is the mean over members."""
    task_posteriors: TaskPosterior
    """Posteriors of the processes of the task; K in front."""
    prepared_processes: PreparedGP
    """Those processes, prepared for predictions; K in front."""
    log_weight: Array
    """f[J H + K]: logarithms of weights that sum to one."""

    @property
    def n_learned(self) -> int:
        """J H."""
        return self.prior_posteriors.log_weight.size

    @property
    def learned_weights(self) -> Array:
        """Weights of the learned priors, f[J, H]."""
        return jnp.exp(self.log_weight[: self.n_learned]).reshape(self.prior_posteriors.log_weight.shape)

    @property
    def process_weights(self) -> Array:
        """Weights of the processes of the task, f[K]."""
        return jnp.exp(self.log_weight[self.n_learned :])


def condition_mixture(
    config: LearnedPriorConfig,
    process_config: TaskProcessConfig,
    params: HedgedPriorParams,
    x: Array,
    y: Array,
    where: Array,
    noise_var: Array | None = None,
) -> HedgedPosterior:
    """Conditions the mixture on a history.

    Args:
      config: sizes of the learned priors.
      process_config: settings of the processes of the task.
      params: learned priors, hypotheses and hyperpriors.
      x: f[n, D], the trials in the order of their evaluation.
      y: f[n], their standardised responses.
      where: bool[n], the filled slots.
      noise_var: f[n], known error variances of single responses, on the scale of ``y``; None for none.
    """
    x, y = jnp.where(where[:, None], x, 0.0), jnp.where(where, y, 0.0)

    def condition_on(prior: LearnedPrior) -> PriorPosterior:
        return condition_prior(config, params.hypotheses, prior, x, y, where, noise_var)

    posteriors = jax.vmap(condition_on)(params.priors)
    trials = Trials(x, jnp.where(where, jnp.mean(posteriors.features.trend, axis=0), 0.0), y, where, noise_var)
    tasks = condition_processes(process_config, params.hyperpriors, trials, config.degrees_of_freedom)
    # Equal responses do not identify the variance scale, so they must not change the weights.
    task_evidence = jnp.where(jnp.any(where & (y != 0.0)), tasks.log_density, 0.0)
    n_members = len(posteriors.trend_mean)
    log_weight = jnp.concatenate(
        [
            jax.nn.log_sigmoid(params.transfer_log_odds) - math.log(n_members) + posteriors.log_weight.ravel(),
            jax.nn.log_sigmoid(-params.transfer_log_odds) + log_shares(process_config, y.dtype) + task_evidence,
        ]
    )
    return HedgedPosterior(
        posteriors,
        jax.vmap(jax.vmap(prepare_gp))(posteriors.gp),
        trials,
        tasks,
        jax.vmap(prepare_gp)(tasks.gp),
        jax.nn.log_softmax(log_weight),
    )


def past_weight(hypotheses: HypothesisArrays, posterior: HedgedPosterior) -> Array:
    """Returns the total weight of the components with the trend of past tasks, a scalar.

    These are the learned priors under the hypotheses that keep or weaken the trend, and the process with the trend. The
    others drop or reverse the trend.
    """
    learned = jnp.where(hypotheses.slope_mean[None, :] > 0.0, posterior.learned_weights, 0.0)
    trend_weight = posterior.task_posteriors.process.trend_weight
    return jnp.sum(learned) + jnp.sum(jnp.where(trend_weight > 0.0, posterior.process_weights, 0.0))


def component_moments(
    config: LearnedPriorConfig, params: HedgedPriorParams, posterior: HedgedPosterior, new: Array
) -> tuple[Array, Array]:
    """Returns the mean and variance of every component at new configurations f[m, D]; two f[J H + K, m]."""

    def member_moments(args: tuple[LearnedPrior, PriorPosterior, PreparedGP]) -> tuple[Array, Array, Array]:
        prior, conditioned, prepared = args
        features = compute_features(config, prior, new)
        features = features._replace(trend=features.trend - conditioned.trend_mean)

        def moments(hypothesis: HypothesisArrays, prepared: PreparedGP, scale: Array) -> tuple[Array, Array]:
            scaled = scale_variances(prior, hypothesis)
            cross = prior_covariance(conditioned.features, features, scaled)
            residual, variance = predict_signal(prepared, cross, prior_variance(features, scaled))
            return hypothesis.slope_mean * features.trend + residual, scale * variance

        return *jax.vmap(moments)(params.hypotheses, prepared, conditioned.variance_scale), features.trend

    members = params.priors, posterior.prior_posteriors, posterior.prepared_priors
    # One after the other needs less memory, all at once fewer operations: the candidates of a suggestion, in float64,
    # are few.
    map_members = jax.vmap(member_moments) if new.dtype == jnp.float64 else partial(lax.map, member_moments)
    means, variances, trends = map_members(members)
    trials, trend = posterior.trials, jnp.mean(trends, axis=0)

    def process_moments(task: TaskPosterior, prepared: PreparedGP) -> tuple[Array, Array]:
        cross = task_covariance(task.process, trials.x, new, trials.trend, trend)
        residual, variance = predict_signal(prepared, cross, task_variance(task.process, trend))
        return task.process.trend_weight * trend + residual, task.variance_scale * variance

    task_means, task_variances = jax.vmap(process_moments)(posterior.task_posteriors, posterior.prepared_processes)
    flat = (-1, new.shape[0])
    return (
        jnp.concatenate([means.reshape(flat), task_means]),
        jnp.concatenate([variances.reshape(flat), task_variances]),
    )


def predict_mixture(
    config: LearnedPriorConfig, params: HedgedPriorParams, posterior: HedgedPosterior, new: Array
) -> tuple[Array, Array]:
    """Returns the mean and variance of the mixture at any number of new configurations f[m, D]; two f[m]."""
    share = jnp.exp(posterior.log_weight)[:, None]

    def block(rows: Array) -> tuple[Array, Array]:
        means, variances = component_moments(config, params, posterior, rows)
        # Accelerators round the inputs of matrix products, but not those of elementwise products and sums.
        mean = jnp.sum(share * means, axis=0)
        variance = jnp.sum(share * (variances + (means - mean[None, :]) ** 2), axis=0)
        return mean, jnp.maximum(variance, jnp.finfo(variance.dtype).tiny)

    return by_blocks(block, new)


def _noise_deviation(params: HedgedPriorParams, posterior: HedgedPosterior) -> Array:
    """Returns the standard deviation of every component's noise, f[J H + K]."""
    log_noise_var = params.priors.log_noise_var[:, None] + params.hypotheses.log_noise_variance_factor[None, :]
    learned = jnp.exp(log_noise_var) * posterior.prior_posteriors.variance_scale
    tasks = posterior.task_posteriors
    processes = jnp.exp(tasks.process.log_noise_var) * tasks.variance_scale
    return jnp.sqrt(jnp.concatenate([learned.ravel(), processes]))


def mean_and_improvement(
    config: LearnedPriorConfig, params: HedgedPriorParams, posterior: HedgedPosterior, new: Array, incumbent: Array
) -> tuple[Array, Array]:
    """Returns the mean of the mixture and the log of its expected improvement at new configurations, two f[m].

    The expected improvement is the weighted sum over components. The improvement of one Gaussian with the moments of
    the mixture differs: a component of little weight and another mean increases the variance everywhere.

    Args:
      config: sizes of the learned priors.
      params: learned priors and hypotheses.
      posterior: the mixture given a history.
      new: f[m, D].
      incumbent: the best response, a scalar.
    """
    share = jnp.exp(posterior.log_weight)[:, None]
    noise = _noise_deviation(params, posterior)[:, None]

    def block(rows: Array) -> tuple[Array, Array]:
        means, variances = component_moments(config, params, posterior, rows)
        each = log_augmented_improvement(-means, jnp.sqrt(variances), -incumbent, noise)
        improvement = jax.nn.logsumexp(posterior.log_weight[:, None] + each, axis=0)
        return jnp.sum(share * means, axis=0), improvement

    return by_blocks(block, new)
