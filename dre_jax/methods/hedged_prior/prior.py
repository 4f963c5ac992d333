"""Priors of Gaussian processes that are learned from past tasks (after Wang et al. 2024, pre-trained priors).

Standardised responses of a task are modelled as

    y(x) = b + a m(x) + g(phi(x)) + f(x) + noise,
    b ~ N(0, 1),    a ~ N(1, A),    g ~ GP(0, G Matern 5/2),    f ~ GP(0, F Matern 5/2),    noise ~ N(0, E),

where m and phi are small networks, f has a length scale for each column, and a variance scale of the task multiplies
all variances (`dre_jax.gp.student`). m is the trend that past tasks have in common, g is a deviation from it that is
smooth in the learned features, and f is a deviation that past tasks do not explain. There are several members, each
with its own networks. `training` fits them, `hypotheses` conditions them on a history.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.checks import Checked, Layers, Positive
from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.fourier import sample_matern52
from dre_jax.gp.kernels import matern52, squared_distances_by_products
from dre_jax.gp.regression import add_noise, matmul, observation_noise
from dre_jax.gp.response_scale import ResponseScale, masked_mean
from dre_jax.nn import mlp

OFFSET_VAR = 1.0
"""Variance of b."""
SLOPE_VARIANCE = 0.1
"""A of models that do not learn it."""
UNINFORMED_LENGTHSCALES, UNINFORMED_NOISE_VAR = (0.1, 0.25, 0.6), 1e-3
"""Length scales, in units of the square root of the number of columns, and E of processes without past tasks."""
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


@dataclass(frozen=True, kw_only=True)
class LearnedPriorConfig(Checked):
    """Sizes of the networks, and the likelihood of responses.

    Raises:
      ConfigError: if a size is not positive or ``degrees_of_freedom`` is not above 2.
    """

    trend: Layers = (50, 50)
    """Hidden layers of m."""
    layers: Layers = (32, 32, 32, 32)
    """Layers of phi; the last are the features."""
    members: Positive[int] = 2
    """Number of priors, each with its own initial weights and training histories."""
    degrees_of_freedom: float = 5.0
    """nu > 2, so that predictions have a variance. A small nu means an uncertain variance scale of the task."""
    response_scale: ResponseScale = "compressed"
    """Scale of the responses, of past tasks and of a history; see `scale_responses`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.degrees_of_freedom > 2.0:
            raise ConfigError(f"degrees_of_freedom > 2 must hold, but got {self.degrees_of_freedom}")

    @property
    def trend_network(self) -> mlp.MLPConfig:
        """The network m."""
        return mlp.MLPConfig(hidden=self.trend, activation="relu")

    @property
    def feature_network(self) -> mlp.MLPConfig:
        """The network phi."""
        return mlp.MLPConfig(hidden=self.layers[:-1], activation="relu", outputs=self.layers[-1])


class Trials(NamedTuple):
    """A history of n slots."""

    x: Array
    """f[n, D]"""
    y: Array
    """f[n]: standardised responses, 0 in empty slots."""
    where: Array
    """bool[n]: the filled slots."""
    noise_var: Array | None = None
    """f[n]: known error variances of single responses, on the scale of ``y``; None for none."""
    trend: Any = None
    """f[n]: the mean over members of m minus its mean over the trials; None if it is not computed yet."""


def observe(trials: Trials, signal: Array, mean: Array, log_noise_var: Array) -> tuple[Array, Array]:
    """Returns the covariance of the observations, f[n, n], and the observations minus their prior mean, f[n].

    Args:
      trials: the observations.
      signal: f[n, n], prior covariance of the signal.
      mean: f[n], prior mean.
      log_noise_var: scalar, log E.
    """
    matrix = add_noise(signal, observation_noise(log_noise_var, trials.noise_var), trials.where)
    return matrix, jnp.where(trials.where, trials.y - mean, 0.0)


class PriorFeatures(NamedTuple):
    """Inputs of the covariance of a prior at n configurations."""

    trend: Array
    """f[n]: m minus its mean over the trials."""
    features: Array
    """f[n, F]: phi."""
    scaled_columns: Array
    """f[n, D]: columns divided by their length scales."""


class LearnedPrior(NamedTuple):
    """Parameters of a prior; variances and length scales as logarithms."""

    trend: mlp.MLPParams
    """Parameters of m."""
    features: mlp.MLPParams
    """Parameters of phi."""
    log_slope_var: Array
    """Scalar: log A."""
    log_feature_var: Array
    """Scalar: log G."""
    log_ard_var: Array
    """Scalar: log F."""
    log_noise_var: Array
    """Scalar: log E."""
    log_lengthscale: Array
    """f[D]: of f."""

    def compute_features(self, config: LearnedPriorConfig, x: Array) -> PriorFeatures:
        """Returns the features of configurations f[n, D]; the trend is not centred."""
        trend = mlp.apply(config.trend_network, self.trend, mlp.standard_columns(x))[:, 0]
        features = mlp.apply(config.feature_network, self.features, x)
        return PriorFeatures(trend, features, x * jnp.exp(-self.log_lengthscale)[None, :])

    def feature_covariance(self, a: Array, b: Array) -> Array:
        """Returns the correlation of g; features f[n, F] and f[m, F] -> f[n, m]."""
        return matern52(squared_distances_by_products(a, b))

    def feature_variance(self, features: Array) -> Array:
        """Returns ones, f[n]."""
        return jnp.ones(features.shape[:1], features.dtype)

    def sample_features(self, n_features: int, key: Array) -> Callable[[Array], Array]:
        """Samples g as a function of features, f[n, F] -> f[n]; F is the number of features."""
        return sample_matern52(n_features, jnp.exp(self.log_feature_var), key)


class MultiTaskParams(NamedTuple):
    """Log hyperparameters of the model of the past tasks."""

    log_common_lengthscale: Array
    """f[D]: of c."""
    log_own_lengthscale: Array
    """f[D]: of f."""
    log_common_var: Array
    """Scalar: log C."""
    log_own_var: Array
    """Scalar: log F."""
    log_noise_var: Array
    """Scalar: log E."""


class CommonProcess(NamedTuple):
    """The process c of `common_process` given R trials of past tasks, as a prior of a new task."""

    x: Array
    """f[R, D]: past trials."""
    task: Array
    """i32[R]: number of the task of each; -1 in empty slots."""
    past: MultiTaskParams
    """Hyperparameters of the past tasks' model, of covariance K."""
    weights: Array
    """f[R]: K^-1 y."""
    inverse_factor: Array
    """f[R, R]: L^-1, with K = L L^T."""
    log_slope_var: Array
    """Scalar: log A."""
    log_feature_var: Array
    """Scalar: log G, a factor of the posterior variance of c."""
    log_ard_var: Array
    """Scalar: log F, of the new task."""
    log_noise_var: Array
    """Scalar: log E, of the new task."""

    def compute_features(self, config: LearnedPriorConfig, x: Array) -> PriorFeatures:
        """Returns the mean of c, the inputs of `feature_covariance` and the scaled columns of f at f[n, D]."""
        past, new = (_scale(rows, self.past.log_common_lengthscale) for rows in (self.x, x))
        cross = jnp.where((self.task >= 0)[:, None], self._common_covariance(past, new), 0.0)
        features = jnp.concatenate([new, matmul(self.inverse_factor, cross).T], axis=1)
        return PriorFeatures(matmul(self.weights, cross), features, _scale(x, self.past.log_own_lengthscale))

    def feature_covariance(self, a: Array, b: Array) -> Array:
        """Returns the posterior covariance of c; features f[n, D + R] and f[m, D + R] -> f[n, m]."""
        n = self.x.shape[-1]
        return self._common_covariance(a[:, :n], b[:, :n]) - matmul(a[:, n:], b[:, n:].T)

    def feature_variance(self, features: Array) -> Array:
        """Returns the diagonal of `feature_covariance`, f[n]."""
        explained_variance = jnp.sum(features[:, self.x.shape[-1] :] ** 2, axis=1)
        variance = jnp.exp(self.past.log_common_var)
        return jnp.maximum(variance - explained_variance, variance * jnp.finfo(variance.dtype).eps)

    def sample_features(self, n_features: int, key: Array) -> Callable[[Array], Array]:
        """Samples g, c minus its mean times the root of G, of features f[n, D + R] -> f[n] (Matheron's rule)."""
        prior_key, rest_key = jax.random.split(key)
        n, is_filled = self.x.shape[-1], self.task >= 0
        prior = sample_matern52(n, jnp.exp(self.past.log_common_var), prior_key)
        rest = self.past._replace(log_common_var=jnp.full_like(self.past.log_common_var, -jnp.inf))
        lower, _ = safe_cholesky(multi_task_covariance(rest, self.x, self.task))
        observations = prior(_scale(self.x, self.past.log_common_lengthscale))
        observations = observations + matmul(lower, jax.random.normal(rest_key, observations.shape, observations.dtype))
        whitened_observations = matmul(self.inverse_factor, jnp.where(is_filled, observations, 0.0))
        scale = jnp.exp(0.5 * self.log_feature_var)
        return lambda features: scale * (prior(features[:, :n]) - matmul(features[:, n:], whitened_observations))

    def _common_covariance(self, a: Array, b: Array) -> Array:
        return jnp.exp(self.past.log_common_var) * matern52(squared_distances_by_products(a, b))


Prior = LearnedPrior | CommonProcess
"""A prior of the responses of a new task, with the variances A, G, F and E; the formula is that of the module."""


def _scale(x: Array, log_lengthscale: Array) -> Array:
    return x * jnp.exp(-log_lengthscale)[None, :]


def multi_task_covariance(params: MultiTaskParams, x: Array, task: Array) -> Array:
    """Returns the covariance K of past observations, f[R, R]."""

    def kernel(log_length: Array) -> Array:
        scaled_x = _scale(x, log_length)
        return matern52(squared_distances_by_products(scaled_x, scaled_x))

    own = OFFSET_VAR + jnp.exp(params.log_own_var) * kernel(params.log_own_lengthscale)
    own = jnp.where(task[:, None] == task[None, :], own, 0.0)
    common = jnp.exp(params.log_common_var) * kernel(params.log_common_lengthscale)
    return add_noise(common + own, jnp.exp(params.log_noise_var), task >= 0)


def init(config: LearnedPriorConfig, n_columns: int, key_trend: Array, key_features: Array) -> LearnedPrior:
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


def log_hyperprior(prior: LearnedPrior) -> Array:
    """Returns the log hyperprior density of A, G, F, E and the length scales up to a constant, a scalar.

    Hyperpriors are independent Gaussians of the logarithms. The mode has A = 0.14, G = 0.5, F = 0.3, E = 0.01 and
    length scales of half the square root of the number of columns (after Hvarfner et al. 2024).
    """
    mean_length = _mean_log_lengthscale(prior.log_lengthscale.shape[-1])
    squares = [((getattr(prior, name) - mean) / spread) ** 2 for name, (mean, spread) in _HYPERPRIORS.items()]
    return -0.5 * (sum(squares) + jnp.sum(((prior.log_lengthscale - mean_length) / _LOG_LENGTHSCALE_STD) ** 2))


def uninformed_priors(config: LearnedPriorConfig, n_columns: int) -> LearnedPrior:
    """Returns 3 priors without past tasks: F = 1, E = 0.001 and length scales of 0.1, 0.25 and 0.6 times sqrt(D)."""
    shapes = prior_shapes(config, n_columns)
    lengths = np.log(np.array(UNINFORMED_LENGTHSCALES, np.float32)) + np.float32(0.5 * math.log(max(n_columns, 1)))
    log_zero = np.full_like(lengths, -np.inf)
    return jax.tree.map(lambda a: np.zeros((3, *a.shape), a.dtype), shapes)._replace(
        log_slope_var=log_zero,
        log_feature_var=log_zero,
        log_noise_var=np.full_like(lengths, math.log(UNINFORMED_NOISE_VAR)),
        log_lengthscale=np.repeat(lengths[:, None], n_columns, axis=1),
    )


def pad_columns(prior: LearnedPrior, n_columns: int, width: int) -> LearnedPrior:
    """Returns a prior for more columns; means and covariances do not change where the additional columns are zero.

    Args:
      prior: for D columns; members may be in front of each array.
      n_columns: D.
      width: the new number of columns.
    """
    members = [(0, 0)] * (prior.log_lengthscale.ndim - 1)
    return prior._replace(
        trend=mlp.pad_columns(prior.trend, n_columns, width),
        features=mlp.pad_columns(prior.features, n_columns, width),
        log_lengthscale=jnp.pad(prior.log_lengthscale, [*members, (0, width - n_columns)]),
    )


def unvaried_columns(meta: SearchSpace) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float32]]:
    """Returns the columns of hyperparameters that no training task varies, bool[D], and the first row, f32[D].

    A hyperparameter varies if one of its columns does. Without descriptions of columns there is none.
    """
    tables = [task.X for task in meta.require_train_tasks().values()]
    first = np.asarray(tables[0][0], np.float32)
    if meta.columns is None:
        return np.zeros(len(first), bool), first
    varies = np.any([(table != first).any(axis=0) for table in tables], axis=0)
    varied_parents = {column.parent for column, one in zip(meta.columns, varies, strict=True) if one}
    return np.array([column.parent not in varied_parents for column in meta.columns]), first


def fix_columns(prior: LearnedPrior, is_fixed: npt.NDArray[np.bool_], values: npt.NDArray[np.float32]) -> LearnedPrior:
    """Returns a prior whose networks ignore some columns, with their outputs at constant values of these columns.

    Args:
      prior: members may be in front of each array.
      is_fixed: bool[D], the columns.
      values: f[D], their values.
    """
    if not is_fixed.any():
        return prior
    return prior._replace(
        trend=mlp.fix_columns(prior.trend, jnp.asarray(is_fixed), mlp.standard_columns(jnp.asarray(values))),
        features=mlp.fix_columns(prior.features, jnp.asarray(is_fixed), jnp.asarray(values)),
    )


def clip_prior(prior: LearnedPrior) -> LearnedPrior:
    """Returns a prior with variances and length scales clipped to bounds, so that covariances can be factorised."""
    clipped_fields: dict[str, Any] = {name: jnp.clip(getattr(prior, name), *bounds) for name, bounds in _BOUNDS.items()}
    return prior._replace(**clipped_fields)


def history_features(config: LearnedPriorConfig, prior: Prior, trials: Trials) -> tuple[PriorFeatures, Array]:
    """Returns the features of trials with a centred trend, and the mean of m over the trials, a scalar.

    The trend is centred because the responses are.
    """
    features = prior.compute_features(config, trials.x)
    trend_mean = masked_mean(features.trend, trials.where)
    return features._replace(trend=features.trend - trend_mean), trend_mean


def prior_covariance(a: PriorFeatures, b: PriorFeatures, prior: Prior) -> Array:
    """Returns the covariance of b + a m + g + f at n and m configurations, f[n, m]."""
    slope_var, feature_var, ard_var = (
        jnp.exp(log_var) for log_var in (prior.log_slope_var, prior.log_feature_var, prior.log_ard_var)
    )
    linear = OFFSET_VAR + slope_var * a.trend[:, None] * b.trend[None, :]
    feature_kernel = prior.feature_covariance(a.features, b.features)
    ard_kernel = matern52(squared_distances_by_products(a.scaled_columns, b.scaled_columns))
    return linear + feature_var * feature_kernel + ard_var * ard_kernel


def prior_variance(features: PriorFeatures, prior: Prior) -> Array:
    """Returns the diagonal of `prior_covariance`, f[n]."""
    slope_var, feature_var = jnp.exp(prior.log_slope_var), jnp.exp(prior.log_feature_var)
    line = OFFSET_VAR + slope_var * features.trend**2
    return line + feature_var * prior.feature_variance(features.features) + jnp.exp(prior.log_ard_var)


def covariance_and_residuals(
    prior: Prior, features: PriorFeatures, trials: Trials, slope_mean: Array | float = 1.0
) -> tuple[Array, Array]:
    """Returns `observe` of trials with these features, of a centred trend, under a prior and a mean of its slope a."""
    signal = prior_covariance(features, features, prior)
    return observe(trials, signal, slope_mean * features.trend, prior.log_noise_var)
