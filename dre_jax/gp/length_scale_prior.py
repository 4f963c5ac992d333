"""A prior of length scales and noise for a new task, estimated from past tasks.

A Gaussian process with a length scale for each column is fitted to each past task. The log length scales of a column
are modelled as samples of a Gaussian, whose mean and variance have a normal-inverse-gamma prior centred on a generic
prior (Gelman et al. 2013, section 3.3). A task of n trials has the weight n / (n + 10), except for columns that it
does not vary.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Float64, Int, Int32

from dre_jax.checks import AtLeastOne, AtLeastTwo, Checked, Positive
from dre_jax.data import Task
from dre_jax.data.tasks import TaskTable, build_table
from dre_jax.gp.fit import GPConfig, clip_hyperparameters, maximise_from_starts
from dre_jax.gp.regression import GPParams, log_marginal_likelihood
from dre_jax.gp.response_scale import ResponseScale, scale_responses
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.runtime.reports import report_progress

GENERIC_LENGTHSCALE = 0.3
"""Length scale without past tasks, in units of the square root of the number of columns."""
_HALF_ROWS = 10.0  # number of trials at which a task has the weight 1/2
_FLAT_DEVIATION = 1e6  # standard deviation of a prior that is flat in effect
_LOG_NOISE, _LARGE_LOG_NOISE = -6.0, -1.0  # the density often has a local maximum with little noise and one with much


@dataclass(frozen=True, kw_only=True)
class LengthScaleConfig(Checked):
    """Settings of the fits to past tasks. Raises `ConfigError` if a number is out of range."""

    rows: AtLeastTwo[int] = 64
    """Maximum number of trials of a task, drawn at random."""
    tasks: AtLeastOne[int] = 64
    """Maximum number of tasks; the first ones are used."""
    steps: AtLeastOne[int] = 40
    """Number of points that Adam evaluates, the start included."""
    learning_rate: Positive[float] = 0.2
    """Initial learning rate of Adam; a cosine decays it to zero."""
    strength: Positive[float] = 3.0
    """Number of tasks that the generic prior counts as."""


class LengthScalePrior(NamedTuple):
    """Independent Gaussian priors of log hyperparameters."""

    mean: Float[Array, " D"]
    """Means of the log length scales."""
    deviation: Float[Array, " D"]
    """Standard deviations of the log length scales."""
    noise_mean: Float[Array, ""]
    """Mean of the log noise variance."""
    noise_deviation: Float[Array, ""]
    """Standard deviation of the log noise variance."""

    def pad_columns(self, width: int) -> LengthScalePrior:
        """Returns the prior for more columns, all of which are zero, so that their length scales change no result."""
        padding = (0, width - self.mean.shape[-1])
        deviation = jnp.pad(self.deviation, padding, constant_values=_FLAT_DEVIATION)
        return self._replace(mean=jnp.pad(self.mean, padding, mode="edge"), deviation=deviation)


def generic_prior(n_columns: int) -> LengthScalePrior:
    """Returns the prior without past tasks: length scales proportional to the square root of the number of columns.

    Hvarfner et al. (2024) scale them alike. Short length scales with more noise predict tables of models better, long
    ones with less noise smooth functions; the prior is wide enough for both.
    """
    length = math.log(GENERIC_LENGTHSCALE) + 0.5 * math.log(max(n_columns, 1))
    ones = jnp.ones(n_columns, jnp.float32)
    return LengthScalePrior(length * ones, ones, jnp.float32(_LOG_NOISE), jnp.float32(3.0))


def generic_prior_like(x: Float[Array, "n D"]) -> LengthScalePrior:
    """Returns the prior without past tasks for configurations, in their dtype."""
    return jax.tree.map(lambda a: a.astype(x.dtype), generic_prior(x.shape[1]))


def log_length_scale_prior(
    prior: LengthScalePrior, log_length: Float[Array, " D"], log_noise: Float[Array, ""]
) -> Float[Array, ""]:
    """Returns the log prior density of log length scales and a log noise variance up to a constant."""
    lengths = jnp.sum(((log_length - prior.mean) / prior.deviation) ** 2)
    return -0.5 * (lengths + ((log_noise - prior.noise_mean) / prior.noise_deviation) ** 2)


@jit_with_less_effort("config", "scale", is_brief=few_numbers)
def _fit_tasks(
    config: LengthScaleConfig,
    scale: ResponseScale,
    table: TaskTable,
    rows: Int[Array, "A n"],
    where: Bool[Array, "A n"],
) -> GPParams:
    """Returns the hyperparameters of A tasks, A in front, given the numbers of their rows."""
    generic, log_noises = generic_prior(table.n_columns), (_LOG_NOISE, _LARGE_LOG_NOISE)
    fitting = GPConfig(steps=config.steps, learning_rate=config.learning_rate, first_log_noises=log_noises)

    def fit_task(history: tuple[Array, Array]) -> GPParams:
        rows, where = history
        x = jnp.where(where[:, None], table.x[rows], 0.0)
        y = scale_responses(scale, table.response[rows], where).y

        def objective(params: GPParams) -> Array:
            density = log_length_scale_prior(generic, params.log_length, params.log_noise) - 0.5 * params.log_scale**2
            return log_marginal_likelihood(params, x, y, where) + density

        def start_at(start: GPParams) -> GPParams:
            return replace(start, log_length=generic.mean)

        return maximise_from_starts(fitting, objective, start_at, clip_hyperparameters, x)

    return jax.lax.map(fit_task, (rows, where))


def fit_length_scale_prior(
    config: LengthScaleConfig, tasks: Mapping[str, Task], scale: ResponseScale
) -> LengthScalePrior:
    """Returns the prior estimated from past tasks; a task with equal responses has no weight.

    Raises `DataError` if there are no tasks or they differ in the number of columns.
    """
    selected_tasks = dict(list(tasks.items())[: config.tasks])
    table = build_table(selected_tasks)
    rows, where = _draw_rows(config, selected_tasks, np.asarray(table.start))
    report_progress("compiling the fits of length scales")
    params = _fit_tasks(config, scale, table, *jax.device_put((rows, where)))
    count = where.sum(axis=1)
    has_spread = np.array([len(np.unique(task.y)) > 1 for task in selected_tasks.values()])
    weight = np.where(has_spread, count / (count + _HALF_ROWS), 0.0)
    column_weight = weight[:, None] * np.array([np.ptp(task.X, axis=0) > 0.0 for task in selected_tasks.values()])
    generic = generic_prior(table.n_columns)
    mean, deviation, noise_mean, noise_deviation = (np.asarray(a, np.float64) for a in generic)
    lengths, noises = (np.asarray(a, np.float64) for a in (params.log_length, params.log_noise))
    length = _update(config.strength, lengths, mean, deviation, column_weight)
    noise = _update(config.strength, noises, noise_mean, noise_deviation, weight)
    return LengthScalePrior(*(jnp.asarray(a, jnp.float32) for a in (*length, *noise)))


def _draw_rows(
    config: LengthScaleConfig, tasks: Mapping[str, Task], start: Int32[np.ndarray, " A"]
) -> tuple[Int32[np.ndarray, "A n"], Bool[np.ndarray, "A n"]]:
    """Returns row numbers in the table, and the filled slots. The random seed depends on the task's name."""
    n_rows = min(config.rows, max(task.n_rows for task in tasks.values()))
    rows = np.zeros((len(tasks), n_rows), np.int32)
    where = np.zeros((len(tasks), n_rows), np.bool_)
    for i, (name, task) in enumerate(tasks.items()):
        n = min(task.n_rows, n_rows)
        random = np.random.default_rng(zlib.crc32(str(name).encode()))
        rows[i, :n] = start[i] + np.sort(random.permutation(task.n_rows)[:n])
        where[i, :n] = True
    return rows, where


def _update(
    strength: float,
    values: Float64[np.ndarray, " A *shape"],
    mean: Float64[np.ndarray, " *shape"],
    deviation: Float64[np.ndarray, " *shape"],
    weight: Float64[np.ndarray, "A *#shape"],
) -> tuple[Float64[np.ndarray, " *shape"], Float64[np.ndarray, " *shape"]]:
    """Returns the mean and deviation of values with weights, and of ``strength`` generic tasks."""
    total = strength + weight.sum(axis=0)
    posterior_mean = (strength * mean + (weight * values).sum(axis=0)) / total
    squares = strength * (deviation**2 + (mean - posterior_mean) ** 2) + (weight * (values - posterior_mean) ** 2).sum(
        axis=0
    )
    return posterior_mean, np.sqrt(squares / total)
