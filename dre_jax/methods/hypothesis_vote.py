"""Weights of hypotheses that are chosen for a search space, by runs on its validation tasks.

A method with learned priors and hypotheses (`dre_jax.methods.hedged_prior`) is run on the validation tasks, from which
nothing was learned, with the weights that it has. The evidence of the histories that this makes says which weights
would have been better (`dre_jax.surrogates.hypothesis_weights`). They are taken where tasks that are left out gain by
them beyond chance; with few tasks, or none, the weights stay as they were. Validation tasks are like the past ones by
design, and cannot tell how often the past misleads: hypotheses that deny what past tasks have in common keep theirs.
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
from dre_jax.search.batch import pad_task
from dre_jax.search.loop import SearchTask, look_up, run
from dre_jax.search.method import Method
from dre_jax.surrogates.copula import blended_scale
from dre_jax.surrogates.hypotheses import log_evidence
from dre_jax.surrogates.hypothesis_weights import Voted, WeighedPriors, told, vote
from dre_jax.surrogates.learned_prior import LearnedPriorConfig


@dataclass(frozen=True, kw_only=True)
class VoteConfig:
    """How validation tasks are asked.

    Raises:
      ConfigError: where a number is out of range.
    """

    least: int = 5
    """Validation tasks, at least: with fewer nothing is asked."""
    strength: float = 10.0
    """C: tasks that the weights from before count for."""
    designs: int = 4
    """Runs on each task, from random rows."""
    lengths: tuple[int, ...] = (5, 10, 16)
    """Trials of a run's histories that are looked at; it starts from as many rows as the first has."""
    rows: int = 400
    """Rows of a task's table, at most, drawn at random."""

    def __post_init__(self) -> None:
        at_least(2, self, "least")
        at_least(1, self, "designs")
        positive(self, "strength")
        if not self.lengths or list(self.lengths) != sorted({*self.lengths}) or self.lengths[0] < 1:
            raise ConfigError(f"lengths must be positive and rise, but got {self.lengths}")
        at_least(self.lengths[-1], self, "rows")


def ask(
    method: Method,
    params: WeighedPriors,
    config: VoteConfig,
    sizes: LearnedPriorConfig,
    tasks: Mapping[str, Task],
    key: Array,
) -> WeighedPriors:
    """The priors, and hypotheses with the weights that they should have in a search space.

    Args:
      method: that runs; static.
      params: its parameters.
      config: how.
      sizes: of the priors.
      tasks: A validation tasks, of any number.
      key: PRNG key.
    """
    by = params.by
    bears_out = np.asarray(by.slope) > 0.0
    if len(tasks) < config.least or bears_out.sum() < 2:
        return params._replace(voted=told(len(tasks)))
    tables, designs = _sample(config, tasks)
    keys = jax.random.split(key, designs.shape[:2])
    found = _evidence(method, config, sizes, params, tables, designs, keys)
    weights = np.exp(np.asarray(by.log_weight, np.float64))
    total = weights[bears_out].sum()
    voted = vote(weights[bears_out] / total, np.asarray(found, np.float64)[..., bears_out], config.strength)
    gain, error = voted.gain.mean(), voted.gain.std(ddof=1) / np.sqrt(len(tasks))
    if gain <= 2.0 * error:
        return params._replace(voted=told(len(tasks), gain, error))
    weights[bears_out] = total * voted.weights
    chosen = by._replace(log_weight=jnp.log(jnp.asarray(weights, jnp.float32)))
    return params._replace(by=chosen, voted=told(len(tasks), gain, error, taken=True))


def in_words(config: VoteConfig, voted: Voted) -> str:
    """The decision and its reason in a line."""
    n = int(voted.tasks)
    if n < config.least:
        return f"fixed, as {n} validation tasks are too few to choose them ({config.least} are needed)"
    how = "chosen by" if voted.taken else "fixed, as nothing was gained by those of"
    return f"{how} {n} validation tasks: {float(voted.gain):+.3f} +- {float(voted.error):.3f} nats on one left out"


def _sample(config: VoteConfig, tasks: Mapping[str, Task]) -> tuple[SearchTask, npt.NDArray[np.int32]]:
    """Tables of equal size, A in front, and rows to start from, i32[A, S, n0]. Both go by the tasks' names."""
    tables, designs = [], []
    for name, task in tasks.items():
        random = np.random.default_rng(zlib.crc32(name.encode()))
        rows = random.permutation(task.n_rows)[: config.rows]
        tables.append(pad_task(sort_task(replace(task, X=task.X[rows], y=task.y[rows])), config.rows))
        n = min(config.lengths[0], len(rows))
        found = [random.choice(len(rows), n, replace=False) for _ in range(config.designs)]
        designs.append(np.resize(np.array(found, np.int32), (config.designs, config.lengths[0])))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *tables), np.array(designs)


@partial(jax.jit, static_argnames=("method", "config", "sizes"))
def _evidence(
    method: Method,
    config: VoteConfig,
    sizes: LearnedPriorConfig,
    params: WeighedPriors,
    tables: SearchTask,
    designs: Array,
    keys: Array,
) -> Array:
    """Log evidence of the histories of all runs, f[A, S * lengths, H]."""
    first, last = config.lengths[0], config.lengths[-1]

    def of_run(table: SearchTask, design: Array, key: Array) -> Array:
        picks = run(method, params, table, design, key, last - first, stop_at_optimum=False, side_by_side=True)
        rows = jnp.concatenate([design, picks])

        def of_length(n: Array) -> Array:
            history, _ = look_up(table, rows, jnp.minimum(n, jnp.sum(rows >= 0)))
            y = blended_scale(history.response, history.level, history.where)
            return log_evidence(sizes, params.by, params.priors, history.x, y, history.where)

        return jax.vmap(of_length)(jnp.array(config.lengths))

    def of_task(given: tuple[SearchTask, Array, Array]) -> Array:
        return jax.vmap(partial(of_run, given[0]))(*given[1:])

    found = lax.map(of_task, (tables, designs, keys))
    return found.reshape(found.shape[0], -1, found.shape[-1])
