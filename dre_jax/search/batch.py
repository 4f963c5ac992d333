"""Many runs, tasks x designs, in one compiled call, sharded over a mesh of devices."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from dre_jax.data.spaces import Designs, Task
from dre_jax.data.tasks import sort_task, unit_scale
from dre_jax.errors import DataError
from dre_jax.search.loop import SearchTask, run
from dre_jax.search.method import Method

Trace = tuple[str, str, np.ndarray]
"""Dataset, seed name, and the T + 1 best responses so far, scaled with the task's table (entry 0: the design's)."""


@dataclass(frozen=True)
class BatchConfig:
    """How runs are put through the devices."""

    devices: int | None = None
    """Devices of the mesh; all by default."""
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
    devices = jax.devices()[: config.devices]
    on_cpu = devices[0].platform == "cpu"
    vectorise = not on_cpu if config.side_by_side is None else config.side_by_side
    for group in _groups(tasks, designs):
        size = config.tasks_at_once or (len(devices) if on_cpu else len(group.names))
        for names in _portions(group.names, size):
            yield from _run_group(
                method, params, tasks, designs, names, group, n_trials, key, devices, vectorise, size, stop_at_optimum
            )


@dataclass(frozen=True)
class _Group:
    """Tasks that share one compiled program."""

    names: list[str]
    rows: int
    seeds: tuple[str, ...]


def _groups(tasks: Mapping[str, Task], designs: Designs) -> list[_Group]:
    """Tasks by padded row count, seed names and length of the design."""
    found: dict[tuple, list[str]] = {}
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


def _portions(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(names), size):
        yield list(names[start : start + size])


def _run_group(method, params, tasks, designs, names, group, n_trials, key, devices, vectorise, size, stop_at_optimum):
    """One compiled call for the named tasks; the last portion of a group is filled up by repeating its first task."""
    filled = names + [names[0]] * (size - len(names))
    sorted_tasks = {name: sort_task(tasks[name]) for name in names}
    table = jax.tree.map(lambda *leaves: np.stack(leaves), *[_pad(sorted_tasks[name], group.rows) for name in filled])
    new_row = {name: np.argsort(sorted_tasks[name].order) for name in names}
    design = np.stack([[new_row[name][designs[name][seed]] for seed in group.seeds] for name in filled])
    keys = jnp.stack([jnp.stack([run_key(key, name, seed) for seed in group.seeds]) for name in filled])
    picks = run_grid(
        method, params, table, design.astype(np.int32), keys, n_trials, devices, vectorise, stop_at_optimum
    )
    for i, name in enumerate(names):
        scaled = unit_scale(tasks[name].y)[sorted_tasks[name].order]
        for j, seed in enumerate(group.seeds):
            yield name, seed, incumbents(scaled, design[i, j], picks[i, j])


def _pad(task: Any, rows: int) -> SearchTask:
    empty = rows - len(task.level)
    return SearchTask(
        np.pad(task.x, ((0, empty), (0, 0))),
        np.pad(task.response, (0, empty)),
        np.pad(task.level, (0, empty), constant_values=np.iinfo(np.int32).max),
        np.arange(rows) < len(task.level),
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


def run_grid(method, params, table, design, keys, n_trials, devices, vectorise, stop_at_optimum) -> np.ndarray:
    """Tasks x designs runs: table [A, N, ...], design i32[A, B, n0], keys [A, B] -> picks i32[A, B, T].

    The tasks are sharded over the devices, or the designs where there are fewer tasks than devices. Tables are shared
    by the runs of a task.
    """
    n_tasks, n_designs = design.shape[:2]
    axis = 0 if n_tasks >= len(devices) else 1
    per_device = -(-design.shape[axis] // len(devices))
    short = per_device * len(devices) - design.shape[axis]
    if axis == 0:
        table = jax.tree.map(lambda a: _extend(a, 0, short), table)
    design, keys = _extend(jnp.asarray(design), axis, short), _extend(keys, axis, short)
    # How many each device really has: a loop whose length is not known when it is compiled is compiled to the same
    # program whatever the number of devices, so that they all round alike and pick alike.
    mine = np.clip(np.arange(len(devices)) * -per_device + (n_tasks, n_designs)[axis], 0, per_device)
    other = np.full(len(devices), (n_designs, n_tasks)[axis])
    counts = np.stack([mine, other][:: 1 if axis == 0 else -1], axis=1).astype(np.int32)
    mesh = Mesh(np.array(devices), ("runs",), axis_types=(AxisType.Auto,))
    params = jax.device_put(params, NamedSharding(mesh, PartitionSpec()))
    picks = _grid(method, params, table, design, keys, counts, n_trials, mesh, axis, vectorise, stop_at_optimum)
    return np.asarray(picks)[:n_tasks, :n_designs]


def _extend(a: Array, axis: int, by: int) -> Array:
    """Repeats the first slice at the end."""
    if by == 0:
        return a
    first = jax.lax.slice_in_dim(a, 0, 1, axis=axis)
    return jnp.concatenate([a, *[first] * by], axis=axis)


@partial(jax.jit, static_argnames=("method", "n_trials", "mesh", "axis", "vectorise", "stop_at_optimum"))
def _grid(method, params, table, design, keys, counts, n_trials, mesh, axis, vectorise, stop_at_optimum) -> Array:
    def one_run(params: Any, task: SearchTask, design: Array, key: Array) -> Array:
        return run(method, params, task, design, key, n_trials, stop_at_optimum)

    def local(params: Any, table: SearchTask, design: Array, keys: Array, counts: Array) -> Array:
        if vectorise:
            return jax.vmap(jax.vmap(partial(one_run, params), in_axes=(None, 0, 0)))(table, design, keys)

        def one_task(task: SearchTask, design: Array, keys: Array) -> Array:
            return _one_by_one(partial(one_run, params, task), counts[0, 1], n_trials, design, keys)

        shape = (*design.shape[1:2], n_trials)
        return _one_by_one(one_task, counts[0, 0], shape, table, design, keys)

    by_task, by_run = PartitionSpec(*("runs",) * (axis == 0)), PartitionSpec(*(None,) * axis, "runs")
    specs = (PartitionSpec(), by_task, by_run, by_run, PartitionSpec("runs"))
    shard = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=by_run, check_vma=False)
    return shard(params, table, design, keys, counts)


def _one_by_one(f: Any, count: Array, shape: int | tuple[int, ...], *args: Any) -> Array:
    """f over the first ``count`` entries of the leading axis, one after the other; -1 for the rest."""
    length = jax.tree.leaves(args)[0].shape[0]
    results = jnp.full((length, *(shape if isinstance(shape, tuple) else (shape,))), -1, jnp.int32)

    def body(i: Array, results: Array) -> Array:
        return results.at[i].set(f(*jax.tree.map(lambda a: a[i], args)))

    return lax.fori_loop(0, count, body, results)
