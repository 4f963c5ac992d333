"""Deep ranking ensemble as the prior of a Gaussian process; this library's own.

The meta-trained ensemble is not fine-tuned. Before every trial it sees the history through its deep sets and ranks all
configurations, and a Gaussian process takes these ranks for its prior. Every member j ranks all configurations; z_j(x)
is the rank of x as a quantile of a standard Gaussian, higher = better, and m(x) the mean over the M members.
Standardised responses are modelled as

    y(x) = b + a m(x) + sum_j w_j (z_j(x) - m(x)) + f(x) + noise,
    b ~ N(0, 1),    w_j ~ N(0, s / M),    f ~ GP(0, Matern 5/2).

The slope a is the weight of the ensemble's mean rank, s the variance of the weights of single members, and f what the
past tasks do not explain. The likelihood of the trials determines all of them, with priors around a = 1, so that only
trials which contradict the ensemble lead away from it. Linear in the unknowns but for a handful of
hyperparameters: one Gaussian process, with the mean a m(x) and the sum of three covariances. Where the ensemble is of
no use, it becomes an ordinary one. Expected improvement picks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.gp.fit import DensityOf, GPConfig, clip_hyperparameters, log_hyperprior, maximise_from_starts
from dre_jax.gp.regression import (
    GPParams,
    add_noise,
    condition_gp,
    log_gaussian_density,
    matmul,
    predict_signal,
    prepare_gp,
    signal_covariance,
)
from dre_jax.gp.response_scale import masked_mean
from dre_jax.methods.baselines.shared import ByResponse
from dre_jax.methods.dre.ensemble import EnsembleParams, Support, check_columns, scores, scores_in_blocks
from dre_jax.methods.dre.method import FromEnsemble
from dre_jax.methods.entry import Entry
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import jit_eager_calls
from dre_jax.search.history import Candidates, History
from dre_jax.search.ranks import gaussian_ranks

FITTING = GPConfig(learning_rate=0.1, first_lengths=(0.5, 0.5), density_of="logarithm")
"""From long length scales only: what differs from one configuration to the next, the ensemble is to say first."""

_OFFSET = 1.0  # variance of b
_LOG_SLOPE = (0.0, 0.3)  # mean and deviation of the prior; as below, in logarithms
_LOG_SPREAD = (-1.0, 1.0)
_LOG_SCALE = -2.0  # where the prior of f's variance has its mean
_SLOPES, _SPREADS = (-5.0, 2.0), (-7.0, 4.0)


class RankedPrior(NamedTuple):
    """Log hyperparameters."""

    residual_gp: GPParams
    """Hyperparameters of f and of the noise."""
    log_slope: Array
    """Scalar: a."""
    log_spread: Array
    """Scalar: s."""


class Ranked(NamedTuple):
    """Configurations with the ranks that the members of an ensemble give them."""

    x: Array
    """f[n, D]"""
    z: Array
    """f[n, M]: Gaussian quantiles of the members' ranks."""


def _mean(params: RankedPrior, z: Array, centre: Array) -> Array:
    """Returns a (m - centre); f[n, M] -> f[n]."""
    return jnp.exp(params.log_slope) * (jnp.mean(z, axis=1) - centre)


def _deviation_from_mean(z: Array) -> Array:
    return z - jnp.mean(z, axis=1, keepdims=True)


def _covariance(params: RankedPrior, one: Ranked, other: Ranked) -> Array:
    """Returns the covariance of the sum of b, the weighted members and f at n and m configurations, f[n, m]."""
    members = (
        jnp.exp(params.log_spread)
        / one.z.shape[1]
        * matmul(_deviation_from_mean(one.z), _deviation_from_mean(other.z).T)
    )
    return _OFFSET + members + signal_covariance(params.residual_gp, one.x, other.x)


def _centre(z: Array, where: Array) -> Array:
    """Returns the mean of m over the trials. It is subtracted, because the responses are centred."""
    return masked_mean(jnp.mean(z, axis=1), where)


def _covariance_and_residuals(params: RankedPrior, at: Ranked, y: Array, where: Array) -> tuple[Array, Array]:
    """Returns the covariance of the observations, f[n, n], and the observations minus their prior mean, f[n]."""
    matrix = add_noise(_covariance(params, at, at), jnp.exp(params.residual_gp.log_noise), where)
    return matrix, jnp.where(where, y - _mean(params, at.z, _centre(at.z, where)), 0.0)


def ranked_log_likelihood(params: RankedPrior, at: Ranked, y: Array, where: Array) -> Array:
    """Returns the log-likelihood of observations, a scalar; y f[n] standardised, where bool[n]."""
    matrix, residuals = _covariance_and_residuals(params, at, y, where)
    return log_gaussian_density(matrix, residuals, where)


def _log_prior(params: RankedPrior, density_of: DensityOf) -> Array:
    residual_gp = replace(params.residual_gp, log_scale=params.residual_gp.log_scale - _LOG_SCALE)
    slope = (params.log_slope - _LOG_SLOPE[0]) / _LOG_SLOPE[1]
    spread = (params.log_spread - _LOG_SPREAD[0]) / _LOG_SPREAD[1]
    return log_hyperprior(residual_gp, density_of) - 0.5 * (slope**2 + spread**2)


def _clip_ranked_prior(params: RankedPrior) -> RankedPrior:
    return RankedPrior(
        clip_hyperparameters(params.residual_gp),
        jnp.clip(params.log_slope, *_SLOPES),
        jnp.clip(params.log_spread, *_SPREADS),
    )


def fit_ranked_prior(config: GPConfig, at: Ranked, y: Array, where: Array) -> RankedPrior:
    """Returns the hyperparameters of the highest posterior density (without priors: likelihood) from two starts."""

    def objective(params: RankedPrior) -> Array:
        value = ranked_log_likelihood(params, at, y, where)
        return value + _log_prior(params, config.density_of) if config.priors else value

    def start_at(process: GPParams) -> RankedPrior:
        slope, spread, scale = (jnp.full((), a, y.dtype) for a in (_LOG_SLOPE[0], _LOG_SPREAD[0], _LOG_SCALE))
        return RankedPrior(replace(process, log_scale=scale), slope, spread)

    return maximise_from_starts(config, objective, start_at, _clip_ranked_prior, at.x)


@jit_eager_calls()
def ranked_posterior(params: RankedPrior, at: Ranked, y: Array, where: Array, new: Ranked) -> tuple[Array, Array]:
    """Returns the posterior mean and variance of the signal at any number of new configurations.

    Example:
      >>> zero = jnp.float32(0.0)
      >>> params = RankedPrior(GPParams(jnp.zeros(1), zero - 9.0, zero - 9.0), zero, zero - 7.0)
      >>> new = Ranked(jnp.zeros((2, 1)), jnp.array([[1.0, 1.0], [-1.0, -1.0]]))
      >>> nothing = Ranked(jnp.zeros((1, 1)), jnp.zeros((1, 2))), jnp.zeros(1), jnp.zeros(1, bool)
      >>> ranked_posterior(params, *nothing, new)[0].tolist()
      [1.0, -1.0]
    """
    prepared = prepare_gp(condition_gp(*_covariance_and_residuals(params, at, y, where), where))
    centre, n_columns = _centre(at.z, where), at.x.shape[1]

    def block(rows: Array) -> tuple[Array, Array]:
        one = Ranked(rows[:, :n_columns], rows[:, n_columns:])
        members = jnp.exp(params.log_spread) / one.z.shape[1] * jnp.sum(_deviation_from_mean(one.z) ** 2, axis=1)
        prior_variance = _OFFSET + members + jnp.exp(params.residual_gp.log_scale)
        mean, variance = predict_signal(prepared, _covariance(params, at, one), prior_variance)
        return _mean(params, one.z, centre) + mean, variance

    return by_blocks(block, jnp.concatenate(new, axis=1))


@dataclass(frozen=True, kw_only=True)
class RankedGaussianProcess(FromEnsemble, ByResponse):
    """A Gaussian process around what a meta-trained ranking ensemble expects.

    Example:
      >>> RankedGaussianProcess(fitting=GPConfig(steps=50)).acquisition.kind
      'ei'
    """

    fitting: GPConfig = FITTING
    """Search for the Gaussian process' hyperparameters."""

    def predict(
        self, params: EnsembleParams, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the mean and variance of the Gaussian process, which is fitted to the ranked trials."""
        trials, new = self.ranked(params, history, candidates)
        return ranked_posterior(fit_ranked_prior(self.fitting, trials, y, history.where), trials, y, history.where, new)

    def ranked(self, params: EnsembleParams, history: History, candidates: Candidates) -> tuple[Ranked, Ranked]:
        """Returns trials and candidates with their ranks by each member, among trials and candidates together."""
        check_columns(self.model, params, candidates.x.shape[-1])
        support = Support(history.x, history.response, history.where)
        # Apart, so that the runs of a task go on sharing its table.
        of_candidates = scores_in_blocks(self.model, params, support, candidates.x)
        of_history = scores(self.model, params, support, history.x)
        z = gaussian_ranks(
            jnp.concatenate([of_history, of_candidates], axis=1), jnp.concatenate([history.where, candidates.where])
        ).T
        n = history.where.shape[0]
        return Ranked(history.x, z[:n]), Ranked(candidates.x, z[n:])


ENTRIES = (
    Entry(
        name="dre-gp",
        summary="Gaussian process around what a deep ranking ensemble expects; this library's own",
        paper="this library",
        transfer=True,
        default=RankedGaussianProcess(),
        free=("fitting", "acquisition"),
        reads_checkpoints=True,
    ),
)
