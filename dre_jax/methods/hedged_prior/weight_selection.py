"""Weights of hypotheses that are chosen for a search space, by runs on its validation tasks.

A method with learned priors and hypotheses (`method`) is run on the validation tasks, from which
nothing was learned, with the weights that it has. The evidence of the histories that this makes says which weights
would have been likelier (`weights`). They are taken if runs with them have less regret,
beyond chance; if not, and with few tasks or none, the weights stay as they were. Validation tasks are like the past
ones by design, and cannot tell how often the past misleads: hypotheses that deny what past tasks have in common keep
theirs.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

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
from dre_jax.methods.hedged_prior.hypotheses import log_evidence
from dre_jax.methods.hedged_prior.prior import LearnedPriorConfig
from dre_jax.methods.hedged_prior.weights import Voted, WeighedPriors, most_likely, told
from dre_jax.search.batch import pad_task
from dre_jax.search.loop import SearchTask, history_and_candidates, run
from dre_jax.search.method import Method

_ERRORS = 2.0  # standard errors that the regret has to fall by


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
    """Trials of a run's histories that are looked at, the last at its end, the first at its start."""
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
    if len(tasks) < config.least:
        return params._replace(voted=told(len(tasks)))
    by = params.by
    bears_out = np.asarray(by.slope) > 0.0
    if bears_out.sum() < 2:
        return params._replace(voted=told(len(tasks)))
    tables, designs = _sample(config, tasks)
    given = tables, designs, jax.random.split(key, designs.shape[:2])
    before = _runs(method, config, sizes, params, *given)
    weights = np.exp(np.asarray(by.log_weight, np.float64))
    total = weights[bears_out].sum()
    evidence = np.asarray(before.evidence, np.float64)[..., bears_out]
    weights[bears_out] = total * most_likely(weights[bears_out] / total, evidence, config.strength)
    chosen = params._replace(by=by._replace(log_weight=jnp.log(jnp.asarray(weights, jnp.float32))))
    less = np.asarray(before.regret - _runs(method, config, sizes, chosen, *given).regret, np.float64)
    gain, error = less.mean(), less.std(ddof=1) / np.sqrt(len(less))
    taken = bool(gain > _ERRORS * error)
    return (chosen if taken else params)._replace(voted=told(len(tasks), gain, error, taken=taken))


def in_words(config: VoteConfig, voted: Voted) -> str:
    """The decision and its reason in a line."""
    n = int(voted.tasks)
    if n < config.least:
        return f"fixed, as {n} validation tasks are too few to choose them ({config.least} are needed)"
    how = "chosen by" if voted.taken else "fixed, as nothing is gained beyond chance by those of"
    return f"{how} {n} validation tasks: {-float(voted.gain):+.4f} +- {float(voted.error):.4f} of mean regret"


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


class _Runs(NamedTuple):
    """Runs on A tasks from S designs."""

    evidence: Array
    """f[A, S * lengths, H], in logarithms, of the histories."""
    regret: Array
    """f[A], the mean over designs and trials."""


@partial(jax.jit, static_argnames=("method", "config", "sizes"))
def _runs(
    method: Method,
    config: VoteConfig,
    sizes: LearnedPriorConfig,
    params: WeighedPriors,
    tables: SearchTask,
    designs: Array,
    keys: Array,
) -> _Runs:
    first, last = config.lengths[0], config.lengths[-1]

    def of_run(table: SearchTask, design: Array, key: Array) -> tuple[Array, Array]:
        picks = run(method, params, table, design, key, last - first, stop_at_optimum=False, side_by_side=True)
        rows = jnp.concatenate([design, picks])

        def of_length(n: Array) -> Array:
            history, _ = history_and_candidates(table, rows, jnp.minimum(n, jnp.sum(rows >= 0)))
            y = standardise(history.response, history.where).y
            return log_evidence(sizes, params.by, params.priors, history.x, y, history.where)

        best = lax.cummax(jnp.where(rows >= 0, table.response[rows], 0.0))
        return jax.vmap(of_length)(jnp.array(config.lengths)), 1.0 - jnp.mean(best[first:])

    def of_task(given: tuple[SearchTask, Array, Array]) -> tuple[Array, Array]:
        return jax.vmap(partial(of_run, given[0]))(*given[1:])

    evidence, regret = lax.map(of_task, (tables, designs, keys))
    return _Runs(evidence.reshape(evidence.shape[0], -1, evidence.shape[-1]), jnp.mean(regret, axis=1))
