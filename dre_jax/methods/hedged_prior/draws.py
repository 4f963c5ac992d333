"""Samples of functions from the mixture of `posterior`, for Thompson sampling.

A component is sampled by its weight, then a function of its process: a sample of the prior from random Fourier features
is conditioned on the trials (pathwise conditioning, Wilson et al. 2020). The cost is linear in the number of
configurations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.cholesky import cholesky_solve
from dre_jax.gp.fourier import sample_matern52
from dre_jax.gp.regression import matmul, observation_noise
from dre_jax.gp.student import ConditionedStudentT
from dre_jax.methods.hedged_prior import task_process
from dre_jax.methods.hedged_prior.hypotheses import PriorPosterior, scale_variances
from dre_jax.methods.hedged_prior.posterior import HedgedPosterior
from dre_jax.methods.hedged_prior.prior import (
    OFFSET_VAR,
    SLOPE_VARIANCE,
    LearnedPriorConfig,
    Prior,
    PriorFeatures,
    Trials,
    prior_covariance,
)
from dre_jax.methods.hedged_prior.task_process import TaskProcess
from dre_jax.runtime.blocks import by_blocks


def sample_responses(config: LearnedPriorConfig, posterior: HedgedPosterior, new: Array, key: Array) -> Array:
    """Samples one function and returns its values f[m] at new configurations f[m, D].

    Over keys, the values have the mean and the variance of the mixture. Other arguments as in `predict_mixture`.
    """
    component_key, *keys = jax.random.split(key, 3)
    component, n_past = jax.random.categorical(component_key, posterior.log_weight), posterior.n_past
    first, samples = 0, []
    for i, group in enumerate(posterior.past):
        size = group.log_weight.size
        number, group_key = jnp.clip(component - first, 0, size - 1), keys[0] if i == 0 else jax.random.fold_in(key, i)
        function = _sample_learned_prior(config, group, posterior.trials, number, group_key)
        first += size
        samples.append((first, function))
    process = _sample_process(config, posterior, jnp.maximum(component - n_past, 0), keys[1])

    def values(rows: Array) -> Array:
        value = process(rows)
        for end, function in reversed(samples):
            value = jnp.where(component < end, function(rows), value)
        return value

    return by_blocks(values, new)


def _sample_learned_prior(
    config: LearnedPriorConfig, group: PriorPosterior, trials: Trials, component: Array, key: Array
) -> Callable[[Array], Array]:
    """Samples a function f[m, D] -> f[m] from one of J priors under one of H hypotheses, component j H + h."""
    member, number = jnp.divmod(component, group.log_weight.shape[1])
    member_posterior = _take(member, group)
    student_t, hypothesis = _take(number, (member_posterior.student_t, member_posterior.hypotheses))
    prior = scale_variances(member_posterior.prior, hypothesis)
    prior_key, noise_key = jax.random.split(key)
    function = sample_prior(prior, member_posterior.features, prior_key)
    noise_var = observation_noise(prior.log_noise_var, trials.noise_var)
    residual = _condition_sample(student_t, function(member_posterior.features), noise_var, noise_key)

    def values(rows: Array) -> Array:
        features = prior.compute_features(config, rows)
        features = features._replace(trend=features.trend - member_posterior.trend_mean)
        cross = prior_covariance(member_posterior.features, features, prior)
        return hypothesis.slope_mean * features.trend + residual(cross, function(features))

    return values


def _sample_process(
    config: LearnedPriorConfig, posterior: HedgedPosterior, component: Array, key: Array
) -> Callable[[Array], Array]:
    """Samples a function f[m, D] -> f[m] from one of the processes of the task."""
    process, student_t, _ = _take(component, posterior.task_posteriors)
    trials, past_posterior = posterior.trials, posterior.past[0]
    prior_key, noise_key = jax.random.split(key)
    function = sample_process_prior(process, trials, prior_key)
    noise_var = observation_noise(process.log_noise_var, trials.noise_var)
    residual = _condition_sample(student_t, function(trials.x, trials.trend), noise_var, noise_key)

    def values(rows: Array) -> Array:
        trends = jax.vmap(lambda prior: prior.compute_features(config, rows).trend)(past_posterior.prior)
        trend = jnp.mean(trends - past_posterior.trend_mean[:, None], axis=0)
        cross = task_process.task_covariance(process, trials.x, rows, trials.trend, trend)
        return process.trend_weight * trend + residual(cross, function(rows, trend))

    return values


def _take(index: Array, tree: Any) -> Any:
    return jax.tree.map(lambda a: a[index], tree)


def _condition_sample(
    student_t: ConditionedStudentT, at_trials: Array, noise_var: Array, key: Array
) -> Callable[[Array, Array], Array]:
    """Conditions a sample of the prior on the trials (Matheron's rule), given its values f[n] there.

    The function that it returns maps the covariance f[n, m] of the trials and other points, and the sample's values
    f[m] there, to those of the posterior, f[m].
    """
    gp, deviation = student_t.gp, jnp.sqrt(student_t.variance_scale)
    noise = jnp.sqrt(noise_var) * jax.random.normal(key, at_trials.shape, at_trials.dtype)
    weights = gp.weights - deviation * cholesky_solve(gp.lower, jnp.where(gp.where, at_trials + noise, 0.0))
    return lambda cross, sample: matmul(weights, jnp.where(gp.where[:, None], cross, 0.0)) + deviation * sample


def sample_process_prior(process: TaskProcess, trials: Trials, key: Array) -> Callable[[Array, Array], Array]:
    """Samples a function of points f[n, D] and their trends f[n], with mean zero and the covariance of a process."""
    line_key, signal_key = jax.random.split(key)
    offset, slope = jax.random.normal(line_key, (2,), trials.y.dtype)
    slope = slope * jnp.sqrt(process.trend_weight * SLOPE_VARIANCE)
    signal = sample_matern52(trials.x.shape[-1], jnp.exp(process.log_signal_var), signal_key)
    inverse = jnp.exp(-process.log_lengthscale)[None, :]
    return lambda x, trend: math.sqrt(OFFSET_VAR) * offset + slope * trend + signal(x * inverse)


def sample_prior(prior: Prior, features: PriorFeatures, key: Array) -> Callable[[PriorFeatures], Array]:
    """Samples a function of features, with mean zero and the covariance of a prior.

    Only the numbers of columns of ``features`` are read.
    """
    line_key, feature_key, ard_key = jax.random.split(key, 3)
    variances = jnp.stack([jnp.full_like(prior.log_slope_var, OFFSET_VAR), jnp.exp(prior.log_slope_var)])
    offset, slope = jax.random.normal(line_key, (2,)) * jnp.sqrt(variances)
    feature_sample = prior.sample_features(features.features.shape[-1], feature_key)
    ard = sample_matern52(features.scaled_columns.shape[-1], jnp.exp(prior.log_ard_var), ard_key)
    return lambda new: offset + slope * new.trend + feature_sample(new.features) + ard(new.scaled_columns)
