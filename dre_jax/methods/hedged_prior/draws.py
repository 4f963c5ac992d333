"""Functions drawn from the mixture of `hedged_posterior`, for Thompson sampling.

A component is drawn by its weight, then a function of that process: one of its prior, by random features, is moved to
the trials (Wilson et al. 2020, pathwise conditioning). So any number of configurations take no more than the product of
their features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.cholesky import cholesky_solve
from dre_jax.gp.kernels import matern52_features
from dre_jax.gp.regression import ConditionedGP, matmul
from dre_jax.methods.hedged_prior import task_process
from dre_jax.methods.hedged_prior.hypotheses import changed_by
from dre_jax.methods.hedged_prior.posterior import HedgedPosterior
from dre_jax.methods.hedged_prior.prior import OFFSET, LearnedPrior, LearnedPriorConfig, View, covariance, view
from dre_jax.methods.hedged_prior.task_process import TaskProcess, Trials
from dre_jax.methods.hedged_prior.weights import WeighedPriors
from dre_jax.runtime.blocks import by_blocks

FEATURES = 512
"""Cosines of a drawn function, for each of its two kernels."""


def draw_response(
    sizes: LearnedPriorConfig, past: WeighedPriors, posterior: HedgedPosterior, new: Array, key: Array
) -> Array:
    """Responses f[m] of one function at new configurations f[m, D]; arguments as in `hedged_posterior`.

    Over keys they have the mean and the variance of the mixture.
    """
    which_key, learned_key, own_key = jax.random.split(key, 3)
    which = jax.random.categorical(which_key, posterior.log_weight)
    n_learned = len(posterior.log_weight) - len(posterior.scale)
    learned = _learned_function(sizes, past, posterior, jnp.minimum(which, n_learned - 1), learned_key)
    own = _own_function(sizes, past, posterior, jnp.maximum(which - n_learned, 0), own_key)
    drawn: Array = by_blocks(lambda rows: jnp.where(which < n_learned, learned(rows), own(rows)), new)
    return drawn


def _learned_function(
    sizes: LearnedPriorConfig, past: WeighedPriors, posterior: HedgedPosterior, which: Array, key: Array
) -> Callable[[Array], Array]:
    """A function f[m] of configurations f[m, D], drawn from one of the learned priors."""
    member, hypothesis = jnp.divmod(which, len(past.by.log_weight))
    prior, known = _at(member, past.priors), _at(member, posterior.known)
    given, scale, by = _at(hypothesis, known.given), known.scale[hypothesis], _at(hypothesis, past.by)
    prior = changed_by(prior, by)
    prior_key, noise_key = jax.random.split(key)
    function = prior_function(prior, known.tried, prior_key)
    moved = _moved(given, scale, function(known.tried), prior.noise, noise_key)

    def values(rows: Array) -> Array:
        at = view(sizes, prior, rows)
        at = at._replace(trend=at.trend - known.centre)
        cross = jnp.where(given.where[:, None], covariance(known.tried, at, prior), 0.0)
        return by.slope * at.trend + matmul(moved, cross) + jnp.sqrt(scale) * function(at)

    return values


def _own_function(
    sizes: LearnedPriorConfig, past: WeighedPriors, posterior: HedgedPosterior, which: Array, key: Array
) -> Callable[[Array], Array]:
    """A function f[m] of configurations f[m, D], drawn from one of the processes of the task by itself."""
    process, given = _at(which, posterior.processes), _at(which, posterior.own)
    scale, trials = posterior.scale[which], posterior.trials
    prior_key, noise_key = jax.random.split(key)
    function = own_prior_function(process, trials, prior_key)
    moved = _moved(given, scale, function(trials.x, trials.trend), process.log_noise_var, noise_key)

    def trend_at(prior: LearnedPrior, centre: Array, rows: Array) -> Array:
        return view(sizes, prior, rows).trend - centre

    def values(rows: Array) -> Array:
        trend = jnp.mean(jax.vmap(trend_at, (0, 0, None))(past.priors, posterior.known.centre, rows), axis=0)
        cross = task_process.covariance(process, trials.x, rows, trials.trend, trend)
        cross = jnp.where(given.where[:, None], cross, 0.0)
        return process.slope * trend + matmul(moved, cross) + jnp.sqrt(scale) * function(rows, trend)

    return values


def _at(index: Array, tree: Any) -> Any:
    return jax.tree.map(lambda a: a[index], tree)


def _moved(given: ConditionedGP, scale: Array, drawn: Array, log_noise: Array, key: Array) -> Array:
    """Weights of the trials, f[n], that move a function of the prior to them."""
    noise = jnp.exp(0.5 * log_noise) * jax.random.normal(key, drawn.shape, drawn.dtype)
    return given.weights - jnp.sqrt(scale) * cholesky_solve(given.lower, jnp.where(given.where, drawn + noise, 0.0))


def own_prior_function(process: TaskProcess, trials: Trials, key: Array) -> Callable[[Array, Array], Array]:
    """A function f[n] of points f[n, D] and their trends f[n], of mean zero and the covariance of a process."""
    line_key, signal_key = jax.random.split(key)
    offset, slope = jax.random.normal(line_key, (2,), trials.y.dtype)
    slope = slope * jnp.sqrt(process.slope * task_process.SLOPE_VARIANCE)
    signal = _cosines(trials.x.shape[-1], jnp.exp(process.log_signal_var), signal_key)
    inverse = jnp.exp(-process.log_length)[None, :]
    return lambda x, trend: math.sqrt(OFFSET) * offset + slope * trend + signal(x * inverse)


def prior_function(prior: LearnedPrior, like: View, key: Array) -> Callable[[View], Array]:
    """A function f[n] of views, of mean zero and the covariance of a prior."""
    line_key, deep_key, plain_key = jax.random.split(key, 3)
    variances = jnp.stack([jnp.full_like(prior.slope, OFFSET), jnp.exp(prior.slope)])
    offset, slope = jax.random.normal(line_key, (2,)) * jnp.sqrt(variances)
    deep = _cosines(like.features.shape[-1], jnp.exp(prior.deep), deep_key)
    plain = _cosines(like.scaled.shape[-1], jnp.exp(prior.plain), plain_key)
    return lambda at: offset + slope * at.trend + deep(at.features) + plain(at.scaled)


def _cosines(n_columns: int, variance: Array, key: Array) -> Callable[[Array], Array]:
    frequency_key, phase_key, weight_key = jax.random.split(key, 3)
    frequencies = matern52_features(frequency_key, n_columns, FEATURES)
    phases = jax.random.uniform(phase_key, (1, FEATURES), maxval=2.0 * math.pi)
    weights = jax.random.normal(weight_key, (FEATURES,)) * jnp.sqrt(2.0 * variance / FEATURES)
    return lambda rows: matmul(jnp.cos(matmul(rows, frequencies) + phases), weights)
