"""One run: T trials after an initial design, as one program of fixed shapes, and as a Python loop."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int, Key

from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.acquisition import UNDEFINED_INDEX, pick, undefined_values
from dre_jax.search.history import FIRST_BUCKET, Candidates, History, min_max_scale
from dre_jax.search.method import Method, value
from dre_jax.search.stages import with_bucketed_history_fit


class SearchTask(NamedTuple):
    """A task to optimise on: the whole table. A method sees only the rows that it has evaluated."""

    x: Float[Array, "N D"]
    """Configurations."""
    response: Float[Array, " N"]
    """Higher is better."""
    level: Int[Array, " N"]
    """0 for the best response, equal where tied."""
    where: Bool[Array, " N"]
    """Which slots hold a configuration."""
    float32_residual: Float[Array, " N"] | None = None
    """The part of the response that float32 rounds off; None for zeros."""


def segments(n_design: int, n_trials: int) -> Iterator[tuple[int, int]]:
    """Yields capacities of the growing history, and the number of trials of each."""
    most = max(n_design + n_trials - 1, 1)
    n_filled, remaining, capacity = n_design, n_trials, FIRST_BUCKET
    while remaining > 0:
        capacity = min(capacity, most)
        if n_filled <= capacity:
            count = min(capacity - n_filled + 1, remaining)
            yield capacity, count
            n_filled, remaining = n_filled + count, remaining - count
        capacity *= 2


def trial_keys(key: Key[Array, ""], trial: Int[Array, ""]) -> tuple[Key[Array, ""], Key[Array, ""]]:
    """Returns the keys of a trial: for the method, and for ties among values."""
    method_key, choice_key = jax.random.split(jax.random.fold_in(key, trial))
    return method_key, choice_key


def history_and_candidates(
    task: SearchTask, rows: Int[Array, " C"], n_filled: Int[Array, ""]
) -> tuple[History, Candidates]:
    """Returns the history of the rows evaluated so far, and the remaining rows as candidates.

    The first ``n_filled`` of the rows count, in the order of evaluation.
    """
    is_filled = jnp.arange(rows.shape[0]) < n_filled
    safe = jnp.where(is_filled, rows, 0)
    level, residual = task.level[safe], None if task.float32_residual is None else task.float32_residual[safe]
    history = History(task.x[safe], min_max_scale(task.response[safe], residual, level, is_filled), level, is_filled)
    # A slot that is empty points behind the table, where nothing is written.
    is_evaluated = (
        jnp.zeros(task.where.shape, bool).at[jnp.where(is_filled, rows, task.where.shape[0])].set(True, mode="drop")
    )
    return history, Candidates(task.x, task.where & ~is_evaluated)


def suggest(
    method: Method,
    params: Any,
    history: History,
    candidates: Candidates,
    key: Key[Array, ""],
    trial: Int[Array, ""],
) -> Int[Array, ""]:
    """Returns the candidate that a method evaluates next, as `pick` does."""
    method_key, choice_key = trial_keys(key, trial)
    return pick(value(method, params, history, candidates, method_key), candidates.where, choice_key)


def run(
    method: Method,
    params: Any,
    task: SearchTask,
    design: Int[Array, " n0"],
    key: Key[Array, ""],
    n_trials: int,
    stop_at_optimum: bool = True,
    side_by_side: bool = False,
    single_loop: bool = False,
) -> Int[Array, " {n_trials}"]:
    """Does one run.

    Args:
      method: static.
      params: the result of the method's `fit`.
      task: the table.
      design: rows evaluated at the start.
      key: the run's PRNG key.
      n_trials: T, static.
      stop_at_optimum: evaluate nothing more once the table's best response is reached, as HPO-B's handler does.
      side_by_side: whether it is vmapped over runs, which wait for each other: a finished one continues to compute,
        because vmap would give every run a copy of the table for a branch.
      single_loop: compile one loop over trials, not one for each capacity of the history. A method with `fit_history`
        is fitted to the smallest capacity that holds all trials, see `dre_jax.search.stages`; side by side of every
        second capacity, because each is a branch to compile, for seconds on a GPU.

    Returns:
      The rows in the order of evaluation; -1 where nothing was evaluated. A run ends with `UNDEFINED_INDEX` where the
      method's values are NaN.
    """
    n_design = design.shape[0]
    if n_trials == 0:
        return jnp.zeros(0, jnp.int32)
    rows = jnp.concatenate([design.astype(jnp.int32), jnp.full(n_trials, -1, jnp.int32)])
    parts = list(segments(n_design, n_trials))
    if single_loop:
        capacities = tuple(capacity for capacity, _ in parts)
        method = with_bucketed_history_fit(method, capacities[::-2][::-1] if side_by_side else capacities)
        parts = [(parts[-1][0], n_trials)]

    def trial(capacity: int, rows: Array, t: Array) -> tuple[Array, None]:
        history, candidates = history_and_candidates(task, rows[:capacity], n_design + t)
        is_finished = ~jnp.any(candidates.where) | jnp.any(rows == UNDEFINED_INDEX)
        if stop_at_optimum:
            is_finished |= jnp.any(history.where & (history.level == 0))

        def evaluate() -> Array:
            return suggest(method, params, history, candidates, key, t)

        if side_by_side:
            row = jnp.where(is_finished, jnp.int32(-1), evaluate())
        else:
            row = lax.cond(is_finished, lambda: jnp.int32(-1), evaluate)
        return rows.at[n_design + t].set(row), None

    start = 0
    for capacity, count in parts:
        # After the end of a run the rows hold -1; nothing more is looked up, so they are never read.
        rows, _ = lax.scan(partial(trial, capacity), rows, start + jnp.arange(count, dtype=jnp.int32))
        start += count
    return rows[n_design:]


jitted_suggest = jax.jit(suggest, static_argnames="method")
"""`suggest`, compiled."""
jitted_value = jax.jit(value, static_argnames="method")
"""`value`, compiled."""
_jitted_pick = jax.jit(pick)
_jitted_history_and_candidates = jax.jit(history_and_candidates)


@on_one_thread
def run_in_python(
    method: Method,
    params: Any,
    task: SearchTask,
    design: Int[np.ndarray, " n0"],
    key: Key[Array, ""],
    n_trials: int,
    stop_at_optimum: bool = True,
) -> Int[np.ndarray, " {n_trials}"]:
    """Returns the picks of `run` by a plain loop, for methods under development and as an oracle of the scan.

    Arguments as in `run`.

    Raises:
      ConfigError: if the method's values of all candidates are NaN.
    """
    level = np.asarray(task.level)
    rows = [int(row) for row in design]
    for capacity, count in segments(len(design), n_trials):
        for _ in range(count):
            slots = jnp.asarray(rows + [-1] * (capacity - len(rows)), jnp.int32)
            history, candidates = _jitted_history_and_candidates(task, slots, jnp.int32(len(rows)))
            if not candidates.where.any() or (stop_at_optimum and (level[rows] == 0).any()):
                break
            method_key, choice_key = trial_keys(key, jnp.int32(len(rows) - len(design)))
            values = jitted_value(method, params, history, candidates, method_key)
            rows.append(int(_jitted_pick(values, candidates.where, choice_key)))
            if rows[-1] == UNDEFINED_INDEX:
                raise undefined_values(method)
    picks = rows[len(design) :]
    return np.array(picks + [-1] * (n_trials - len(picks)), np.int32)
