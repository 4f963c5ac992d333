"""Runs of a method on one task, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.data import Task
from dre_jax.data.tasks import sort_task
from dre_jax.search.batch import pad_task, run_key
from dre_jax.search.loop import SearchTask, run
from dre_jax.search.method import Method


class Runs(NamedTuple):
    """Runs from S designs, on a table that is sorted, best row first."""

    table: SearchTask
    y: np.ndarray
    """f64[N], the responses."""
    rows: np.ndarray
    """i32[S, n0 + T], those evaluated, in their order."""


def runs_of(
    method: Method, params: Any, task: Task, designs: Mapping[str, np.ndarray], n_evaluations: int, key: Array
) -> Runs:
    """Runs to so many evaluations in all, those of the design among them; they go on where the optimum is found."""
    ordered = sort_task(task)
    table, new = pad_task(ordered, task.n_rows), np.argsort(ordered.order)
    rows = jnp.asarray(np.array([new[np.asarray(design)] for design in designs.values()], np.int32))
    keys = jnp.stack([run_key(key, task.name, seed) for seed in designs])
    picks = _picks(method, params, table, rows, keys, n_evaluations - rows.shape[1])
    y = np.asarray(task.y, np.float64).ravel()[ordered.order]
    return Runs(table, y, np.concatenate([rows, picks], axis=1))


@partial(jax.jit, static_argnames=("method", "n_trials"))
def _picks(method: Method, params: Any, table: SearchTask, designs: Array, keys: Array, n_trials: int) -> Array:
    def one(given: tuple[Array, Array]) -> Array:
        return run(method, params, table, *given, n_trials, stop_at_optimum=False)

    return jax.lax.map(one, (designs, keys))
