"""Features of tasks: their standardisation, and how the best configuration of a task moves with them.

The common process of past tasks depends on their features (`dre_jax.gp.multi_task`). Its slopes are first those of a
line through the best configurations of the tasks. Their standard errors are those of the jackknife over folds of tasks
(Efron and Stein 1981).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Float32, Float64

from dre_jax.data import Task
from dre_jax.gp.multi_task import MultiTaskParams

_BEST = 5  # configurations of a past task through which the first line goes
_RIDGE = 1.0  # tasks that a slope of zero counts as
_LEAST_SLOPE = 1e-6  # of a column that may move; zero is for those that may not


class StandardisedFeatures(NamedTuple):
    """Features of T past tasks with mean 0 and standard deviation 1, 0 where unknown."""

    values: Float32[np.ndarray, "T P"]
    """The features."""
    mean: Float64[np.ndarray, " P"]
    """Means of the features over the past tasks."""
    deviation: Float64[np.ndarray, " P"]
    """Their standard deviations; 1 for a feature that does not vary."""


class FeatureScale(NamedTuple):
    """How the features of a new task are standardised, and how certain the slopes of the common process are."""

    mean: Float[Array, " P"]
    """Means of the features over the past tasks."""
    deviation: Float[Array, " P"]
    """Their standard deviations."""
    slope_errors: Float[Array, "D P"]
    """Standard errors of the slopes, columns by standardised features."""
    low: Float[Array, " P"]
    """The smallest standardised features of the past tasks."""
    high: Float[Array, " P"]
    """The largest ones."""
    trust: Float[Array, " P"]
    """How far a feature is extrapolated, from 0, not at all, to 1; see `trust_slopes`."""

    def standardise(self, features: Float[Array, " P"]) -> Float[Array, " P"]:
        """Returns standardised features of a new task; unknown ones, NaN, are those of the mean past task.

        Beyond the past tasks, a feature without a clear slope stays at its bound: one that hardly varies among them
        would otherwise be hundreds of standard deviations away.
        """
        standardised = (jnp.asarray(features, self.mean.dtype) - self.mean) / self.deviation
        standardised = jnp.where(jnp.isnan(standardised), 0.0, standardised)
        inside = jnp.clip(standardised, self.low, self.high)
        return inside + self.trust * (standardised - inside)

    def slopes(self, process: MultiTaskParams) -> tuple[Float[Array, "D P"], Float[Array, "D P"]]:
        """Returns the slopes of a process, columns by features, and their standard errors."""
        deviation = self.deviation[None, :]
        return slopes_of(process) / deviation, self.slope_errors / deviation

    def pad_columns(self, width: int) -> FeatureScale:
        """Returns the scale for more columns."""
        return self._replace(slope_errors=jnp.pad(self.slope_errors, [(0, width - len(self.slope_errors)), (0, 0)]))


def slopes_of(process: MultiTaskParams | None) -> Float[Array, "*batch D P"]:
    """Returns the slopes of a process of tasks with features."""
    by_features = None if process is None else process.by_features
    assert by_features is not None, "the process must be one of tasks with features"
    return by_features.slopes


def standardise_features(tasks: Mapping[str, Task]) -> StandardisedFeatures | None:
    """Returns the features of tasks; None if a task has none, or they do not vary."""
    rows = [task.features for task in tasks.values() if task.features is not None and len(task.features)]
    if len(rows) < len(tasks):
        return None
    features = np.array(rows, np.float64)
    is_known = ~np.isnan(features)
    count = np.maximum(is_known.sum(axis=0), 1)
    mean = np.where(is_known, features, 0.0).sum(axis=0) / count
    centred = np.where(is_known, features - mean, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=0) / count)
    deviation = np.where(deviation > 0.0, deviation, 1.0)
    return StandardisedFeatures((centred / deviation).astype(np.float32), mean, deviation) if centred.any() else None


def first_slopes(
    tasks: Mapping[str, Task], features: Float32[np.ndarray, "T P"], without: Collection[int] = ()
) -> Float32[np.ndarray, "D P"]:
    """Returns the slopes of a line in features through the best configurations of tasks, by ridge.

    They are 0 exactly for columns of at most two values, such as those of a choice, which do not move. ``without`` are
    the numbers of tasks that are left out.
    """
    numbers = [number for number in range(len(tasks)) if number not in without]
    tables = [task for number, task in enumerate(tasks.values()) if number in numbers]
    best = np.stack([task.X[np.argsort(-task.y, kind="stable")[:_BEST]].mean(axis=0) for task in tables])
    z = features[numbers].astype(np.float64)
    z, best = z - z.mean(axis=0), best - best.mean(axis=0)
    slopes = np.linalg.solve(z.T @ z + _RIDGE * np.eye(z.shape[1]), z.T @ best).T
    moves = np.array([len(np.unique(column)) > 2 for column in np.concatenate([task.X for task in tasks.values()]).T])
    return np.where(moves[:, None], np.where(slopes == 0.0, _LEAST_SLOPE, slopes), 0.0).astype(np.float32)


def jackknife_errors(of_folds: Float[np.ndarray, "K D P"], n_tasks: int) -> Float64[np.ndarray, "D P"]:
    """Returns the standard errors of slopes, given those without the tasks of each fold.

    With fewer tasks than folds, the last folds repeat the first ones.
    """
    count = min(len(of_folds), n_tasks)
    of_folds = of_folds[:count].astype(np.float64)
    return np.sqrt((count - 1) * np.mean((of_folds - of_folds.mean(axis=0)) ** 2, axis=0))


def trust_slopes(slopes: Float64[np.ndarray, "D P"], errors: Float64[np.ndarray, "D P"]) -> Float64[np.ndarray, " P"]:
    """Returns how much of the clearest slope of each feature is more than its error, in [0, 1].

    This is the positive part of the estimate of James and Stein (1961) for a single slope.
    """
    ratios = np.divide(errors, np.abs(slopes), out=np.full(slopes.shape, np.inf), where=slopes != 0.0)
    return np.maximum(1.0 - np.min(ratios, axis=0) ** 2, 0.0)
