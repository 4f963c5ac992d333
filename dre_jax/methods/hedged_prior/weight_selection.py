"""Selection of the weights of hypotheses for a search space on its validation tasks.

The method runs on the validation tasks, which are not training tasks, with its initial weights. The marginal
likelihoods of the histories of these runs give weights of higher posterior density (`weights`). They replace the
initial weights if runs with them have significantly less regret. Otherwise, and with too few tasks, the initial weights
stay. Validation tasks resemble the past ones by design, so that they cannot tell how often past tasks mislead:
hypotheses without the trend or with a reversed one keep their weights.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array, lax

from dre_jax.checks import at_least, positive
from dre_jax.data import Task
from dre_jax.data.tasks import sort_task
from dre_jax.errors import ConfigError
from dre_jax.gp.response_scale import standardise
from dre_jax.methods.hedged_prior.hypotheses import hypothesis_log_likelihoods
from dre_jax.methods.hedged_prior.prior import LearnedPriorConfig
from dre_jax.methods.hedged_prior.weights import (
    HedgedPriorParams,
    WeightSelection,
    fit_mixture_weights,
    weight_selection,
)
from dre_jax.runtime.jit import jit_with_less_effort
from dre_jax.search.batch import pad_task
from dre_jax.search.loop import SearchTask, history_and_candidates, run
from dre_jax.search.method import Method

_MIN_STANDARD_ERRORS = 2.0  # by which the mean regret must fall


@dataclass(frozen=True, kw_only=True)
class WeightSelectionConfig:
    """Settings of the selection of weights on validation tasks.

    Raises:
      ConfigError: if a number is out of range.
    """

    min_tasks: int = 5
    """Minimum number of validation tasks; with fewer the initial weights stay."""
    strength: float = 10.0
    """C: number of tasks that the initial weights count as."""
    designs: int = 4
    """Number of runs on each task, each from random rows."""
    history_lengths: tuple[int, ...] = (5, 10, 16)
    """Numbers of trials of the histories of a run: the first is its initial design, the last its end."""
    rows: int = 400
    """Maximum number of rows of a task's table, drawn at random."""

    def __post_init__(self) -> None:
        at_least(2, self, "min_tasks")
        at_least(1, self, "designs")
        positive(self, "strength")
        lengths = list(self.history_lengths)
        if not lengths or lengths != sorted({*lengths}) or lengths[0] < 1:
            raise ConfigError(f"history_lengths must be positive and increase, but got {self.history_lengths}")
        at_least(self.history_lengths[-1], self, "rows")


def fit_weights(
    method: Method,
    params: HedgedPriorParams,
    config: WeightSelectionConfig,
    sizes: LearnedPriorConfig,
    tasks: Mapping[str, Task],
    key: Array,
) -> HedgedPriorParams:
    """Returns the parameters with the selected weights of hypotheses.

    Args:
      method: `HedgedPrior`; static.
      params: its parameters with the initial weights.
      config: settings of the selection.
      sizes: sizes of the priors.
      tasks: A validation tasks; A may be 0.
      key: PRNG key.
    """
    hypotheses = params.hypotheses
    is_selectable = np.asarray(hypotheses.slope_mean) > 0.0
    if len(tasks) < config.min_tasks or is_selectable.sum() < 2:
        return params._replace(weight_selection=weight_selection(len(tasks)))
    tables, designs = _sample(config, tasks)
    inputs = tables, jnp.asarray(designs), jax.random.split(key, designs.shape[:2])
    log_likelihoods, initial_regret = _runs(method, config, sizes, params, *inputs)
    weights = np.exp(np.asarray(hypotheses.log_weight, np.float64))
    total = weights[is_selectable].sum()
    log_likelihood = np.asarray(log_likelihoods, np.float64)[..., is_selectable]
    weights[is_selectable] = total * fit_mixture_weights(
        weights[is_selectable] / total, log_likelihood, config.strength
    )
    log_weight = jnp.log(jnp.asarray(weights, jnp.float32))
    fitted = params._replace(hypotheses=hypotheses._replace(log_weight=log_weight))
    reductions = np.asarray(initial_regret - _runs(method, config, sizes, fitted, *inputs)[1], np.float64)
    mean, error = reductions.mean(), reductions.std(ddof=1) / np.sqrt(len(reductions))
    accepted = bool(mean > _MIN_STANDARD_ERRORS * error)
    result = weight_selection(len(tasks), mean, error, accepted=accepted)
    return (fitted if accepted else params)._replace(weight_selection=result)


def explain_weights(config: WeightSelectionConfig, selection: WeightSelection) -> str:
    """Returns the decision and its reason in one line."""
    n = int(selection.tasks)
    if n < config.min_tasks:
        return f"fixed, as {n} validation tasks are too few to choose them ({config.min_tasks} are needed)"
    how = "chosen by" if selection.accepted else "fixed, as nothing is gained beyond chance by those of"
    change, error = -float(selection.regret_reduction), float(selection.standard_error)
    return f"{how} {n} validation tasks: {change:+.4f} +- {error:.4f} of mean regret"


def _sample(config: WeightSelectionConfig, tasks: Mapping[str, Task]) -> tuple[SearchTask, npt.NDArray[np.int32]]:
    """Returns tables of equal size, A in front, and initial rows, i32[A, S, n0]; seeds depend on the tasks' names."""
    tables, designs = [], []
    for name, task in tasks.items():
        random = np.random.default_rng(zlib.crc32(name.encode()))
        rows = random.permutation(task.n_rows)[: config.rows]
        tables.append(pad_task(sort_task(replace(task, X=task.X[rows], y=task.y[rows])), config.rows))
        n = min(config.history_lengths[0], len(rows))
        drawn = [random.choice(len(rows), n, replace=False) for _ in range(config.designs)]
        designs.append(np.resize(np.array(drawn, np.int32), (config.designs, config.history_lengths[0])))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *tables), np.array(designs)


@jit_with_less_effort("method", "config", "sizes")
def _runs(
    method: Method,
    config: WeightSelectionConfig,
    sizes: LearnedPriorConfig,
    params: HedgedPriorParams,
    tables: SearchTask,
    designs: Array,
    keys: Array,
) -> tuple[Array, Array]:
    """Returns `hypothesis_log_likelihoods` of histories of A tasks, f[A, S * lengths, H], and mean regrets f[A]."""
    first, last = config.history_lengths[0], config.history_lengths[-1]

    def of_run(table: SearchTask, design: Array, key: Array) -> tuple[Array, Array]:
        picks = run(method, params, table, design, key, last - first, stop_at_optimum=False, side_by_side=True)
        rows = jnp.concatenate([design, picks])

        def of_length(n: Array) -> Array:
            history, _ = history_and_candidates(table, rows, jnp.minimum(n, jnp.sum(rows >= 0)))
            y = standardise(history.response, history.where).y
            return hypothesis_log_likelihoods(sizes, params.hypotheses, params.priors, history.x, y, history.where)

        best = lax.cummax(jnp.where(rows >= 0, table.response[rows], 0.0))
        return jax.vmap(of_length)(jnp.array(config.history_lengths)), 1.0 - jnp.mean(best[first:])

    def of_task(inputs: tuple[SearchTask, Array, Array]) -> tuple[Array, Array]:
        return jax.vmap(partial(of_run, inputs[0]))(*inputs[1:])

    log_likelihood, regret = lax.map(of_task, (tables, designs, keys))
    merged = log_likelihood.reshape(log_likelihood.shape[0], -1, log_likelihood.shape[-1])
    return merged, jnp.mean(regret, axis=1)
