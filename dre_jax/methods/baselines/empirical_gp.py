"""Gaussian process whose mean and covariance are those of past tasks, by EM (Empirical Gaussian Processes, 2026).

A task's responses at M anchors, configurations of past tasks, have a Gaussian distribution u ~ N(mu, S). Between the
anchors a process of Matern correlation k interpolates, f(x) = a(x)' u + r(x) with a(x) = K^-1 k(x), so tasks need no
configuration in common. EM alternates the posterior of each past task's u with the mu and S of all posteriors; S has an
inverse Wishart prior at K.

The task at hand is b + s mu(x) + a(x)' (u - mu) + d(x) with b ~ N(0, 1) and s ~ N(1, 0.1). The variances of its own
deviation d and of the noise, and the length scale of d, are those of a grid, weighted by the evidence of the trials; a
common scale is integrated out (`dre_jax.gp.student`). Expected improvement.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.checks import Checked, Positive
from dre_jax.data import SearchSpace
from dre_jax.gp.kernels import matern52, squared_distances
from dre_jax.gp.regression import add_noise, matmul
from dre_jax.gp.response_scale import best_response, masked_mean, scale_responses
from dre_jax.gp.source_processes import SourceTasks
from dre_jax.gp.student import condition_student_t
from dre_jax.methods.baselines.source_processes import gather_rows
from dre_jax.methods.entries.entry import Entry
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.acquisition import log_expected_improvement
from dre_jax.search.history import Candidates, History

GRID = np.array(list(itertools.product((0.03, 0.3, 1.0), (0.1, 0.25, 0.6), (0.001, 0.03))), np.float32)
"""f32[18, 3]: variance and length scale, in roots of the number of columns, of the deviation; variance of the noise."""
LENGTH, NOISE, NUGGET = 0.4, 0.03, 0.01
"""Length scale of the interpolation in these roots; variances of the noise of past responses and of K's diagonal."""
STEPS, SHRINKAGE, MAX_FUNCTIONS = 10, 1.0, 64
"""Iterations of EM; number of tasks that the prior of S counts for; maximum Q."""
SLOPE_VARIANCE, DEGREES_OF_FREEDOM = 0.1, 5.0


class EmpiricalPrior(NamedTuple):
    """The mean and the covariance of past tasks, functions of the correlations with the anchors."""

    anchors: Array
    """f32[M, D]"""
    weights: Array
    """f32[M, 1 + Q]: weights of the mean, and of Q functions whose sum of products is the covariance."""

    def functions(self, x: Array) -> tuple[Array, Array]:
        """Returns the mean f32[n] and the functions f32[n, Q] at f32[n, D]."""
        values = by_blocks(lambda rows: matmul(_matern(rows, self.anchors, LENGTH), self.weights), x)
        return values[:, 0], values[:, 1:]


def _matern(a: Array, b: Array, length: Array | float) -> Array:
    length = length * a.shape[1] ** 0.5
    return matern52(squared_distances(a / length, b / length))


def choose_rows(meta: SearchSpace, n: int, key: Array) -> tuple[npt.NDArray[np.float32], SourceTasks]:
    """Returns at most n configurations, those of most tasks, and at most n rows of each task, these first."""
    tasks = list(meta.require_train_tasks().values())
    x = np.concatenate([np.asarray(task.X, np.float32) for task in tasks])
    configurations, ids, counts = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint64))
    chosen = np.lexsort((random.random(len(counts)), -counts))[:n]
    masks = np.split(np.isin(ids.ravel(), chosen), np.cumsum([task.n_rows for task in tasks])[:-1])
    return configurations[chosen], gather_rows(meta, [np.sort(np.argsort(~mask, kind="stable")[:n]) for mask in masks])


def past_moments(anchors: np.ndarray, xs: np.ndarray, ys: np.ndarray, wheres: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the mean f64[M] and the covariance f64[M, M] of tasks at the anchors by EM, and its prior."""
    correlation = jax.jit(_matern, static_argnums=2)
    prior = np.asarray(correlation(anchors, anchors, LENGTH), np.float64) + NUGGET * np.eye(len(anchors))
    past = []
    for x, y, where in zip(xs, ys.astype(np.float64), wheres, strict=True):
        cross = np.asarray(correlation(x, anchors, LENGTH), np.float64)
        weights = np.linalg.solve(prior, cross.T).T
        errors = NOISE + np.maximum(1.0 - np.sum(weights * cross, axis=1), 0.0)
        past.append((weights[where], y[where], errors[where]))
    mean, covariance = np.zeros(len(prior)), prior
    for _ in range(STEPS):
        means, total = [], SHRINKAGE * prior
        for weights, y, errors in past:
            cross = weights @ covariance
            gain = np.linalg.solve(cross @ weights.T + np.diag(errors), cross).T
            means.append(mean + gain @ (y - weights @ mean))
            total = total + covariance - gain @ cross
        mean = np.mean(means, axis=0)
        deviations = np.array(means) - mean
        covariance = (total + deviations.T @ deviations) / (len(past) + SHRINKAGE)
    return mean, covariance, prior


@dataclass(frozen=True, kw_only=True)
class EmpiricalGP(Checked):
    """A Gaussian process with the mean and the covariance of past tasks."""

    rows: Positive[int] = 300
    """Maximum number of anchors, and of rows of a past task."""

    def abstract_params(self, n_columns: int) -> EmpiricalPrior:
        """Returns the shapes for one anchor."""
        return jax.eval_shape(lambda: EmpiricalPrior(jnp.zeros((1, n_columns)), jnp.zeros((1, 2))))

    @on_one_thread
    def fit(self, meta: SearchSpace, key: Array) -> EmpiricalPrior:
        """Returns the mean and the covariance of the training tasks, computed in float64 on the host."""
        anchors, tasks = choose_rows(meta, self.rows, key)
        y = jax.vmap(lambda y, where: scale_responses("compressed", y, where).y)(tasks.y, tasks.where)
        mean, covariance, prior = past_moments(anchors, *map(np.asarray, (tasks.x, y, tasks.where)))
        variances, directions = np.linalg.eigh(covariance)
        functions = (directions * np.sqrt(np.maximum(variances, 0.0)))[:, ::-1][:, :MAX_FUNCTIONS]
        weights = np.linalg.solve(prior, np.column_stack([mean, functions])).astype(np.float32)
        return EmpiricalPrior(*jax.device_put((anchors, weights)))

    def acquire(self, params: EmpiricalPrior, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns the log expected improvement of compressed responses, averaged over the grid."""
        x, where, new = history.x, history.where, candidates.x
        y = scale_responses("compressed", history.response, where).y
        (mean, past), (new_mean, new_past) = (params.functions(rows) for rows in (x, new))
        level = masked_mean(mean, where)  # the constant b has no scale of the past
        mean, new_mean = mean - level, new_mean - level
        matrix = 1.0 + SLOPE_VARIANCE * mean[:, None] * mean[None, :] + matmul(past, past.T)
        cross = 1.0 + SLOPE_VARIANCE * mean[:, None] * new_mean[None, :] + matmul(past, new_past.T)
        variance = 1.0 + SLOPE_VARIANCE * new_mean**2 + jnp.sum(new_past**2, axis=1)
        residual, best = jnp.where(where, y - mean, 0.0), best_response(y, history.incumbents)
        incumbent = jnp.where(jnp.isfinite(best), -best, 0.0)

        def improvement(hypothesis: Array) -> tuple[Array, Array]:
            task_variance, length, noise = hypothesis
            observed = add_noise(matrix + task_variance * _matern(x, x, length), noise, where)
            process = condition_student_t(observed, residual, where, DEGREES_OF_FREEDOM)
            shift, new_variance = process.predict(
                cross + task_variance * _matern(x, new, length), variance + task_variance
            )
            return process.log_density, log_expected_improvement(-new_mean - shift, jnp.sqrt(new_variance), incumbent)

        densities, improvements = jax.lax.map(improvement, jnp.asarray(GRID))
        values = jax.nn.logsumexp(jax.nn.log_softmax(densities)[:, None] + improvements, axis=0)
        return jnp.where(jnp.isfinite(best), values, new_mean)


_PAPER = "Empirical Gaussian Processes, arXiv 2602.12082"
_SUMMARY = "Gaussian process with the mean and covariance of past tasks, by EM"
ENTRIES = (Entry(name="empirical-gp", summary=_SUMMARY, paper=_PAPER, transfer=True, default=EmpiricalGP()),)
