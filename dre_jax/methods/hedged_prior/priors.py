"""Priors of Gaussian processes that are learned from past tasks.

Standardised responses of a task are modelled as

    y(x) = b + a m(x) + g(phi(x)) + f(x) + noise,
    b ~ N(0, 1),    a ~ N(1, A),    g ~ GP(0, G Matern 5/2),    f ~ GP(0, F Matern 5/2),    noise ~ N(0, E),

where m and phi are small networks (after Wang et al. 2024, pre-trained priors), f has a length scale for each column,
and a variance scale of the task multiplies all variances (`dre_jax.gp.student`). m is the trend that past tasks have in
common, g is a deviation from it that is smooth in the learned features, and f is a deviation that past tasks do not
explain. There are several members, each with its own networks; `training` fits them.

A learned prior is right if the new task resembles the past ones; `hypotheses` change it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Float32, Key

from dre_jax.checks import AboveTwo, Checked, Layers, Positive
from dre_jax.gp.fourier import sample_matern52
from dre_jax.gp.kernels import matern52, squared_distances_by_products
from dre_jax.gp.response_scale import ResponseScale, masked_mean
from dre_jax.gp.task_process import OFFSET_VAR, observe
from dre_jax.nn import mlp
from dre_jax.search.history import History

_BOUNDS = {
    "log_slope_var": (-6.0, 1.0),
    "log_feature_var": (-9.0, 2.0),
    "log_ard_var": (-6.0, 2.0),
    "log_noise_var": (-8.0, 0.0),
    "log_lengthscale": (-3.0, 4.0),
}
_HYPERPRIORS = {
    "log_slope_var": (-2.0, 1.5),
    "log_feature_var": (-0.7, 1.5),
    "log_ard_var": (-1.2, 1.0),
    "log_noise_var": (-4.6, 1.5),
}
"""Means and standard deviations of Gaussian hyperpriors."""
_LOG_LENGTHSCALE_STD = 1.0
_ACTIVATION: mlp.Activation = "relu"


@dataclass(frozen=True, kw_only=True)
class LearnedPriorConfig(Checked):
    """Sizes of the networks, and the likelihood of responses.

    Raises `ConfigError` if a size is not positive or ``degrees_of_freedom`` is not above 2.
    """

    trend: Layers = (50, 50)
    """Hidden layers of m."""
    layers: Layers = (32, 32, 32, 32)
    """Layers of phi; the last are the features."""
    members: Positive[int] = 2
    """Number of priors, each with its own initial weights and training histories."""
    degrees_of_freedom: AboveTwo[float] = 5.0
    """nu > 2, so that predictions have a variance. A small nu means an uncertain variance scale of the task."""
    response_scale: ResponseScale = "compressed"
    """Scale of the responses, of past tasks and of a history; see `scale_responses`."""

    @property
    def trend_network(self) -> mlp.MLPConfig:
        """The network m."""
        return mlp.MLPConfig(hidden=self.trend, activation=_ACTIVATION)

    @property
    def feature_network(self) -> mlp.MLPConfig:
        """The network phi."""
        return mlp.MLPConfig(hidden=self.layers[:-1], activation=_ACTIVATION, outputs=self.layers[-1])


class PriorFeatures(NamedTuple):
    """Inputs of the covariance of a prior at n configurations."""

    trend: Float[Array, " n"]
    """m minus its mean over the trials."""
    features: Float[Array, "n F"]
    """phi."""
    scaled_columns: Float[Array, "n D"]
    """Columns divided by their length scales."""


class Prior(Protocol):
    """A prior of the responses of a new task, a tree of arrays; the formula is that of the module."""

    @property
    def log_slope_var(self) -> Float[Array, ""]:
        """Log A."""

    @property
    def log_feature_var(self) -> Float[Array, ""]:
        """Log G."""

    @property
    def log_ard_var(self) -> Float[Array, ""]:
        """Log F."""

    @property
    def log_noise_var(self) -> Float[Array, ""]:
        """Log E."""

    def compute_features(self, x: Float[Array, "n D"]) -> PriorFeatures:
        """Returns the features of configurations; the trend is not centred."""

    def feature_covariance(self, a: Float[Array, "n F"], b: Float[Array, "m F"]) -> Float[Array, "n m"]:
        """Returns the covariance of g divided by G."""

    def feature_variance(self, features: Float[Array, "n F"]) -> Float[Array, " n"]:
        """Returns the diagonal of `feature_covariance`."""

    def sample_features(
        self, n_features: int, key: Key[Array, ""]
    ) -> Callable[[Float[Array, "n F"]], Float[Array, " n"]]:
        """Samples g as a function of features; F is the number of features."""

    @property
    def _replace(self) -> Callable[..., Any]: ...  # of a NamedTuple


class LearnedPrior(NamedTuple):
    """Parameters of a prior; variances and length scales as logarithms."""

    trend: mlp.MLPParams
    """Parameters of m."""
    features: mlp.MLPParams
    """Parameters of phi."""
    log_slope_var: Float[Array, ""]
    """Log A."""
    log_feature_var: Float[Array, ""]
    """Log G."""
    log_ard_var: Float[Array, ""]
    """Log F."""
    log_noise_var: Float[Array, ""]
    """Log E."""
    log_lengthscale: Float[Array, " D"]
    """Of f."""

    def compute_features(self, x: Float[Array, "n D"]) -> PriorFeatures:
        """Returns the features of configurations; the trend is not centred."""
        trend_network, feature_network = (mlp.config_of(params, _ACTIVATION) for params in (self.trend, self.features))
        trend = mlp.apply(trend_network, self.trend, mlp.standard_columns(x))[:, 0]
        features = mlp.apply(feature_network, self.features, x)
        return PriorFeatures(trend, features, x * jnp.exp(-self.log_lengthscale)[None, :])

    def feature_covariance(self, a: Float[Array, "n F"], b: Float[Array, "m F"]) -> Float[Array, "n m"]:
        """Returns the correlation of g."""
        return matern52(squared_distances_by_products(a, b))

    def feature_variance(self, features: Float[Array, "n F"]) -> Float[Array, " n"]:
        """Returns ones."""
        return jnp.ones(features.shape[:1], features.dtype)

    def sample_features(
        self, n_features: int, key: Key[Array, ""]
    ) -> Callable[[Float[Array, "n F"]], Float[Array, " n"]]:
        """Samples g as a function of features; F is the number of features."""
        return sample_matern52(n_features, jnp.exp(self.log_feature_var), key)

    def pad_columns(self, width: int) -> LearnedPrior:
        """Returns the prior for more columns; means and covariances do not change where the additional ones are zero.

        Members may be in front of each array.
        """
        n_columns = self.log_lengthscale.shape[-1]
        members = [(0, 0)] * (self.log_lengthscale.ndim - 1)
        return self._replace(
            trend=mlp.pad_inputs(self.trend, n_columns, width),
            features=mlp.pad_inputs(self.features, n_columns, width),
            log_lengthscale=jnp.pad(self.log_lengthscale, [*members, (0, width - n_columns)]),
        )

    def fix_columns(self, is_fixed: Bool[np.ndarray, " D"], values: Float32[np.ndarray, " D"]) -> LearnedPrior:
        """Returns the prior with networks that ignore some columns, with their outputs at some values there.

        Members may be in front of each array of the prior.
        """
        if not is_fixed.any():
            return self
        return self._replace(
            trend=mlp.fix_columns(self.trend, jnp.asarray(is_fixed), mlp.standard_columns(jnp.asarray(values))),
            features=mlp.fix_columns(self.features, jnp.asarray(is_fixed), jnp.asarray(values)),
        )


def init(
    config: LearnedPriorConfig, n_columns: int, key_trend: Key[Array, ""], key_features: Key[Array, ""]
) -> LearnedPrior:
    """Returns a prior for D columns with random networks."""
    zero = jnp.zeros((), jnp.float32)
    return LearnedPrior(
        trend=mlp.init(config.trend_network, n_columns, key_trend),
        features=mlp.init_features(config.feature_network, n_columns, key_features),
        log_slope_var=zero - 2.0,
        log_feature_var=zero - 0.7,
        log_ard_var=zero - 2.0,
        log_noise_var=zero - 3.0,
        log_lengthscale=jnp.full(n_columns, _mean_log_lengthscale(n_columns), jnp.float32),
    )


def prior_shapes(config: LearnedPriorConfig, n_columns: int) -> LearnedPrior:
    """Returns the shapes of the parameters of a prior for D columns."""
    key = jax.eval_shape(partial(jax.random.key, 0))
    return jax.eval_shape(partial(init, config, n_columns), key, key)


def _mean_log_lengthscale(n_columns: int) -> float:
    """Returns the log of half the square root of the number of columns; distances grow with that root."""
    return 0.5 * math.log(max(n_columns, 1)) - 0.7


def log_hyperprior(prior: LearnedPrior) -> Float[Array, ""]:
    """Returns the log hyperprior density of A, G, F, E and the length scales up to a constant.

    Hyperpriors are independent Gaussians of the logarithms. The mode has A = 0.14, G = 0.5, F = 0.3, E = 0.01 and
    length scales of half the square root of the number of columns (after Hvarfner et al. 2024).
    """
    mean_length = _mean_log_lengthscale(prior.log_lengthscale.shape[-1])
    squares = [((getattr(prior, name) - mean) / spread) ** 2 for name, (mean, spread) in _HYPERPRIORS.items()]
    return -0.5 * (sum(squares) + jnp.sum(((prior.log_lengthscale - mean_length) / _LOG_LENGTHSCALE_STD) ** 2))


def clip_prior(prior: LearnedPrior) -> LearnedPrior:
    """Returns a prior with variances and length scales clipped to bounds, so that covariances can be factorised."""
    clipped_fields: dict[str, Any] = {name: jnp.clip(getattr(prior, name), *bounds) for name, bounds in _BOUNDS.items()}
    return prior._replace(**clipped_fields)


def history_features(prior: Prior, trials: History) -> tuple[PriorFeatures, Float[Array, ""]]:
    """Returns the features of trials with a centred trend, and the mean of m over the trials.

    The trend is centred because the responses are.
    """
    features = prior.compute_features(trials.x)
    trend_mean = masked_mean(features.trend, trials.where)
    return features._replace(trend=features.trend - trend_mean), trend_mean


def prior_covariance(a: PriorFeatures, b: PriorFeatures, prior: Prior) -> Float[Array, "n m"]:
    """Returns the covariance of b + a m + g + f at n and m configurations."""
    slope_var, feature_var, ard_var = (
        jnp.exp(log_var) for log_var in (prior.log_slope_var, prior.log_feature_var, prior.log_ard_var)
    )
    linear = OFFSET_VAR + slope_var * a.trend[:, None] * b.trend[None, :]
    feature_kernel = prior.feature_covariance(a.features, b.features)
    ard_kernel = matern52(squared_distances_by_products(a.scaled_columns, b.scaled_columns))
    return linear + feature_var * feature_kernel + ard_var * ard_kernel


def prior_variance(features: PriorFeatures, prior: Prior) -> Float[Array, " n"]:
    """Returns the diagonal of `prior_covariance`."""
    slope_var, feature_var = jnp.exp(prior.log_slope_var), jnp.exp(prior.log_feature_var)
    line = OFFSET_VAR + slope_var * features.trend**2
    return line + feature_var * prior.feature_variance(features.features) + jnp.exp(prior.log_ard_var)


def covariance_and_residuals(
    prior: Prior, features: PriorFeatures, trials: History, slope_mean: Float[Array, ""] | float = 1.0
) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
    """Returns `observe` for features with a centred trend, under a prior and a mean of its slope a."""
    signal = prior_covariance(features, features, prior)
    return observe(trials, signal, slope_mean * features.trend, prior.log_noise_var)


def sample_prior(
    prior: Prior, features: PriorFeatures, key: Key[Array, ""]
) -> Callable[[PriorFeatures], Float[Array, " n"]]:
    """Samples a function of features, with mean zero and the covariance of a prior.

    Only the numbers of columns of ``features`` are read.
    """
    line_key, feature_key, ard_key = jax.random.split(key, 3)
    variances = jnp.stack([jnp.full_like(prior.log_slope_var, OFFSET_VAR), jnp.exp(prior.log_slope_var)])
    offset, slope = jax.random.normal(line_key, (2,)) * jnp.sqrt(variances)
    feature_sample = prior.sample_features(features.features.shape[-1], feature_key)
    ard = sample_matern52(features.scaled_columns.shape[-1], jnp.exp(prior.log_ard_var), ard_key)
    return lambda new: offset + slope * new.trend + feature_sample(new.features) + ard(new.scaled_columns)
