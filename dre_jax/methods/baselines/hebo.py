"""HEBO's method on the library's Gaussian process (Cowen-Rivers et al. 2022).

It adds three ideas to Bayesian optimisation. A power transform makes the responses approximately normal (Yeo-Johnson,
because standardised responses have both signs). Columns are warped by Kumaraswamy's distribution functions,

    k(x, x') = s m(|w(x) / l - w(x') / l|),     w_d(x) = 1 - (1 - x_d^a_d)^b_d,

whose exponents maximise the marginal likelihood together with the other hyperparameters. Three acquisition functions
are maximised at once (MACE, Lyu et al. 2018), with noise on the predictions: the confidence bound, and the logarithms
of the expected improvement and of its probability,

    mean + n1 + kappa deviation,   log EI and log PI of mean + n2,   n1, n2 ~ N(0, 2 noise),
    kappa^2 = (4 + D) / 2 log t + log(pi^2 / delta),    delta = 0.01, t trials.

One of the candidates that no other beats in all three is drawn. HEBO finds these by an evolutionary algorithm; in a
table they are looked up (`pareto_front`). The process and its priors are those of `gp`. The package HEBO adds a linear
and a Matern 3/2 kernel, and begins with D + 1 random points.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.fit import GPConfig, clip_hyperparameters, log_hyperprior, maximise_from_starts
from dre_jax.gp.regression import GPParams, gp_posterior, log_marginal_likelihood
from dre_jax.gp.response_scale import standardise
from dre_jax.methods.entries.entry import Entry
from dre_jax.runtime.jit import jit_eager_calls
from dre_jax.search.acquisition import log_expected_improvement, log_probability_of_improvement
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import NoMetaLearning
from dre_jax.search.ranks import mean_tie_ranks

_BORDER = 1e-6  # powers have no finite slope at the ends of [0, 1]
_FLAT = 1e-3  # exponents nearer to zero are taken for their limit's first two terms
_REACH = 6.0  # of the exponents looked through, on both sides of 1, the identity
_GRID, _ROUNDS, _FINER = 61, 3, 21
MOST = 1024
"""Candidates that are compared with each other for the Pareto front."""


def kumaraswamy(x: Array, log_a: Array, log_b: Array) -> Array:
    """Returns Kumaraswamy's distribution function 1 - (1 - x^a)^b of each column, in [0, 1] (Snoek et al. 2014).

    f[..., D], f[D] and f[D]; logarithms of 0 change nothing.
    """
    shape = (1,) * (x.ndim - 1) + (-1,)
    a, b = jnp.exp(log_a).reshape(shape), jnp.exp(log_b).reshape(shape)
    x = jnp.clip(x, _BORDER, 1.0 - _BORDER)
    return -jnp.expm1(b * jnp.log(-jnp.expm1(a * jnp.log(x))))


def yeo_johnson(y: Array, exponent: Array) -> Array:
    """Returns the power transform of Yeo and Johnson (2000) of f[n], of either sign; an exponent of 1 keeps it."""
    power = jnp.where(y >= 0.0, exponent, 2.0 - exponent)
    log = jnp.log1p(jnp.abs(y))
    flat = jnp.abs(power) < _FLAT
    magnitude = jnp.where(flat, log * (1.0 + 0.5 * power * log), jnp.expm1(power * log) / jnp.where(flat, 1.0, power))
    return jnp.sign(y) * magnitude


def normal_exponent(y: Array, where: Array) -> Array:
    """Returns the exponent of the highest normal likelihood of standardised responses (Yeo and Johnson 2000, eq. 3.1).

    The search uses a grid from -5 to 7 that is refined three times. Equal responses give an arbitrary exponent.
    """
    count = jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0)
    slope = jnp.sum(jnp.where(where, jnp.sign(y) * jnp.log1p(jnp.abs(y)), 0.0))

    def likelihood(exponent: Array) -> Array:
        deviation = standardise(yeo_johnson(y, exponent), where).deviation
        return (exponent - 1.0) * slope - count * jnp.log(deviation)

    def best(exponents: Array) -> Array:
        return exponents[jnp.argmax(jax.vmap(likelihood)(exponents))]

    exponent = best(1.0 + jnp.linspace(-_REACH, _REACH, _GRID, dtype=y.dtype))
    width = 2.0 * _REACH / (_GRID - 1)
    for _ in range(_ROUNDS):
        exponent = best(exponent + jnp.linspace(-width, width, _FINER, dtype=y.dtype))
        width *= 2.0 / (_FINER - 1)
    return exponent


def to_normal(response: Array, where: Array) -> Array:
    """Returns responses of any scale, transformed to an approximately standard normal sample; 0 in empty slots."""
    y = standardise(response, where).y
    return standardise(yeo_johnson(y, normal_exponent(y, where)), where).y


_LOG_EXPONENT_STD = 0.75  # deviation of the logarithms of the exponents, a priori
_MAX_LOG_EXPONENT = math.log(20.0)


class WarpedGP(NamedTuple):
    """A Gaussian process on warped columns."""

    process: GPParams
    log_a: Array
    """f[D]"""
    log_b: Array
    """f[D]"""

    def warp(self, x: Array) -> Array:
        """Returns the warped columns; f[n, D] -> f[n, D]."""
        return kumaraswamy(x, self.log_a, self.log_b)


@dataclass(frozen=True, kw_only=True)
class HEBO(NoMetaLearning):
    """HEBO's method, without past tasks."""

    fitting: GPConfig = field(default_factory=GPConfig)
    """Search for hyperparameters and exponents."""
    margin: float = 1e-4
    """Least improvement that counts, in deviations of the transformed responses."""
    delta: float = 0.01
    """Delta of the confidence bound: a smaller one gives a wider bound."""

    def acquire(self, params: None, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns 1 for the candidates of the Pareto front, and 0 for all others."""
        y = to_normal(history.response, history.where)
        warped_gp = fit_warped_gp(self.fitting, history.x, y, history.where)
        warped_x = warped_gp.warp(history.x)
        best = jnp.argmax(jnp.where(history.where, y, -jnp.inf))
        target, _ = gp_posterior(warped_gp.process, warped_x, y, history.where, warped_x[best][None])
        mean, variance = gp_posterior(warped_gp.process, warped_x, y, history.where, warped_gp.warp(candidates.x))
        keys = jax.random.split(key, 3)
        values = self.objectives(mean, jnp.sqrt(variance), target[0], warped_gp.process, history, keys[:2])
        return pareto_front(values, candidates.where, keys[2]).astype(jnp.float32)

    def objectives(
        self, mean: Array, deviation: Array, target: Array, process: GPParams, history: History, keys: Array
    ) -> Array:
        """Returns confidence bound, log EI and log PI of noisy predictions; two f[N], a scalar, 2 keys -> f[3, N]."""
        spread = jnp.sqrt(2.0 * jnp.exp(process.log_noise))
        bound = mean + spread * jax.random.normal(keys[0], mean.shape, mean.dtype)
        cost = -(mean + spread * jax.random.normal(keys[1], mean.shape, mean.dtype))
        incumbent = -(target + self.margin)
        trials = jnp.sum(history.where, dtype=mean.dtype)
        growth = (2.0 + 0.5 * history.x.shape[-1]) * jnp.log(jnp.maximum(trials, 1.0))
        kappa = jnp.sqrt(growth + math.log(math.pi**2 / self.delta))
        return jnp.stack(
            [
                bound + kappa * deviation,
                log_expected_improvement(cost, deviation, incumbent),
                log_probability_of_improvement(cost, deviation, incumbent),
            ]
        )


def fit_warped_gp(config: GPConfig, x: Array, y: Array, where: Array) -> WarpedGP:
    """Returns the hyperparameters and exponents of the highest posterior density from two starts."""

    def objective(params: WarpedGP) -> Array:
        value = log_marginal_likelihood(params.process, params.warp(x), y, where)
        squares = jnp.sum(params.log_a**2) + jnp.sum(params.log_b**2)
        if not config.priors:
            return value
        return value + log_hyperprior(params.process, config.density_of) - 0.5 * squares / _LOG_EXPONENT_STD**2

    def project(params: WarpedGP) -> WarpedGP:
        log_a, log_b = (jnp.clip(log, -_MAX_LOG_EXPONENT, _MAX_LOG_EXPONENT) for log in (params.log_a, params.log_b))
        return WarpedGP(clip_hyperparameters(params.process), log_a, log_b)

    def start_at(process: GPParams) -> WarpedGP:
        return WarpedGP(process, jnp.zeros_like(process.log_length), jnp.zeros_like(process.log_length))

    return maximise_from_starts(config, objective, start_at, project, x)


@jit_eager_calls()
def pareto_front(values: Array, where: Array, key: Array) -> Array:
    """Returns the mask of the candidates that no other one equals or exceeds in all K values and exceeds in one.

    Of more than 1024 candidates, those with the least sum of ranks over all values are compared. A candidate that beats
    another has the lesser sum, so no beaten candidate counts as a member of the front. Members of the front with a
    larger sum are left out. The key decides among equal sums. f32[K, N] and bool[N] -> bool[N].
    """
    n = where.shape[0]
    all_where = jnp.broadcast_to(where, values.shape)
    total = jnp.where(where, jnp.sum(mean_tie_ranks(values, all_where), axis=0), jnp.inf)
    # The first of equal sums would be the best row of a table that is sorted by response.
    coins = jax.random.bits(key, (n,), jnp.uint32)
    _, _, order = jax.lax.sort((total, coins, jnp.arange(n)), num_keys=2)
    largest = order[:MOST]
    some, counts = values[:, largest], where[largest]
    no_worse = jnp.all(some[:, :, None] >= some[:, None, :], axis=0)
    better = jnp.any(some[:, :, None] > some[:, None, :], axis=0)
    is_dominated = jnp.any(no_worse & better & counts[:, None], axis=0)
    return jnp.zeros(n, bool).at[largest].set(counts & ~is_dominated)


ENTRIES = (
    Entry(
        name="hebo",
        summary="HEBO's method on the library's Gaussian process",
        paper="Cowen-Rivers et al. 2022",
        default=HEBO(),
    ),
)
