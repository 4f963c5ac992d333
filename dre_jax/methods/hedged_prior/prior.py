"""Priors of Gaussian processes that are learned from past tasks (after Wang et al. 2024, pre-trained priors).

Standardised responses of a task are modelled as

    y(x) = b + a m(x) + g(phi(x)) + f(x) + noise,
    b ~ N(0, 1),    a ~ N(1, A),    g ~ GP(0, G Matern 5/2),    f ~ GP(0, F Matern 5/2),    noise ~ N(0, E),

m and phi two small networks, f with a length scale for each column, and all variances times a scale of the task's own
(`student`). m says what past tasks have in common, the kernel of phi which configurations differ together from it, f
what neither knows of. There are several members, with networks of their own. `prior_training` learns them;
`hypotheses` puts them to a history.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.checks import layer_sizes, positive
from dre_jax.errors import ConfigError
from dre_jax.gp.kernels import matern52, squared_distances_by_products
from dre_jax.gp.regression import add_noise
from dre_jax.nn import mlp

OFFSET = 1.0
"""Variance of b."""
PLAIN_LENGTHS, PLAIN_NOISE = (0.1, 0.25, 0.6), 1e-3
"""Length scales, in roots of the number of columns, and E of processes that know nothing of past tasks."""
_SLOPES, _DEEP, _PLAIN, _NOISES, _LENGTHS = (-6.0, 1.0), (-9.0, 2.0), (-6.0, 2.0), (-8.0, 0.0), (-3.0, 4.0)
_HYPERPRIORS = {"slope": (-2.0, 1.5), "deep": (-0.7, 1.5), "plain": (-1.2, 1.0), "noise": (-4.6, 1.5)}
_LENGTH_SPREAD = 1.0


@dataclass(frozen=True, kw_only=True)
class LearnedPriorConfig:
    """Sizes of the networks.

    Raises:
      ConfigError: where a number is not positive, or the degrees of freedom are two or fewer.
    """

    trend: tuple[int, ...] = (50, 50)
    """Hidden layers of m."""
    layers: tuple[int, ...] = (32, 32, 32, 32)
    """Layers of phi; the last are the features."""
    members: int = 2
    """Priors that are learned, each from other random weights and other draws."""
    freedom: float = 5.0
    """nu, above 2, so that predictions have a variance: the less, the less is thought to be known of a task's scale."""

    def __post_init__(self) -> None:
        layer_sizes(self, "trend", "layers")
        positive(self, "members")
        if not self.freedom > 2.0:
            raise ConfigError(f"freedom > 2 must hold, but got freedom={self.freedom}")

    @property
    def trend_network(self) -> mlp.MLPConfig:
        """The network m."""
        return mlp.MLPConfig(hidden=self.trend, activation="relu")

    @property
    def feature_network(self) -> mlp.MLPConfig:
        """The network phi."""
        return mlp.MLPConfig(hidden=self.layers[:-1], activation="relu", outputs=self.layers[-1])


class LearnedPrior(NamedTuple):
    """Parameters of a prior; variances and lengths in logarithms."""

    trend: mlp.MLPParams
    features: mlp.MLPParams
    slope: Array
    """Scalar: A."""
    deep: Array
    """Scalar: G."""
    plain: Array
    """Scalar: F."""
    noise: Array
    """Scalar: E."""
    length: Array
    """f[D]: of f."""


class View(NamedTuple):
    """Configurations as a prior sees them."""

    trend: Array
    """f[n]: m, less its mean over the trials."""
    features: Array
    """f[n, F]: phi."""
    scaled: Array
    """f[n, D]: columns divided by their length scales."""


def init(config: LearnedPriorConfig, n_columns: int, key_trend: Array, key_features: Array) -> LearnedPrior:
    """A prior with random networks, for D columns."""
    network = mlp.init(config.feature_network, n_columns, key_features)
    # A ReLU lets half of the variance through; in front of the first layer there is none, and biases are zero.
    network = {name: a if name == "hidden_0_kernel" else a * math.sqrt(2.0) for name, a in network.items()}
    zero = jnp.zeros((), jnp.float32)
    return LearnedPrior(
        trend=mlp.init(config.trend_network, n_columns, key_trend),
        features=network,
        slope=zero - 2.0,
        deep=zero - 0.7,
        plain=zero - 2.0,
        noise=zero - 3.0,
        length=jnp.full(n_columns, _usual_log_length(n_columns), jnp.float32),
    )


def _usual_log_length(n_columns: int) -> float:
    """Half the root of the number of columns, with which distances grow (Hvarfner et al. 2024)."""
    return 0.5 * math.log(max(n_columns, 1)) - 0.7


def log_hyperprior(prior: LearnedPrior) -> Array:
    """Log-density of A, G, F, E and the length scales under independent log-normals, up to a constant; a scalar.

    Densities are of the logarithms: at their mode A is 0.14, G 0.5, F 0.3, E 0.01 and a length half the root of the
    number of columns (the root as in Hvarfner et al. 2024).
    """
    usual = _usual_log_length(prior.length.shape[-1])
    squares = [((getattr(prior, name) - mean) / spread) ** 2 for name, (mean, spread) in _HYPERPRIORS.items()]
    return -0.5 * (sum(squares) + jnp.sum(((prior.length - usual) / _LENGTH_SPREAD) ** 2))


def plain_priors(config: LearnedPriorConfig, n_columns: int) -> LearnedPrior:
    """Priors that know nothing of past tasks: F = 1, E = 0.001, lengths of 0.1, 0.25 and 0.6 roots of D; 3 in front."""
    empty = jax.tree.map(jnp.zeros_like, init(config, n_columns, jax.random.key(0), jax.random.key(0)))
    shares = jnp.log(jnp.array(PLAIN_LENGTHS, jnp.float32)) + 0.5 * math.log(max(n_columns, 1))
    nothing = jnp.full_like(shares, -jnp.inf)
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (3, *a.shape)), empty)._replace(
        slope=nothing,
        deep=nothing,
        noise=jnp.full_like(shares, math.log(PLAIN_NOISE)),
        length=jnp.broadcast_to(shares[:, None], (3, n_columns)),
    )


def widen(prior: LearnedPrior, n_columns: int, width: int) -> LearnedPrior:
    """A prior, or many with members in front of each array, for tables with more columns.

    Args:
      prior: made for D columns.
      n_columns: D.
      width: columns that it is to have.

    Where the columns that are added are zero, means and covariances stay as they were.
    """
    members = [(0, 0)] * (prior.length.ndim - 1)
    return prior._replace(
        trend=mlp.widen(prior.trend, n_columns, width),
        features=mlp.widen(prior.features, n_columns, width),
        length=jnp.pad(prior.length, [*members, (0, width - n_columns)]),
    )


def within_bounds(prior: LearnedPrior) -> LearnedPrior:
    """The nearest prior whose covariances can be worked with."""
    return prior._replace(
        slope=jnp.clip(prior.slope, *_SLOPES),
        deep=jnp.clip(prior.deep, *_DEEP),
        plain=jnp.clip(prior.plain, *_PLAIN),
        noise=jnp.clip(prior.noise, *_NOISES),
        length=jnp.clip(prior.length, *_LENGTHS),
    )


def view(config: LearnedPriorConfig, prior: LearnedPrior, x: Array) -> View:
    """Configurations f[n, D] as the prior sees them, the trend not yet centred."""
    trend = mlp.apply(config.trend_network, prior.trend, mlp.standard_columns(x))[:, 0]
    features = mlp.apply(config.feature_network, prior.features, x)
    return View(trend, features, x * jnp.exp(-prior.length)[None, :])


def centre(trend: Array, where: Array) -> Array:
    """Mean of f[n] over the filled slots, a scalar: responses are standardised, and so have none."""
    return jnp.sum(jnp.where(where, trend, 0.0)) / jnp.maximum(jnp.sum(where, dtype=trend.dtype), 1.0)


def view_trials(config: LearnedPriorConfig, prior: LearnedPrior, x: Array, where: Array) -> tuple[View, Array]:
    """Trials f[n, D] as the prior sees them, and the mean of m over them, which is taken off, a scalar."""
    seen = view(config, prior, x)
    middle = centre(seen.trend, where)
    return seen._replace(trend=seen.trend - middle), middle


def covariance(one: View, other: View, prior: LearnedPrior) -> Array:
    """Covariance of b, a, g and f together; n and m configurations -> f[n, m]."""
    slope, deep, plain = jnp.exp(prior.slope), jnp.exp(prior.deep), jnp.exp(prior.plain)
    linear = OFFSET + slope * one.trend[:, None] * other.trend[None, :]
    of_features = matern52(squared_distances_by_products(one.features, other.features))
    return linear + deep * of_features + plain * matern52(squared_distances_by_products(one.scaled, other.scaled))


def variance(at: View, prior: LearnedPrior) -> Array:
    """The diagonal of the covariance; f[n]."""
    return OFFSET + jnp.exp(prior.slope) * at.trend**2 + jnp.exp(prior.deep) + jnp.exp(prior.plain)


def observed(
    prior: LearnedPrior, tried: View, y: Array, where: Array, slope: Array | float = 1.0
) -> tuple[Array, Array]:
    """Covariance of the trials' responses, f[n, n], and how far these, y f[n], are off the mean, f[n]."""
    matrix = add_noise(covariance(tried, tried, prior), jnp.exp(prior.noise), where)
    return matrix, jnp.where(where, y - slope * tried.trend, 0.0)
