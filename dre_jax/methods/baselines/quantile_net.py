"""A network that predicts the place of a configuration among a task's responses: mean and deviation of z.

z are the tasks' responses as quantiles of a standard Gaussian (`copula`), so that all tasks have one scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from dre_jax.checks import positive
from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.losses.regression import gaussian_nll_of
from dre_jax.methods.baselines.copula import quantiles
from dre_jax.nn import mlp
from dre_jax.optim.descent import begin, descend
from dre_jax.runtime.blocks import by_blocks

_LEAST_VARIANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class QuantileConfig:
    """Sizes and training of the network (Salinas, Shen and Perrone 2020, section 4.1 and appendix).

    Raises:
      ConfigError: where a number is out of range.
    """

    hidden: tuple[int, ...] = (50, 50, 50)
    """Hidden layers, ReLU."""
    dropout: float = 0.1
    """Share of the hidden units that is left out in a training step."""
    steps: int = 3000
    """Adam steps."""
    batch: int = 64
    """Rows of a step."""
    learning_rate: float = 0.01
    """Adam's, at the start; it falls to zero along a cosine, where the authors go down in three steps."""

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"0 <= dropout < 1 must hold, but got dropout={self.dropout}")
        positive(self, "steps", "batch", "learning_rate")

    @property
    def network(self) -> mlp.MLPConfig:
        """Two outputs: a mean, and what the variance is made of."""
        return mlp.MLPConfig(hidden=self.hidden, activation="relu", outputs=2)


class Rows(NamedTuple):
    """Evaluations of all past tasks."""

    x: Array
    """f32[R, D]"""
    z: Array
    """f32[R]: quantiles within the task."""


def past_rows(meta: SearchSpace) -> Rows:
    """Every evaluation of the training tasks, its response as a quantile of its task. Raises `DataError` for none."""
    tasks = meta.require_train_tasks().values()
    xs = [np.asarray(task.X, np.float32) for task in tasks]
    zs = [quantiles(task.y).astype(np.float32) for task in tasks]
    return Rows(*jax.device_put((np.concatenate(xs), np.concatenate(zs))))


def moments(config: QuantileConfig, params: mlp.MLPParams, x: Array) -> tuple[Array, Array]:
    """Mean and variance of z at any number of rows; f32[m, D] -> two f32[m]."""
    return by_blocks(lambda rows: _split(mlp.apply(config.network, params, mlp.standard_columns(rows))), x)


def _split(outputs: Array) -> tuple[Array, Array]:
    return outputs[:, 0], jax.nn.softplus(outputs[:, 1]) + _LEAST_VARIANCE


@partial(jax.jit, static_argnames="config")
def train_quantile_net(config: QuantileConfig, rows: Rows, key: Array) -> tuple[mlp.MLPParams, Array]:
    """Adam on the Gaussian likelihood of z (equation 4); the parameters, and the loss of every step f32[steps]."""
    start_key, step_key = jax.random.split(key)

    def loss(params: mlp.MLPParams, number: Array) -> Array:
        row_key, dropout_key = jax.random.split(jax.random.fold_in(step_key, number))
        chosen = jax.random.randint(row_key, (config.batch,), 0, rows.z.shape[0])
        x = mlp.standard_columns(rows.x[chosen])
        outputs = mlp.apply(config.network, params, x, dropout=config.dropout, key=dropout_key)
        mean, variance = _split(outputs)
        return jnp.mean(gaussian_nll_of(mean, rows.z[chosen], variance))

    start = mlp.init(config.network, rows.x.shape[1], start_key)
    rates = optax.cosine_decay_schedule(config.learning_rate, config.steps)
    numbers = jnp.arange(config.steps)
    descent, losses = descend(loss, begin(start), rates, numbers, numbers)
    return descent.params, losses
