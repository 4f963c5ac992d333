"""Length scales and noise that past tasks had, as a prior of those of a new one.

A Gaussian process with a length scale for each column is fitted to each past task. Logarithms of its length scales are
taken for draws of a Gaussian for each column, of which mean and variance have a normal-inverse-gamma prior around a
generic one (Gelman et al. 2013, section 3.3). A short task counts as a part of one: w = n / (n + 10) of n trials.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.checks import at_least, positive
from dre_jax.data import Task
from dre_jax.data.tasks import TaskTable, build_table
from dre_jax.gp.fit import clip_hyperparameters
from dre_jax.gp.regression import GPParams, log_marginal_likelihood
from dre_jax.gp.response_scale import standardise
from dre_jax.optim.descent import maximise

USUAL_LENGTH = 0.3
"""Length scale without past tasks, in roots of the number of columns."""
_HALF_ROWS = 10.0  # trials with which a task counts for half
_MUCH_NOISE = -1.0  # logarithm of its variance; a density has a maximum with little noise and one with much


@dataclass(frozen=True, kw_only=True)
class LengthScaleConfig:
    """Fits to past tasks.

    Raises:
      ConfigError: where a number is out of range.
    """

    rows: int = 64
    """Trials of a task, at most, drawn at random."""
    tasks: int = 64
    """Tasks, at most: the first ones."""
    steps: int = 40
    """Points that Adam tries, the start among them."""
    learning_rate: float = 0.2
    """Adam's, at the start; it falls to zero along a cosine."""
    strength: float = 3.0
    """Tasks that the generic prior counts for."""

    def __post_init__(self) -> None:
        at_least(2, self, "rows")
        at_least(1, self, "tasks", "steps")
        positive(self, "learning_rate", "strength")


class LengthScalePrior(NamedTuple):
    """Independent Gaussians of the logarithms of hyperparameters."""

    mean: Array
    """f[D]: of the length scales."""
    deviation: Array
    """f[D]"""
    noise_mean: Array
    """Scalar: of the noise's variance."""
    noise_deviation: Array
    """Scalar."""


def generic_prior(n_columns: int) -> LengthScalePrior:
    """The prior without past tasks: length scales that grow with the root of the number of columns.

    They do in Hvarfner et al. (2024). On tables of models shorter ones with more noise predict better, on smooth
    functions longer ones with less; the prior is wide enough for both.

    Example:
      >>> float(jnp.exp(generic_prior(4).mean[0]).round(2))
      0.6
    """
    length = math.log(USUAL_LENGTH) + 0.5 * math.log(max(n_columns, 1))
    ones = jnp.ones(n_columns, jnp.float32)
    return LengthScalePrior(length * ones, ones, jnp.float32(-6.0), jnp.float32(3.0))


def log_prior(prior: LengthScalePrior, log_length: Array, log_noise: Array) -> Array:
    """Log-density of length scales f[D] and of the noise's variance, a scalar, up to a constant."""
    lengths = jnp.sum(((log_length - prior.mean) / prior.deviation) ** 2)
    return -0.5 * (lengths + ((log_noise - prior.noise_mean) / prior.noise_deviation) ** 2)


def fit_process(config: LengthScaleConfig, prior: LengthScalePrior, x: Array, y: Array, where: Array) -> GPParams:
    """Hyperparameters of the highest density given a history, from a search with little noise and one with much.

    Args:
      config: how long is searched.
      prior: of the hyperparameters.
      x: f[n, D].
      y: f[n], standardised responses, 0 in empty slots.
      where: bool[n], the filled slots.
    """

    def objective(params: GPParams) -> Array:
        density = log_prior(prior, params.log_length, params.log_noise) - 0.5 * params.log_scale**2
        return log_marginal_likelihood(params, x, y, where) + density

    def search(log_noise: Array) -> tuple[GPParams, Array]:
        start = GPParams(prior.mean, jnp.zeros((), x.dtype), log_noise)
        return maximise(
            objective, start, steps=config.steps, learning_rate=config.learning_rate, project=clip_hyperparameters
        )

    found, values = jax.vmap(search)(jnp.stack([prior.noise_mean, jnp.full_like(prior.noise_mean, _MUCH_NOISE)]))
    best = jnp.argmax(values)
    return jax.tree.map(lambda a: a[best], found)


@partial(jax.jit, static_argnames="config")
def _fit_tasks(config: LengthScaleConfig, table: TaskTable, rows: Array, where: Array) -> GPParams:
    """Hyperparameters of A tasks, A in front; row numbers i32[A, n], bool[A, n]."""
    generic = generic_prior(table.n_columns)

    def of_task(history: tuple[Array, Array]) -> GPParams:
        rows, where = history
        y = standardise(table.response[rows], where).y
        return fit_process(config, generic, jnp.where(where[:, None], table.x[rows], 0.0), y, where)

    return jax.lax.map(of_task, (rows, where))


def fit_length_scale_prior(config: LengthScaleConfig, tasks: Mapping[str, Task]) -> LengthScalePrior:
    """The prior that past tasks teach; the generic one where they have no two different responses.

    Args:
      config: how the processes are fitted, and how much it takes to move the generic prior.
      tasks: past tasks.

    Raises:
      DataError: without tasks, or with different numbers of columns.
    """
    chosen = dict(list(tasks.items())[: config.tasks])
    table = build_table(chosen)
    rows, where = _draw_rows(config, chosen, np.asarray(table.start))
    params = _fit_tasks(config, table, *jax.device_put((rows, where)))
    count = where.sum(axis=1)
    varied = np.array([len(np.unique(task.y)) > 1 for task in chosen.values()])
    weight = np.where(varied, count / (count + _HALF_ROWS), 0.0)
    generic = generic_prior(table.n_columns)
    update = partial(_update, config.strength, weight=weight)
    length = update(_double(params.log_length), _double(generic.mean), _double(generic.deviation))
    noise = update(_double(params.log_noise), _double(generic.noise_mean), _double(generic.noise_deviation))
    return LengthScalePrior(*(jnp.asarray(a, jnp.float32) for a in (*length, *noise)))


def _double(a: Array) -> npt.NDArray[np.float64]:
    return np.asarray(a, np.float64)


def _draw_rows(
    config: LengthScaleConfig, tasks: Mapping[str, Task], start: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Row numbers in the table i32[A, n], and bool[A, n]; a draw goes by the task's name."""
    most = min(config.rows, max(task.n_rows for task in tasks.values()))
    rows = np.zeros((len(tasks), most), np.int32)
    where = np.zeros((len(tasks), most), np.bool_)
    for i, (name, task) in enumerate(tasks.items()):
        n = min(task.n_rows, most)
        random = np.random.default_rng(zlib.crc32(str(name).encode()))
        rows[i, :n] = start[i] + np.sort(random.permutation(task.n_rows)[:n])
        where[i, :n] = True
    return rows, where


def _update(
    strength: float,
    values: npt.NDArray[np.float64],
    mean: npt.NDArray[np.float64],
    deviation: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and deviation of weighted values [A, ...] and of as many generic ones as the strength says."""
    weight = weight.reshape(-1, *(1,) * (values.ndim - 1))
    total = strength + weight.sum()
    middle = (strength * mean + (weight * values).sum(axis=0)) / total
    squares = strength * (deviation**2 + (mean - middle) ** 2) + (weight * (values - middle) ** 2).sum(axis=0)
    return middle, np.sqrt(squares / total)
