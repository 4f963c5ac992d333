"""The process that a few past tasks have in common, given their trials, as a prior of a new task.

The model of the past tasks is a multi-task Gaussian process (`dre_jax.gp.multi_task`). The posterior of its process c
given the trials of all past tasks is a prior for a new task: its mean is the trend m of
`dre_jax.methods.hedged_prior.priors`, and the rest of it is the process g. With few past tasks it predicts a new one
better than networks do, but its cost grows with the cube of all past trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array
from jaxtyping import Bool, Float, Float32, Int, Int32, Key

from dre_jax.checks import Checked, NonNegative
from dre_jax.data import Task
from dre_jax.data.folds import held_out_tasks
from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.fourier import sample_matern52
from dre_jax.gp.length_scale_prior import LengthScalePrior
from dre_jax.gp.multi_task import MultiTaskParams, MultiTaskTrials, fit_multi_task, refit_slopes
from dre_jax.gp.regression import matmul
from dre_jax.gp.response_scale import ResponseScale, scale_responses
from dre_jax.methods.hedged_prior import hypotheses
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis, HypothesisArrays, hypothesis_arrays
from dre_jax.methods.hedged_prior.priors import PriorFeatures
from dre_jax.methods.hedged_prior.task_features import (
    FeatureScale,
    StandardisedFeatures,
    first_slopes,
    jackknife_errors,
    slopes_of,
    trust_slopes,
)
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.runtime.reports import report_progress

HYPOTHESES = (
    *hypotheses.HYPOTHESES,
    Hypothesis(weight=0.2, noise_variance_factor=0.01),
    Hypothesis(weight=0.1, noise_variance_factor=0.01, feature_variance_factor=2.0, ard_variance_factor=4.0),
)
"""Those of learned priors, and two with less noise, which short past tasks cannot tell from a fast variation."""
MIN_TASKS = 3
"""Fewer past tasks have no common process, and none of them can be held out."""
_SLOPE_VARIANCE = 0.1  # A
_IGNORE = 20.0  # log length scale of a column that does not matter


@dataclass(frozen=True, kw_only=True)
class CommonProcessConfig(Checked):
    """Which past tasks have a common process, and how it is fitted.

    Raises `ConfigError` if a number is out of range.
    """

    rows: NonNegative[int] = 400
    """Maximum number of past trials; of more, each task keeps its share: the best fourth of it, and random ones. 0
    disables the process."""
    task_rows: NonNegative[int] = 40
    """There is no process if a task would keep fewer trials than this, and not all: many trials train networks."""
    steps: NonNegative[int] = 60
    """Maximum number of points that the fit of the hyperparameters evaluates after its start."""
    slope_steps: NonNegative[int] = 20
    """The same of the fits of what depends on features, without the tasks of each fold."""
    hypotheses: tuple[Hypothesis, ...] = HYPOTHESES
    """Hypotheses of how the process applies to a new task."""


class CommonProcess(NamedTuple):
    """The process c given R trials of past tasks, as a prior of a new task (`dre_jax.methods.hedged_prior.priors`)."""

    x: Float[Array, "R D"]
    """Past trials."""
    task: Int[Array, " R"]
    """Number of the task of each; -1 in empty slots."""
    past: MultiTaskParams
    """Hyperparameters of the past tasks' model, of covariance K."""
    weights: Float[Array, " R"]
    """K^-1 y."""
    inverse_factor: Float[Array, "R R"]
    """L^-1, with K = L L^T."""
    log_slope_var: Float[Array, ""]
    """Log A."""
    log_feature_var: Float[Array, ""]
    """Log G, a factor of the posterior variance of c."""
    log_ard_var: Float[Array, ""]
    """Log F, of the new task."""
    log_noise_var: Float[Array, ""]
    """Log E, of the new task."""
    past_features: Float[Array, "R P"] | None = None
    """Standardised features of the past tasks, one row a trial; None if tasks have none."""
    task_features: Float[Array, " P"] | None = None
    """Standardised features of the new task; None if tasks have none."""

    @property
    def trials(self) -> MultiTaskTrials:
        """The past trials, with responses of zero."""
        return MultiTaskTrials(self.x, jnp.zeros_like(self.x[:, 0]), self.task, self.past_features)

    def columns(self, x: Float[Array, "n D"]) -> Float[Array, "n inputs"]:
        """Returns the inputs of c at configurations of the new task: D columns, and P features if tasks have them."""
        if self.task_features is None:
            return self.past.common_columns(x)
        return self.past.common_columns(x, jnp.broadcast_to(self.task_features, (len(x), len(self.task_features))))

    def compute_features(self, x: Float[Array, "n D"]) -> PriorFeatures:
        """Returns the mean of c, the inputs of `feature_covariance` and the scaled columns of f at configurations."""
        past, new = self.past.common_columns(self.x, self.past_features), self.columns(x)
        cross = jnp.where((self.task >= 0)[:, None], self.past.common_covariance(past, new), 0.0)
        features = jnp.concatenate([new, matmul(self.inverse_factor, cross).T], axis=1)
        scaled_columns = x * jnp.exp(-self.past.log_own_lengthscale)[None, :]
        return PriorFeatures(matmul(self.weights, cross), features, scaled_columns)

    def feature_covariance(self, a: Float[Array, "n F"], b: Float[Array, "m F"]) -> Float[Array, "n m"]:
        """Returns the posterior covariance of c; features are the inputs of c, and R more."""
        n = a.shape[-1] - len(self.x)
        return self.past.common_covariance(a[:, :n], b[:, :n]) - matmul(a[:, n:], b[:, n:].T)

    def feature_variance(self, features: Float[Array, "n F"]) -> Float[Array, " n"]:
        """Returns the diagonal of `feature_covariance`."""
        explained_variance = jnp.sum(features[:, -len(self.x) :] ** 2, axis=1)
        variance = jnp.exp(self.past.log_common_var)
        return jnp.maximum(variance - explained_variance, variance * jnp.finfo(variance.dtype).eps)

    def sample_features(
        self, n_features: int, key: Key[Array, ""]
    ) -> Callable[[Float[Array, "n F"]], Float[Array, " n"]]:
        """Samples g, c minus its mean times the root of G, as a function of features (Matheron's rule)."""
        prior_key, residual_key = jax.random.split(key)
        n, is_filled = n_features - len(self.x), self.task >= 0
        prior = sample_matern52(n, jnp.exp(self.past.log_common_var), prior_key)
        without_common = self.past._replace(log_common_var=jnp.full_like(self.past.log_common_var, -jnp.inf))
        lower, _ = safe_cholesky(without_common.covariance(self.trials))
        observations = prior(self.past.common_columns(self.x, self.past_features))
        observations = observations + matmul(
            lower, jax.random.normal(residual_key, observations.shape, observations.dtype)
        )
        whitened_observations = matmul(self.inverse_factor, jnp.where(is_filled, observations, 0.0))
        scale = jnp.exp(0.5 * self.log_feature_var)
        return lambda features: scale * (prior(features[:, :n]) - matmul(features[:, n:], whitened_observations))


class CommonPrior(NamedTuple):
    """The common process as a component of the mixture."""

    process: CommonProcess
    """With an axis of length 1 in front of each array."""
    hypotheses: HypothesisArrays
    """Hypotheses with their weights."""
    log_odds: Float[Array, ""]
    """Log-odds of the process, before the first trial, against the learned priors."""

    def for_task(self, features: Float[Array, " P"]) -> CommonPrior:
        """Returns the process of a new task with standardised features."""
        return self._replace(process=self.process._replace(task_features=features[None]))

    def pad_columns(self, width: int) -> CommonPrior:
        """Returns the process for more columns, all of which are zero."""
        process = self.process
        padding = [(0, 0), (0, width - process.x.shape[-1])]
        past = process.past._replace(
            log_common_lengthscale=jnp.pad(process.past.log_common_lengthscale, padding),
            log_own_lengthscale=jnp.pad(process.past.log_own_lengthscale, padding),
        )
        if past.by_features is not None:
            slopes = jnp.pad(past.by_features.slopes, [*padding, (0, 0)])
            past = past._replace(by_features=past.by_features._replace(slopes=slopes))
        return self._replace(process=process._replace(x=jnp.pad(process.x, [(0, 0), *padding]), past=past))


def past_trials(
    tasks: Mapping[str, Task], rows: int, scale: ResponseScale, features: Float32[np.ndarray, "T P"] | None = None
) -> MultiTaskTrials:
    """Returns all trials, or of each task the best fourth of its share and random others.

    ``features`` are those of the tasks.
    """
    parts, share, random = [], rows // len(tasks), np.random.default_rng(0)
    for number, task in enumerate(tasks.values()):
        order = np.argsort(-task.y, kind="stable")
        row_ids = np.sort(np.concatenate([order[: share // 4], random.permutation(order[share // 4 :])])[:share])
        y = np.asarray(scale_responses(scale, jnp.asarray(task.y, jnp.float32), jnp.ones(task.n_rows, bool)).y)
        parts.append((np.asarray(task.X, np.float32)[row_ids], y[row_ids], np.full(len(row_ids), number, np.int32)))
    trials = MultiTaskTrials(*(jnp.asarray(np.concatenate(part)) for part in zip(*parts, strict=True)))
    return trials if features is None else trials._replace(features=jnp.asarray(features)[trials.task])


class CommonFit(NamedTuple):
    """The model of the past tasks: their trials and its hyperparameters."""

    trials: MultiTaskTrials
    params: MultiTaskParams
    features: StandardisedFeatures | None = None
    """Features of the tasks; None if they have none."""
    fold_params: MultiTaskParams | None = None
    """Hyperparameters fitted without the tasks of K folds, K in front of each array; None if they are ``params``."""

    def without(self, tasks: Int32[np.ndarray, "K H"]) -> tuple[MultiTaskParams, MultiTaskTrials, Int[Array, "K R"]]:
        """Returns the arguments of `condition_without_tasks` for K groups of tasks that are left out."""
        fold_params = self.fold_params
        if fold_params is None:
            fold_params = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(tasks), *a.shape)), self.params)
        return fold_params, self.trials, jax.device_put(remaining_tasks(self.trials, list(tasks)))

    def features_of(self, tasks: Int32[np.ndarray, "K H"]) -> Float[Array, "K H P"] | None:
        """Returns the standardised features of tasks; None if they have none."""
        return None if self.features is None else jax.device_put(self.features.values[tasks])


def remaining_tasks(trials: MultiTaskTrials, tasks: Sequence[npt.ArrayLike]) -> Int32[np.ndarray, "K R"]:
    """Returns the task numbers of the trials, with -1 for the trials of K groups of tasks."""
    task = np.asarray(trials.task)
    return np.stack([np.where(np.isin(task, group), -1, task) for group in tasks])


def fit_past_tasks(
    config: CommonProcessConfig,
    tasks: Mapping[str, Task],
    lengths: LengthScalePrior,
    scale: ResponseScale,
    features: StandardisedFeatures | None = None,
    folds: int = 1,
) -> CommonFit | None:
    """Returns the model of past tasks; None if there are one or two, or if they have too many trials for it.

    One or two tasks do not tell c from f, and none of them can be held out to estimate the share of the process.
    ``lengths`` is the prior of the length scales and of the noise, from the same tasks. Any number of trials is few
    enough if the tasks have features: no other model knows these. What depends on the features is also fitted without
    the tasks of each fold (`held_out_tasks`), since a line fits the few tasks that it was fitted to.
    """
    longest = max(task.n_rows for task in tasks.values())
    least = 1 if features is not None else min(longest, max(config.task_rows, 1))
    if len(tasks) < MIN_TASKS or config.rows // len(tasks) < least:
        return None
    report_progress("compiling the fit of the common process")
    if features is None:
        trials = past_trials(tasks, config.rows, scale)
        return CommonFit(trials, fit_multi_task(config.steps, trials, lengths))
    trials, groups = past_trials(tasks, config.rows, scale, features.values), held_out_tasks(len(tasks), folds)
    slopes, *fold_slopes = (jax.device_put(first_slopes(tasks, features.values, group)) for group in [(), *groups])
    params = fit_multi_task(config.steps, trials, lengths, slopes)
    fold_trials = [trials._replace(task=task) for task in jax.device_put(list(remaining_tasks(trials, groups)))]
    fits = [refit_slopes(config.slope_steps, params, *fold) for fold in zip(fold_trials, fold_slopes, strict=True)]
    return CommonFit(trials, params, features, jax.tree.map(lambda *arrays: jnp.stack(arrays), *fits))


def feature_scale(fit: CommonFit) -> FeatureScale | None:
    """Returns how features of a new task are standardised; None if the past tasks have none."""
    if fit.features is None:
        return None
    values, mean, deviation = fit.features
    errors = jackknife_errors(np.asarray(slopes_of(fit.fold_params)), len(values))
    trust = trust_slopes(np.asarray(slopes_of(fit.params), np.float64), errors)
    arrays = mean, deviation, errors, values.min(axis=0), values.max(axis=0), trust
    return FeatureScale(*(jnp.asarray(a, jnp.float32) for a in arrays))


def common_prior(
    config: CommonProcessConfig, fit: CommonFit, is_fixed: Bool[np.ndarray, " D"], share: float
) -> CommonPrior:
    """Returns the common process as a component of the mixture, which ignores columns that no past task varies.

    ``share`` is its weight, before the first trial, relative to all priors from past tasks.
    """
    process = condition_common(fit.params, fit.trials)
    log_length = jnp.where(is_fixed, _IGNORE, process.past.log_common_lengthscale)
    process = process._replace(past=process.past._replace(log_common_lengthscale=log_length))
    log_odds = jnp.float32(math.log(share) - math.log1p(-share))
    return CommonPrior(jax.tree.map(lambda a: a[None], process), hypothesis_arrays(config.hypotheses), log_odds)


@jit_with_less_effort(is_brief=few_numbers)
def condition_common(params: MultiTaskParams, trials: MultiTaskTrials) -> CommonProcess:
    """Returns the common process given trials of past tasks, for a new task with the mean of their features."""
    weights, inverse_factor = params.condition(trials)
    zero = jnp.zeros((), trials.x.dtype)
    log_slope_var = zero + math.log(_SLOPE_VARIANCE)
    variances = log_slope_var, zero, params.log_own_var, params.log_noise_var
    features = trials.features
    mean_features = None if features is None else jnp.zeros(features.shape[1:], features.dtype)
    return CommonProcess(trials.x, trials.task, params, weights, inverse_factor, *variances, features, mean_features)


@jit_with_less_effort()
def condition_without_tasks(params: MultiTaskParams, trials: MultiTaskTrials, task: Int[Array, "K R"]) -> CommonProcess:
    """Returns `condition_common` of parameters, K in front of each array, and of each row of task numbers."""
    return jax.vmap(lambda params, task: condition_common(params, trials._replace(task=task)))(params, task)
