"""Many runs: tasks of different sizes from several designs, put through the devices a few compiled calls at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.data.spaces import Designs, Task
from dre_jax.data.tasks import SortedTask, sort_task, unit_scale
from dre_jax.devices import everywhere
from dre_jax.errors import DataError
from dre_jax.search.grid import GridConfig, mesh_for, run_grid
from dre_jax.search.loop import SearchTask
from dre_jax.search.method import Method

Trace = tuple[str, str, np.ndarray]
"""Dataset, seed name, and the T + 1 best responses so far, scaled with the task's table (entry 0: the design's)."""


@dataclass(frozen=True)
class BatchConfig:
    """How runs are put through the devices."""

    devices: int | None = None
    """Devices of the mesh; by default all that are in use, those of other processes among them."""
    side_by_side: bool | None = None
    """Whether a device works on all its runs side by side, or on one after the other; by default one after the other
    on a CPU, whose caches hold one run, and side by side elsewhere."""
    tasks_at_once: int | None = None
    """Tasks in one call; by default one a device on a CPU (progress is reported between calls), and all elsewhere."""


def run_id(name: str) -> int:
    """A number that stands for a name in keys: the same on every machine, in every order of the tasks."""
    return zlib.crc32(name.encode())


def run_key(key: Array, dataset: str, seed: str) -> Array:
    """The key of one run."""
    return jax.random.fold_in(jax.random.fold_in(key, run_id(dataset)), run_id(seed))


def bucket(n: int) -> int:
    """Rows that a table of n is padded to: at most a quarter more, so that few sizes are compiled.

    Example:
      >>> [bucket(n) for n in (5, 288, 400, 1000)]
      [5, 320, 448, 1024]
    """
    step = max(1, 2 ** (n.bit_length() - 3))
    return -(-n // step) * step


def run_tasks(
    method: Method,
    params: Any,
    tasks: Mapping[str, Task],
    designs: Designs,
    *,
    n_trials: int,
    key: Array,
    config: BatchConfig | None = None,
    stop_at_optimum: bool = True,
) -> Iterator[Trace]:
    """Optimises every task from each of its designs; yields the traces as they are finished.

    The picks of a run depend on the key, the names of its dataset and its seed, and on nothing else: not on the other
    tasks, the padding, or the number of devices.

    Args:
      method: frozen and hashable.
      params: what the method's `fit` returned.
      tasks: by dataset name.
      designs: dataset -> seed name -> rows evaluated at the start; every dataset of ``tasks`` must be there.
      n_trials: T.
      key: PRNG key.
      config: how the runs are put through the devices.
      stop_at_optimum: see `dre_jax.search.loop.run`.

    Raises:
      DataError: for a task without a design.
    """
    config = config or BatchConfig()
    devices = everywhere()[: config.devices]
    on_cpu = devices[0].platform == "cpu"
    side_by_side = not on_cpu if config.side_by_side is None else config.side_by_side
    for group in _groups(tasks, designs):
        size = min(config.tasks_at_once or (len(devices) if on_cpu else len(group.names)), len(group.names))
        mesh = mesh_for(devices, size, len(group.seeds))
        grid_config = GridConfig(n_trials, mesh, side_by_side, stop_at_optimum)
        for start in range(0, len(group.names), size):
            names = group.names[start : start + size]
            yield from _run_portion(
                method, params, {n: tasks[n] for n in names}, designs, group, key, grid_config, size
            )


@dataclass(frozen=True)
class _Group:
    """Tasks that share one compiled program."""

    names: list[str]
    rows: int
    seeds: tuple[str, ...]


def _groups(tasks: Mapping[str, Task], designs: Designs) -> list[_Group]:
    """Tasks by padded row count, seed names and length of the design."""
    found: dict[tuple[int, tuple[str, ...], int], list[str]] = {}
    for name, task in tasks.items():
        if not designs.get(name):
            raise DataError(f"every task needs an initial design, but dataset {name!r} has none")
        for length, seeds in _by_length(designs[name]).items():
            found.setdefault((bucket(task.n_rows), seeds, length), []).append(name)
    return [
        _Group(names, min(rows, max(tasks[name].n_rows for name in names)), seeds)
        for (rows, seeds, _), names in found.items()
    ]


def _by_length(designs: Mapping[str, np.ndarray]) -> dict[int, tuple[str, ...]]:
    lengths: dict[int, tuple[str, ...]] = {}
    for seed, rows in designs.items():
        lengths[len(rows)] = (*lengths.get(len(rows), ()), seed)
    return lengths


def _run_portion(
    method: Method,
    params: Any,
    tasks: Mapping[str, Task],
    designs: Designs,
    group: _Group,
    key: Array,
    config: GridConfig,
    capacity: int,
) -> Iterator[Trace]:
    """One compiled call for some tasks of a group."""
    sorted_tasks = [sort_task(task) for task in tasks.values()]
    tables = jax.tree.map(lambda *leaves: np.stack(leaves), *[_pad(task, group.rows) for task in sorted_tasks])
    new_rows = {name: np.argsort(task.order) for name, task in zip(tasks, sorted_tasks, strict=True)}
    design = np.array([[new_rows[name][designs[name][seed]] for seed in group.seeds] for name in tasks], np.int32)
    keys = jnp.stack([jnp.stack([run_key(key, name, seed) for seed in group.seeds]) for name in tasks])
    picks = run_grid(method, params, tables, design, keys, config, capacity)
    for i, (name, task) in enumerate(tasks.items()):
        response = unit_scale(task.y)[sorted_tasks[i].order]
        for j, seed in enumerate(group.seeds):
            yield name, seed, incumbents(response, design[i, j], picks[i, j])


def _pad(task: SortedTask, rows: int) -> SearchTask:
    """A task's table padded to so many rows."""
    empty = rows - len(task.level)
    return SearchTask(
        x=jnp.asarray(np.pad(task.x, ((0, empty), (0, 0)))),
        response=jnp.asarray(np.pad(task.response, (0, empty))),
        level=jnp.asarray(np.pad(task.level, (0, empty), constant_values=np.iinfo(np.int32).max)),
        where=jnp.asarray(np.arange(rows) < len(task.level)),
    )


def incumbents(response: np.ndarray, design: np.ndarray, picks: np.ndarray) -> np.ndarray:
    """Best response after the design and after each trial.

    Args:
      response: f64[n].
      design: rows of the design.
      picks: T rows in the order of evaluation; -1 where nothing was evaluated.

    Returns:
      f64[T + 1].

    Example:
      >>> incumbents(np.array([1.0, 0.7, 0.2]), np.array([2]), np.array([1, 0, -1])).tolist()
      [0.2, 0.7, 1.0, 1.0]
    """
    first = response[design].max()
    later = np.where(picks >= 0, response[picks], -np.inf)
    return np.maximum.accumulate(np.concatenate([[first], later]))
