"""Functions drawn from the mixture of `hypotheses`, for Thompson sampling.

A prior and a hypothesis are drawn by their evidence, then a function of that process: one of its prior, by random
features, is moved to the trials (Wilson et al. 2020, pathwise conditioning). So any number of configurations take no
more than the product of their features.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.model.blocks import by_blocks
from dre_jax.surrogates.cholesky import solve
from dre_jax.surrogates.gp import matmul
from dre_jax.surrogates.hypotheses import Believed, changed_by, condition_all
from dre_jax.surrogates.kernels import matern52_features
from dre_jax.surrogates.learned_prior import OFFSET, LearnedPrior, LearnedPriorConfig, View, covariance, view

FEATURES = 512
"""Cosines of a drawn function, for each of its two kernels."""


def draw_response(
    config: LearnedPriorConfig,
    by: Believed,
    priors: LearnedPrior,
    x: Array,
    y: Array,
    where: Array,
    new: Array,
    key: Array,
) -> Array:
    """Responses f[m] of one function at new configurations f[m, D]; arguments as in `hypotheses.posterior`.

    Over keys they have the mean and the variance of the mixture.
    """
    which_key, prior_key, noise_key = jax.random.split(key, 3)
    known, share = condition_all(config, by, priors, x, y, where)
    which = jax.random.categorical(which_key, jnp.log(share).ravel())
    member, hypothesis = jnp.divmod(which, share.shape[1])
    prior = jax.tree.map(lambda a: a[member], priors)
    tried, centre = jax.tree.map(lambda a: a[member], (known.tried, known.centre))
    given, scale = jax.tree.map(lambda a: a[member, hypothesis], (known.given, known.scale))
    by = Believed(*(a[hypothesis] for a in by))
    prior = changed_by(prior, by)
    function = prior_function(prior, tried, prior_key)
    noise = jnp.exp(0.5 * prior.noise) * jax.random.normal(noise_key, where.shape)
    moved = given.weights - jnp.sqrt(scale) * solve(given.lower, jnp.where(where, function(tried) + noise, 0.0))

    def block(rows: Array) -> Array:
        at = view(config, prior, rows)
        at = at._replace(trend=at.trend - centre)
        cross = jnp.where(where[:, None], covariance(tried, at, prior), 0.0)
        return by.slope * at.trend + matmul(moved, cross) + jnp.sqrt(scale) * function(at)

    found: Array = by_blocks(block, new)
    return found


def prior_function(prior: LearnedPrior, like: View, key: Array) -> Callable[[View], Array]:
    """A function f[n] of views, of mean zero and the covariance of a prior."""
    line_key, deep_key, plain_key = jax.random.split(key, 3)
    offset, slope = jax.random.normal(line_key, (2,)) * jnp.sqrt(jnp.stack([jnp.float32(OFFSET), jnp.exp(prior.slope)]))
    deep = _cosines(like.features.shape[-1], jnp.exp(prior.deep), deep_key)
    plain = _cosines(like.scaled.shape[-1], jnp.exp(prior.plain), plain_key)
    return lambda at: offset + slope * at.trend + deep(at.features) + plain(at.scaled)


def _cosines(n_columns: int, variance: Array, key: Array) -> Callable[[Array], Array]:
    frequency_key, phase_key, weight_key = jax.random.split(key, 3)
    frequencies = matern52_features(frequency_key, n_columns, FEATURES)
    phases = jax.random.uniform(phase_key, (1, FEATURES), maxval=2.0 * math.pi)
    weights = jax.random.normal(weight_key, (FEATURES,)) * jnp.sqrt(2.0 * variance / FEATURES)
    return lambda rows: matmul(jnp.cos(matmul(rows, frequencies) + phases), weights)
