"""Gaussian processes of past tasks, one each, fitted once."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from dre_jax.gp.cholesky import triangular_solve
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import (
    ConditionedGP,
    GPParams,
    add_noise,
    condition_gp,
    matmul,
    predict_signal_at,
    prepare_gp,
    signal_covariance,
)
from dre_jax.runtime.blocks import by_blocks


class SourceTasks(NamedTuple):
    """Rows of S past tasks, n slots each."""

    x: Float[Array, "S n D"]
    """Configurations."""
    y: Float[Array, "S n"]
    """Responses, standardised within each task."""
    where: Bool[Array, "S n"]
    """The filled slots."""


class SourceProcesses(NamedTuple):
    """S Gaussian processes conditioned on their tasks; S is in front of every leaf."""

    params: GPParams
    x: Float[Array, "S n D"]
    """Configurations of the tasks."""
    gp: ConditionedGP


@partial(jax.jit, static_argnames="config")
def fit_sources(config: GPConfig, tasks: SourceTasks) -> SourceProcesses:
    """Fits a Gaussian process to each task and conditions it on the task."""

    def fit_source(task: SourceTasks) -> tuple[GPParams, ConditionedGP]:
        params = fit_gp(config, *task)
        matrix = add_noise(signal_covariance(params, task.x, task.x), jnp.exp(params.log_noise), task.where)
        return params, condition_gp(matrix, task.y, task.where)

    params, gps = jax.lax.map(fit_source, tasks)
    return SourceProcesses(params, tasks.x, gps)


def predict_sources(
    sources: SourceProcesses, x: Float[Array, "m D"]
) -> tuple[Float[Array, "S m"], Float[Array, "S m"]]:
    """Returns the mean and variance of every source's signal at any number of points."""
    gps = jax.vmap(prepare_gp)(sources.gp)

    def predict_rows(rows: Array) -> tuple[Array, Array]:
        mean, variance = jax.vmap(predict_signal_at, in_axes=(0, 0, 0, None))(sources.params, sources.x, gps, rows)
        return mean.T, variance.T

    mean, variance = by_blocks(predict_rows, x)
    return mean.T, variance.T


def predict_means(sources: SourceProcesses, x: Float[Array, "m D"]) -> Float[Array, "S m"]:
    """Returns the mean of every source's signal, which costs much less than the variance."""

    def predict_rows(rows: Array) -> Array:
        def predict_mean(source: SourceProcesses) -> Array:
            cross = signal_covariance(source.params, source.x, rows)
            return matmul(source.gp.weights, jnp.where(source.gp.where[:, None], cross, 0.0))

        return jax.vmap(predict_mean)(sources).T

    return by_blocks(predict_rows, x).T


def joint_posterior(source: SourceProcesses, x: Float[Array, "m D"]) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
    """Returns the joint mean and covariance of one source's signal."""
    cross = jnp.where(source.gp.where[:, None], signal_covariance(source.params, source.x, x), 0.0)
    half = triangular_solve(source.gp.lower, cross)
    return matmul(source.gp.weights, cross), signal_covariance(source.params, x, x) - matmul(half.T, half)
