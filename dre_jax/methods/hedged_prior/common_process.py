"""The process that a few past tasks have in common, given their trials, as a prior of a new task.

The model of the past tasks is a multi-task Gaussian process (`dre_jax.gp.multi_task`). The posterior of its process c
given the trials of all past tasks is a prior for a new task: its mean is the trend m of
`dre_jax.methods.hedged_prior.priors`, and the rest of it is the process g. With few past tasks it predicts a new one
better than networks do, but its cost grows with the cube of all past trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.checks import Checked, NonNegative
from dre_jax.data import Task
from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.fourier import sample_matern52
from dre_jax.gp.length_scale_prior import LengthScalePrior
from dre_jax.gp.multi_task import MultiTaskParams, fit_multi_task
from dre_jax.gp.regression import matmul
from dre_jax.gp.response_scale import ResponseScale, scale_responses
from dre_jax.gp.task_process import SLOPE_VARIANCE
from dre_jax.methods.hedged_prior import hypotheses
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis, HypothesisArrays, hypothesis_arrays
from dre_jax.methods.hedged_prior.priors import PriorFeatures
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
    hypotheses: tuple[Hypothesis, ...] = HYPOTHESES
    """Hypotheses of how the process applies to a new task."""


class CommonProcess(NamedTuple):
    """The process c given R trials of past tasks, as a prior of a new task (`dre_jax.methods.hedged_prior.priors`)."""

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

    def compute_features(self, x: Array) -> PriorFeatures:
        """Returns the mean of c, the inputs of `feature_covariance` and the scaled columns of f at f[n, D]."""
        past, new = map(self.past.common_columns, (self.x, x))
        cross = jnp.where((self.task >= 0)[:, None], self.past.common_covariance(past, new), 0.0)
        features = jnp.concatenate([new, matmul(self.inverse_factor, cross).T], axis=1)
        scaled_columns = x * jnp.exp(-self.past.log_own_lengthscale)[None, :]
        return PriorFeatures(matmul(self.weights, cross), features, scaled_columns)

    def feature_covariance(self, a: Array, b: Array) -> Array:
        """Returns the posterior covariance of c; features f[n, D + R] and f[m, D + R] -> f[n, m]."""
        n = self.x.shape[-1]
        return self.past.common_covariance(a[:, :n], b[:, :n]) - matmul(a[:, n:], b[:, n:].T)

    def feature_variance(self, features: Array) -> Array:
        """Returns the diagonal of `feature_covariance`, f[n]."""
        explained_variance = jnp.sum(features[:, self.x.shape[-1] :] ** 2, axis=1)
        variance = jnp.exp(self.past.log_common_var)
        return jnp.maximum(variance - explained_variance, variance * jnp.finfo(variance.dtype).eps)

    def sample_features(self, n_features: int, key: Array) -> Callable[[Array], Array]:
        """Samples g, c minus its mean times the root of G, of features f[n, D + R] -> f[n] (Matheron's rule)."""
        prior_key, residual_key = jax.random.split(key)
        n, is_filled = self.x.shape[-1], self.task >= 0
        prior = sample_matern52(n, jnp.exp(self.past.log_common_var), prior_key)
        without_common = self.past._replace(log_common_var=jnp.full_like(self.past.log_common_var, -jnp.inf))
        lower, _ = safe_cholesky(without_common.covariance(self.x, self.task))
        observations = prior(self.past.common_columns(self.x))
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
    log_odds: Array
    """Scalar: log-odds of the process, before the first trial, against the learned priors."""

    def pad_columns(self, width: int) -> CommonPrior:
        """Returns the process for more columns, all of which are zero."""
        process = self.process
        padding = [(0, 0), (0, width - process.x.shape[-1])]
        past = process.past._replace(
            log_common_lengthscale=jnp.pad(process.past.log_common_lengthscale, padding),
            log_own_lengthscale=jnp.pad(process.past.log_own_lengthscale, padding),
        )
        return self._replace(process=process._replace(x=jnp.pad(process.x, [(0, 0), *padding]), past=past))


class PastTrials(NamedTuple):
    """R trials of past tasks."""

    x: npt.NDArray[np.float32]
    """f32[R, D]"""
    y: npt.NDArray[np.float32]
    """f32[R]: responses, scaled task by task."""
    task: npt.NDArray[np.int32]
    """i32[R]"""


def past_trials(tasks: Mapping[str, Task], rows: int, scale: ResponseScale) -> PastTrials:
    """Returns all trials, or of each task the best fourth of its share and random others."""
    parts, share, random = [], rows // len(tasks), np.random.default_rng(0)
    for number, task in enumerate(tasks.values()):
        order = np.argsort(-task.y, kind="stable")
        row_ids = np.sort(np.concatenate([order[: share // 4], random.permutation(order[share // 4 :])])[:share])
        y = np.asarray(scale_responses(scale, jnp.asarray(task.y, jnp.float32), jnp.ones(task.n_rows, bool)).y)
        parts.append((np.asarray(task.X, np.float32)[row_ids], y[row_ids], np.full(len(row_ids), number, np.int32)))
    return PastTrials(*(np.concatenate(part) for part in zip(*parts, strict=True)))


class CommonFit(NamedTuple):
    """The model of the past tasks: their trials and its hyperparameters."""

    trials: PastTrials
    params: MultiTaskParams

    def without(self, tasks: npt.NDArray[np.int32]) -> tuple[MultiTaskParams, Array, Array, Array]:
        """Returns the arguments of `condition_without_tasks` for K groups of tasks that are left out, i32[K, H]."""
        x, y, task = self.trials
        remaining_tasks = np.stack([np.where(np.isin(task, group), -1, task) for group in tasks])
        return self.params, *jax.device_put((x, y, remaining_tasks))


def fit_past_tasks(
    config: CommonProcessConfig, tasks: Mapping[str, Task], lengths: LengthScalePrior, scale: ResponseScale
) -> CommonFit | None:
    """Returns the model of past tasks; None if there are one or two, or if they have too many trials for it.

    One or two tasks do not tell c from f, and none of them can be held out to estimate the share of the process.
    ``lengths`` is the prior of the length scales and of the noise, from the same tasks.
    """
    longest = max(task.n_rows for task in tasks.values())
    if len(tasks) < MIN_TASKS or config.rows // len(tasks) < min(longest, max(config.task_rows, 1)):
        return None
    report_progress("compiling the fit of the common process")
    trials = past_trials(tasks, config.rows, scale)
    x, y, task = jax.device_put(trials)
    return CommonFit(trials, fit_multi_task(config.steps, x, y, task, lengths))


def common_prior(
    config: CommonProcessConfig, fit: CommonFit, is_fixed: npt.NDArray[np.bool_], share: float
) -> CommonPrior:
    """Returns the common process as a component of the mixture, which ignores columns that no past task varies.

    ``share`` is its weight, before the first trial, relative to all priors from past tasks.
    """
    process = condition_common(fit.params, *jax.device_put(fit.trials))
    log_length = jnp.where(is_fixed, _IGNORE, process.past.log_common_lengthscale)
    process = process._replace(past=process.past._replace(log_common_lengthscale=log_length))
    log_odds = jnp.float32(math.log(share) - math.log1p(-share))
    return CommonPrior(jax.tree.map(lambda a: a[None], process), hypothesis_arrays(config.hypotheses), log_odds)


@jit_with_less_effort(is_brief=few_numbers)
def condition_common(params: MultiTaskParams, x: Array, y: Array, task: Array) -> CommonProcess:
    """Returns the common process given trials of past tasks f[R, D], f[R] and i32[R]; slots of task -1 are empty."""
    weights, inverse_factor = params.condition(x, y, task)
    zero = jnp.zeros((), x.dtype)
    log_slope_var = zero + math.log(SLOPE_VARIANCE)
    return CommonProcess(
        x, task, params, weights, inverse_factor, log_slope_var, zero, params.log_own_var, params.log_noise_var
    )


@jit_with_less_effort()
def condition_without_tasks(params: MultiTaskParams, x: Array, y: Array, task: Array) -> CommonProcess:
    """Returns `condition_common` of each row of tasks i32[K, R], K in front of each array."""
    return jax.vmap(partial(condition_common, params, x, y))(task)
