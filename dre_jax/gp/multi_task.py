"""A multi-task Gaussian process: one process that all tasks share, and one of each task.

Standardised responses of task i are modelled as

    y_i(x) = b_i + c(x) + f_i(x) + noise,
    b_i ~ N(0, 1),    c ~ GP(0, C Matern 5/2),    f_i ~ GP(0, F Matern 5/2),    noise ~ N(0, E),

with length scales for each column of c and of f (Swersky et al. 2013; Leroy et al. 2022). The cost grows with the cube
of the number of all trials.

If tasks have standardised features z_i, such as the size of a model, c is a function of x - S z_i and of z_i. With the
slopes S f[D, P], the best configuration moves along a line in the features, as scaling laws say; c can therefore be
extrapolated. The length scales of the features say how fast the responses change otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from dre_jax.gp.cholesky import invert_factor, safe_cholesky
from dre_jax.gp.fit import maximise_by_bfgs
from dre_jax.gp.kernels import matern52, squared_distances_by_products
from dre_jax.gp.length_scale_prior import LengthScalePrior, log_length_scale_prior
from dre_jax.gp.regression import add_noise, log_gaussian_density, matmul
from dre_jax.gp.task_process import OFFSET_VAR
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort

_VARIANCES = (-0.7, 1.5), (-1.2, 1.5)  # means and standard deviations of the prior of log C and log F
_LENGTHS, _SIGNALS, _NOISES = (-3.0, 4.0), (-6.0, 2.0), (-7.0, 0.0)
_LARGE_LOG_NOISE = -2.0  # the density often has a local maximum with little noise and one with much
_MAX_STEP = 1.0
_SLOPE, _MAX_SLOPE = 0.2, 1.0  # standard deviation of the prior of the slopes, and their bound
_FEATURE_LENGTH, _FEATURE_LENGTHS = (1.5, 1.0), (-1.0, 5.0)  # prior of their log length scales, and bounds


class MultiTaskTrials(NamedTuple):
    """R trials of T tasks."""

    x: Float[Array, "R D"]
    """Configurations."""
    y: Float[Array, " R"]
    """Responses, standardised task by task."""
    task: Int[Array, " R"]
    """Numbers of the tasks; -1 in empty slots."""
    features: Float[Array, "R P"] | None = None
    """Standardised features of the task of each trial; None if tasks have none."""

    @property
    def responses(self) -> Float[Array, " R"]:
        """The responses, 0 in empty slots."""
        return jnp.where(self.task >= 0, self.y, 0.0)


class FeatureParams(NamedTuple):
    """How the common process depends on the features of a task."""

    slopes: Float[Array, "D P"]
    """S."""
    log_lengthscale: Float[Array, " P"]
    """Logarithms of the length scales of the features."""


class MultiTaskParams(NamedTuple):
    """Log hyperparameters of a multi-task process."""

    log_common_lengthscale: Float[Array, " D"]
    """Of c."""
    log_own_lengthscale: Float[Array, " D"]
    """Of f."""
    log_common_var: Float[Array, ""]
    """Log C."""
    log_own_var: Float[Array, ""]
    """Log F."""
    log_noise_var: Float[Array, ""]
    """Log E."""

    by_features: FeatureParams | None = None
    """Of c; None if tasks have no features."""

    def common_columns(
        self, x: Float[Array, "n D"], features: Float[Array, "n P"] | None = None
    ) -> Float[Array, "n inputs"]:
        """Returns the scaled inputs of c at configurations of tasks: D columns, and P features if tasks have them."""
        if self.by_features is None or features is None:
            return _scale(x, self.log_common_lengthscale)
        shifted = x - matmul(features, self.by_features.slopes.T)
        parts = _scale(shifted, self.log_common_lengthscale), _scale(features, self.by_features.log_lengthscale)
        return jnp.concatenate(parts, axis=1)

    def common_covariance(self, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"]) -> Float[Array, "n m"]:
        """Returns the covariance of c at two results of `common_columns`."""
        return jnp.exp(self.log_common_var) * matern52(squared_distances_by_products(a, b))

    def covariance(self, trials: MultiTaskTrials) -> Float[Array, "R R"]:
        """Returns the covariance of the responses."""
        columns = self.common_columns(trials.x, trials.features)
        task_columns, task = _scale(trials.x, self.log_own_lengthscale), trials.task
        of_task = jnp.exp(self.log_own_var) * matern52(squared_distances_by_products(task_columns, task_columns))
        of_task = jnp.where(task[:, None] == task[None, :], OFFSET_VAR + of_task, 0.0)
        return add_noise(self.common_covariance(columns, columns) + of_task, jnp.exp(self.log_noise_var), task >= 0)

    def log_density(self, trials: MultiTaskTrials) -> Float[Array, ""]:
        """Returns the log-density of the responses."""
        return log_gaussian_density(self.covariance(trials), trials.responses, trials.task >= 0)

    def condition(self, trials: MultiTaskTrials) -> tuple[Float[Array, " R"], Float[Array, "R R"]]:
        """Returns K^-1 y, and L^-1 of the covariance K = L L^T of the responses y."""
        lower, _ = safe_cholesky(self.covariance(trials))
        inverse_factor = invert_factor(lower)
        return matmul(inverse_factor.T, matmul(inverse_factor, trials.responses)), inverse_factor


def _scale(x: Float[Array, "n D"], log_lengthscale: Float[Array, " D"]) -> Float[Array, "n D"]:
    return x * jnp.exp(-log_lengthscale)[None, :]


@jit_with_less_effort("steps", is_brief=few_numbers)
def fit_multi_task(
    steps: int, trials: MultiTaskTrials, lengths: LengthScalePrior, slopes: Float[Array, "D P"] | None = None
) -> MultiTaskParams:
    """Returns the hyperparameters of the highest posterior density.

    Args:
      steps: maximum number of points that are evaluated after each of two starts.
      trials: of all tasks.
      lengths: the prior of the length scales and of the noise.
      slopes: the first ones that are tried; 0 exactly where a column does not move. None without features.
    """

    def start(log_noise: Array) -> MultiTaskParams:
        common_var, task_var = (jnp.asarray(mean, log_noise.dtype) for mean, _ in _VARIANCES)
        by_features = None if slopes is None else _first_by_features(slopes)
        return _clip(MultiTaskParams(lengths.mean, lengths.mean, common_var, task_var, log_noise, by_features))

    def log_posterior(params: MultiTaskParams) -> Array:
        params = _without_slopes(params, slopes)
        return params.log_density(trials) + _log_prior(params, lengths)

    starts = jax.vmap(start)(jnp.stack([lengths.noise_mean, jnp.full_like(lengths.noise_mean, _LARGE_LOG_NOISE)]))
    maxima, values = maximise_by_bfgs(log_posterior, starts, _clip, steps=steps, reach=_MAX_STEP)
    best = jnp.argmax(values)
    return _without_slopes(jax.tree.map(lambda a: a[best], maxima), slopes)


def _log_prior(params: MultiTaskParams, lengths: LengthScalePrior) -> Float[Array, ""]:
    """Returns the log prior density up to a constant."""
    variances = zip((params.log_common_var, params.log_own_var), _VARIANCES, strict=True)
    log_prior = sum(-0.5 * ((value - mean) / deviation) ** 2 for value, (mean, deviation) in variances)
    log_prior += log_length_scale_prior(lengths, params.log_common_lengthscale, lengths.noise_mean)
    log_prior += log_length_scale_prior(lengths, params.log_own_lengthscale, params.log_noise_var)
    if params.by_features is not None:
        log_prior += _log_feature_prior(params.by_features)
    return log_prior


def _log_feature_prior(by_features: FeatureParams) -> Float[Array, ""]:
    mean, deviation = _FEATURE_LENGTH
    lengths = jnp.sum(((by_features.log_lengthscale - mean) / deviation) ** 2)
    return -0.5 * (lengths + jnp.sum((by_features.slopes / _SLOPE) ** 2))


def _first_by_features(slopes: Float[Array, "D P"]) -> FeatureParams:
    return FeatureParams(slopes, jnp.full_like(slopes[0], _FEATURE_LENGTH[0]))


def _without_slopes(params: MultiTaskParams, slopes: Float[Array, "D P"] | None) -> MultiTaskParams:
    """Returns the parameters with slopes of zero where the first slopes are zero."""
    if params.by_features is None or slopes is None:
        return params
    by_features = params.by_features._replace(slopes=jnp.where(slopes == 0.0, 0.0, params.by_features.slopes))
    return params._replace(by_features=by_features)


@jit_with_less_effort("steps", is_brief=few_numbers)
def refit_slopes(
    steps: int, params: MultiTaskParams, trials: MultiTaskTrials, slopes: Float[Array, "D P"]
) -> MultiTaskParams:
    """Returns parameters whose slopes and length scales of features are fitted to other trials.

    Arguments as `fit_multi_task`; those of ``params`` that do not depend on features stay.
    """

    def with_features(by_features: FeatureParams) -> MultiTaskParams:
        return _without_slopes(params._replace(by_features=by_features), slopes)

    def log_posterior(by_features: FeatureParams) -> Array:
        return with_features(by_features).log_density(trials) + _log_feature_prior(by_features)

    starts = jax.tree.map(lambda a: a[None], _first_by_features(slopes))
    maxima, _ = maximise_by_bfgs(log_posterior, starts, _clip_features, steps=steps, reach=_MAX_STEP)
    return with_features(jax.tree.map(lambda a: a[0], maxima))


def _clip_features(by_features: FeatureParams) -> FeatureParams:
    slopes = jnp.clip(by_features.slopes, -_MAX_SLOPE, _MAX_SLOPE)
    return FeatureParams(slopes, jnp.clip(by_features.log_lengthscale, *_FEATURE_LENGTHS))


def _clip(params: MultiTaskParams) -> MultiTaskParams:
    bounds = _LENGTHS, _LENGTHS, _SIGNALS, _SIGNALS, _NOISES
    names = MultiTaskParams._fields[: len(bounds)]
    clipped: dict[str, Any] = {
        name: jnp.clip(getattr(params, name), *ends) for name, ends in zip(names, bounds, strict=True)
    }
    if params.by_features is not None:
        params = params._replace(by_features=_clip_features(params.by_features))
    return params._replace(**clipped)
