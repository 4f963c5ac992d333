"""Learning the prior of a Gaussian process from past tasks: the evidence of short histories drawn from them.

Every step draws tasks, and of each some rows at random. They are standardised by themselves, as a history is, and the
prior is moved to where their evidence is higher (`student.log_evidence`). The rows of a short history are the best of
those drawn, as the trials of a search are better than any: so the prior is at home where it will be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dre_jax.checks import at_least, one_of, positive
from dre_jax.data import Task
from dre_jax.data.tasks import TaskTable, build_table
from dre_jax.surrogates.copula import blend
from dre_jax.surrogates.descent import begin, descend
from dre_jax.surrogates.learned_prior import (
    LearnedPrior,
    LearnedPriorConfig,
    init,
    observed,
    view_trials,
    within_bounds,
)
from dre_jax.surrogates.meta_kernel import without_support
from dre_jax.surrogates.standard import standardise
from dre_jax.surrogates.student import log_evidence


@dataclass(frozen=True, kw_only=True)
class PriorTraining:
    """Training of priors.

    Raises:
      ConfigError: where a number is out of range.
    """

    steps: int = 8000
    """Adam steps."""
    tasks: int = 8
    """Histories of a step, each of a task."""
    rows: int = 32
    """Trials of a history, at most."""
    least: int = 4
    """Trials of a history, at least, where the task has so many."""
    histories: Literal["best", "any"] = "best"
    """Which of the rows drawn a history has, where it is shorter."""
    learning_rate: float = 2e-3
    """Adam's, at the start; it falls to zero along a cosine."""
    decay: float = 1e-3
    """Factor of the sum of the networks' squared weights in the loss. Without it, held-out tasks' evidence falls."""

    def __post_init__(self) -> None:
        positive(self, "steps", "tasks", "learning_rate")
        at_least(2, self, "least")
        at_least(self.least, self, "rows")
        at_least(0, self, "decay")
        one_of("histories", self.histories, ("best", "any"))


def past_table(tasks: Mapping[str, Task]) -> TaskTable:
    """Past tasks with responses on the scale that `copula.blended_scale` gives a history."""
    return build_table({name: replace(task, y=blend(task.y)) for name, task in tasks.items()})


def history_loss(config: LearnedPriorConfig, prior: LearnedPrior, x: Array, y: Array, where: Array) -> Array:
    """Negative log-evidence of a history, a trial; x f[n, D], y f[n] on any scale. 0 where all responses are equal."""
    y = standardise(y, where).y
    tried, _ = view_trials(config, prior, x, where)
    value = log_evidence(*observed(prior, tried, y, where), where, jnp.asarray(config.freedom, y.dtype))
    varied = jnp.any(y != 0.0)
    return jnp.where(varied, -value / jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0), 0.0)


def draw_histories(training: PriorTraining, table: TaskTable, key: Array) -> tuple[Array, Array]:
    """Row numbers i32[B, n] of B histories, and bool[B, n] which count."""
    row_key, count_key = jax.random.split(key)
    bits = jax.random.bits(row_key, (training.tasks, 1 + training.rows), jnp.uint32)
    count = jax.random.randint(count_key, (training.tasks,), training.least, training.rows + 1)
    most = count if training.histories == "any" else jnp.full_like(count, training.rows)
    drawn = without_support(table, bits, most)  # best first
    return drawn.query, drawn.query_where & (jnp.arange(training.rows)[None, :] < count[:, None])


def batch_loss(
    config: LearnedPriorConfig, training: PriorTraining, table: TaskTable, prior: LearnedPrior, key: Array
) -> Array:
    """Mean loss of drawn histories, and what the weights cost; a scalar."""
    rows, where = draw_histories(training, table, key)
    y = jnp.where(where, table.response[rows], 0.0)
    each = jax.vmap(partial(history_loss, config, prior))(table.x[rows], y, where)
    squares = sum(jnp.sum(a**2) for a in jax.tree.leaves((prior.trend, prior.features)))
    return jnp.mean(each) + training.decay * squares


@partial(jax.jit, static_argnames=("config", "training"))
def train_priors(
    config: LearnedPriorConfig, training: PriorTraining, table: TaskTable, key: Array
) -> tuple[LearnedPrior, Array]:
    """Priors of J members, J in front of each array, and their mean loss at every step, f[steps]."""
    trend_key, feature_key, step_key = jax.random.split(key, 3)
    starts = (jax.random.split(trend_key, config.members), jax.random.split(feature_key, config.members))
    priors = jax.vmap(partial(init, config, table.n_columns))(*starts)

    def loss(priors: LearnedPrior, number: Array) -> Array:
        keys = jax.random.split(jax.random.fold_in(step_key, number), config.members)
        # A sum: members' gradients are their own, whatever their number.
        return jnp.sum(jax.vmap(partial(batch_loss, config, training, table))(priors, keys))

    rates = optax.cosine_decay_schedule(training.learning_rate, training.steps)
    numbers = jnp.arange(training.steps)
    descent, losses = descend(loss, begin(priors), rates, numbers, numbers, project=within_bounds)
    return descent.params, losses / config.members
