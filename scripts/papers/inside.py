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
from dre_jax.model import Support, init, mean_and_deviation, mean_tie_ranks, scores
from dre_jax.search import SearchTask, log_expected_improvement, pick, sort_history
from dre_jax.search.loop import look_up, trial_keys
from dre_jax.training import fine_tune

CAPACITY = 16  # slots of the history: the library's first size


class Inside(NamedTuple):
    """One trial; N rows of the task, M members."""

    rows: np.ndarray
    """i64[n]: evaluated so far, in the order of evaluation."""
    ranked: np.ndarray
    """bool[N]: the candidates and the incumbent, which are ranked together."""
    scores: np.ndarray
    """f32[M, N]"""
    ranks: np.ndarray
    """f32[M, N], 1 is the best; NaN where a row is not ranked."""
    mean: np.ndarray
    """f32[N]: mean rank; NaN likewise."""
    deviation: np.ndarray
    """f32[N]: standard deviation over members; NaN likewise."""
    log_ei: np.ndarray
    """f32[N]: logarithm of the expected improvement; NaN where a row is no candidate."""
    chosen: int
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
def _look(method: DRE, params: Any, task: SearchTask, rows: Array, n_filled: Array, key: Array, trial: Array) -> Any:
    history, candidates = look_up(task, rows, n_filled)
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
    return ranked, values, ranks, mean, deviation, log_ei, candidates.where, pick(log_ei, candidates.where, choice_key)


def look_inside(method: DRE, params: Any, task: Task, rows: np.ndarray, n_initial: int, key: Array) -> Inside:
    """The trial after some evaluations.

    Args:
      method: with expected improvement.
      params: meta-trained, or None for random weights.
      task: what is optimised.
      rows: i64[n], evaluated so far; the first ``n_initial`` are the design. At most 16.
      n_initial: rows of the design.
      key: the run's PRNG key.
    """
    slots = np.pad(rows, (0, CAPACITY - len(rows))).astype(np.int32)
    trial = jnp.int32(len(rows) - n_initial)
    found = _look(method, params, search_task(task), jnp.asarray(slots), jnp.int32(len(rows)), key, trial)
    ranked, values, ranks, mean, deviation, log_ei, is_candidate, chosen = (np.asarray(a) for a in found)
    return Inside(
        rows=np.asarray(rows),
        ranked=ranked,
        scores=values,
        ranks=np.where(ranked, ranks, np.nan),
        mean=np.where(ranked, mean, np.nan),
        deviation=np.where(ranked, deviation, np.nan),
        log_ei=np.where(is_candidate, log_ei, np.nan),
        chosen=int(chosen),
    )


def walk(method: DRE, params: Any, task: Task, design: np.ndarray, n_trials: int, key: Array) -> list[Inside]:
    """Trial after trial from a design on, until the task's best response is found."""
    rows = np.asarray(design)
    steps: list[Inside] = []
    while len(steps) < n_trials and not (task.y[rows] == task.y.max()).any():
        steps.append(look_inside(method, params, task, rows, len(design), key))
        rows = np.append(rows, steps[-1].chosen)
    return steps
