"""The steps inside a trial: the members' scores and ranks, the mean rank and its deviation, EI, and the choice.

The same calls with the same keys as `DRE.acquire` and the library's loop over trials make, kept instead of thrown away.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax import DRE, Task
from dre_jax.data.tasks import tie_levels, unit_scale
from dre_jax.methods.dre.ensemble import Support, init, scores
from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.search import SearchTask, log_expected_improvement, pick, sort_history
from dre_jax.search.loop import history_and_candidates, trial_keys
from dre_jax.search.ranks import mean_and_deviation, mean_tie_ranks

CAPACITY = 16  # slots of the history: the library's first size


class Inside(NamedTuple):
    """One trial; N rows of the task, M members."""

    rows: Any
    """i64[n]: evaluated so far, in the order of evaluation."""
    ranked: Any
    """bool[N]: the candidates and the incumbent, which are ranked together."""
    scores: Any
    """f32[M, N]"""
    ranks: Any
    """f32[M, N], 1 is the best; NaN where a row is not ranked, as below."""
    mean: Any
    """f32[N]: mean rank."""
    deviation: Any
    """f32[N]: standard deviation of the ranks over members."""
    log_ei: Any
    """f32[N]: logarithm of the expected improvement; NaN where a row is no candidate."""
    chosen: Any
    """Row to evaluate next."""


def search_task(task: Task) -> SearchTask:
    """A task as the loop takes it, its rows as they are."""
    return SearchTask(
        x=jnp.asarray(task.X),
        response=jnp.asarray(unit_scale(task.y), jnp.float32),
        level=jnp.asarray(tie_levels(task.y)),
        where=jnp.ones(task.n_rows, bool),
    )


@partial(jax.jit, static_argnames="method")
def _look(method: DRE, params: Any, task: SearchTask, rows: Array, n_filled: Array, key: Array, trial: Array) -> Inside:
    history, candidates = history_and_candidates(task, rows, n_filled)
    method_key, choice_key = trial_keys(key, trial)
    tune_key, start_key = jax.random.split(method_key)
    if params is None:
        params = init(method.model, task.x.shape[1], start_key)
    best_first = sort_history(history)
    tuned = fine_tune(method.model, method.fine_tuning, params, *best_first, tune_key)
    values = scores(method.model, tuned, Support(best_first.x, best_first.response, best_first.where), task.x)
    incumbent = rows[jnp.argmin(jnp.where(history.where, history.level, jnp.iinfo(jnp.int32).max))]
    ranked = candidates.where.at[incumbent].set(True)
    ranks = mean_tie_ranks(values, jnp.broadcast_to(ranked, values.shape))
    mean, deviation = mean_and_deviation(ranks)
    log_ei = log_expected_improvement(mean, deviation, mean[incumbent])
    chosen = pick(log_ei, candidates.where, choice_key)
    ranks = jnp.where(ranked[None, :], ranks, jnp.nan)
    mean, deviation = (jnp.where(ranked, a, jnp.nan) for a in (mean, deviation))
    return Inside(rows, ranked, values, ranks, mean, deviation, jnp.where(candidates.where, log_ei, jnp.nan), chosen)


def walk(method: DRE, params: Any, task: Task, design: np.ndarray, n_trials: int, key: Array) -> list[Inside]:
    """Trial after trial from a design on, until the task's best response is found.

    Args:
      method: with expected improvement.
      params: meta-trained, or None for random weights.
      task: what is optimised.
      design: i64[n], its first rows.
      n_trials: at most, 16 with the design.
      key: the run's PRNG key.
    """
    rows = np.asarray(design)
    steps: list[Inside] = []
    while len(steps) < n_trials and not (task.y[rows] == task.y.max()).any():
        slots = jnp.asarray(np.pad(rows, (0, CAPACITY - len(rows))), jnp.int32)
        found = _look(method, params, search_task(task), slots, jnp.int32(len(rows)), key, jnp.int32(len(steps)))
        step = jax.tree.map(np.asarray, found)._replace(rows=rows, chosen=int(found.chosen))
        steps.append(step)
        rows = np.append(rows, step.chosen)
    return steps
