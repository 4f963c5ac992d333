"""Many runs: tasks of different sizes and several designs, in few compiled calls."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Float64, Int, Key

from dre_jax.data.spaces import Designs, Task
from dre_jax.data.tasks import SortedTask, sort_task, unit_scale
from dre_jax.errors import DataError
from dre_jax.runtime.devices import all_devices
from dre_jax.search.execution import ExecutionConfig, runs_side_by_side
from dre_jax.search.grid import GridConfig, GridRuns, mesh_for, run_grid
from dre_jax.search.history import FIRST_BUCKET
from dre_jax.search.loop import SearchTask
from dre_jax.search.method import Method, PaddingMethod, as_padding

RunTrace = tuple[str, str, np.ndarray]
"""Dataset, seed name, and the T + 1 best responses so far, scaled with the task's table (entry 0: the design's)."""

_ROWS_AT_ONCE = 2**25


def run_id(name: str) -> int:
    """Returns the CRC-32 of a name, which is folded into keys: the same on every machine."""
    return zlib.crc32(name.encode())


def run_key(key: Key[Array, ""], dataset: str, seed: str) -> Key[Array, ""]:
    """Returns the key of one run."""
    return jax.random.fold_in(jax.random.fold_in(key, run_id(dataset)), run_id(seed))


def bucket(n: int) -> int:
    """Returns the padded number of rows of a table: at most a quarter more, so that few sizes are compiled."""
    step = max(1, 2 ** (n.bit_length() - 3))
    return -(-n // step) * step


def coarse_bucket(n: int) -> int:
    """Returns the padded number of rows of a table if runs go side by side: a power of 64.

    More rows cost little there, as all are scored at once. Each further size is one more program to compile and one
    more chain of trials to run. No table is padded to more rows than the largest one has.

    Example:
      >>> [coarse_bucket(n) for n in (5, 288, 4096, 4097)]
      [64, 4096, 4096, 262144]
    """
    return int(max(64, 64 ** -(-(n - 1).bit_length() // 6)))


class SpaceRuns(NamedTuple):
    """The runs of one search space."""

    params: Any
    """The result of the method's `fit`."""
    tasks: Mapping[str, Task]
    """By dataset name."""
    designs: Designs
    """Dataset -> seed name -> rows evaluated at the start; every dataset of ``tasks`` must be there."""
    key: Key[Array, ""]
    """Key that the identifiers of the runs are folded into."""


def run_tasks(
    method: Method,
    params: Any,
    tasks: Mapping[str, Task],
    designs: Designs,
    *,
    n_trials: int,
    key: Key[Array, ""],
    config: ExecutionConfig | None = None,
    stop_at_optimum: bool = True,
) -> Iterator[RunTrace]:
    """Optimises every task from each of its designs; yields the traces as they are finished.

    The picks of a run depend on the key, the names of its dataset and its seed, and on nothing else: not on the other
    tasks, the padding, or the number of devices.

    Args:
      method: frozen and hashable.
      params: the result of the method's `fit`.
      tasks: by dataset name.
      designs: dataset -> seed name -> rows evaluated at the start; every dataset of ``tasks`` must be there.
      n_trials: T.
      key: PRNG key.
      config: how the runs use the devices.
      stop_at_optimum: see `dre_jax.search.loop.run`.

    Raises:
      DataError: for a task without a design.

    Example:
      >>> from dre_jax import RandomSearch
      >>> from dre_jax.data import bundled
      >>> svm = bundled.load("svm")
      >>> runs = run_tasks(RandomSearch(), None, svm.test, svm.designs, n_trials=2, key=jax.random.key(0))
      >>> dataset, seed, trace = next(runs)
      >>> trace.shape
      (3,)
    """
    spaces = {"": SpaceRuns(params, tasks, designs, key)}
    for _, *trace in run_spaces(method, spaces, n_trials=n_trials, config=config, stop_at_optimum=stop_at_optimum):
        yield tuple(trace)  # type: ignore[misc]


def run_spaces(
    method: Method,
    spaces: Mapping[str, SpaceRuns],
    *,
    n_trials: int,
    config: ExecutionConfig | None = None,
    stop_at_optimum: bool = True,
) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Runs `run_tasks` of several search spaces by name; yields the space's name, and a trace.

    Where runs go side by side, and the method has `pad_columns`, runs of all search spaces are one program. An
    accelerator then runs the chain of trials and epochs once, not once a space.

    Args:
      method: frozen and hashable.
      spaces: tasks, designs, parameters and key of each.
      n_trials: T.
      config: how the runs use the devices.
      stop_at_optimum: see `dre_jax.search.loop.run`.

    Raises:
      ConfigError: for a name in place of a method.
      DataError: for a task without a design.
    """
    padding_method = as_padding(method)
    config = config or ExecutionConfig()
    devices = all_devices()[: config.devices]
    side_by_side = runs_side_by_side(config)
    alone: list[Mapping[str, SpaceRuns]] = [{name: runs} for name, runs in spaces.items()]
    groups = _padded_groups(padding_method, spaces) if padding_method and side_by_side and len(spaces) > 1 else alone
    for together in groups:
        for group in _groups(together, coarse_bucket if side_by_side else bucket):
            size = _tasks_per_call(group, len(devices), side_by_side)
            mesh = mesh_for(devices, size, len(group.seeds))
            longest = group.n_design + n_trials - 1
            grid_config = GridConfig(
                n_trials,
                mesh,
                side_by_side,
                stop_at_optimum,
                params_by_task=len(together) > 1,
                # A second loop takes longer to compile than it saves in a few trials.
                single_loop=side_by_side or longest <= 2 * FIRST_BUCKET,
                key_impl=jax.random.key_impl(spaces[group.items[0].space].key),
            )
            for start in range(0, len(group.items), size):
                yield from _run_items(method, group, group.items[start : start + size], grid_config, size)


def _tasks_per_call(group: _Group, n_devices: int, side_by_side: bool) -> int:
    """Returns the number of tasks in one call.

    If runs go one after the other, each device has one task, as progress is reported between calls. Otherwise, each
    device has as many tasks as have 32 million rows with all their runs: some gigabytes with ten members.
    """
    if not side_by_side:
        return min(n_devices, len(group.items))
    room = max(1, _ROWS_AT_ONCE * n_devices // (group.rows * len(group.seeds)))
    calls = -(-len(group.items) // room)
    return -(-len(group.items) // calls)  # calls of equal size, so that the last does not compute padding


@dataclass(frozen=True)
class _Item:
    """A task, with all that its runs need."""

    space: str
    name: str
    task: Task
    designs: Mapping[str, np.ndarray]
    key_data: np.ndarray
    params: Any


@dataclass(frozen=True)
class _Group:
    """Tasks that share one compiled program."""

    items: list[_Item]
    rows: int
    seeds: tuple[str, ...]
    n_design: int


def _padded_groups(method: PaddingMethod, spaces: Mapping[str, SpaceRuns]) -> Iterator[Mapping[str, SpaceRuns]]:
    """Yields the search spaces that share a program: those of equal parameters, padded with zeros."""
    widths = {name: next(iter(runs.tasks.values())).n_columns for name, runs in spaces.items() if runs.tasks}
    widest = max(widths.values(), default=0)
    host_params = jax.device_get([spaces[name].params for name in widths])
    padded_params = jax.device_get(_pad_params(method, host_params, tuple(widths.values()), widest))
    by_shape: dict[Any, dict[str, SpaceRuns]] = {}
    for (name, width), params in zip(widths.items(), padded_params, strict=True):
        padding = (0, 0), (0, widest - width)
        tasks = {n: replace(task, X=np.pad(task.X, padding)) for n, task in spaces[name].tasks.items()}
        shape = jax.tree.structure(params), tuple(map(np.shape, jax.tree.leaves(params)))
        by_shape.setdefault(shape, {})[name] = spaces[name]._replace(params=params, tasks=tasks)
    yield from by_shape.values()


@partial(jax.jit, static_argnames=("method", "widths", "widest"))
def _pad_params(method: PaddingMethod, params: Sequence[Any], widths: Sequence[int], widest: int) -> list[Any]:
    """Returns the parameters of search spaces, padded to the columns of the widest by one program."""
    return [method.pad_columns(parameters, width, widest) for parameters, width in zip(params, widths, strict=True)]


def _groups(spaces: Mapping[str, SpaceRuns], round_count: Callable[[int], int]) -> list[_Group]:
    """Returns the tasks grouped by padded row count, seed names and length of the design."""
    items_by_shape: dict[tuple[int, tuple[str, ...], int], list[_Item]] = {}
    for space, runs in spaces.items():
        key_data = np.asarray(jax.random.key_data(runs.key))
        for name, task in runs.tasks.items():
            designs = runs.designs.get(name)
            if not designs:
                raise DataError(f"every task needs an initial design, but dataset {name!r} has none")
            item = _Item(space, name, task, designs, key_data, runs.params)
            seeds_by_length: dict[int, tuple[str, ...]] = {}
            for seed, rows in designs.items():
                seeds_by_length[len(rows)] = (*seeds_by_length.get(len(rows), ()), seed)
            for length, seeds in seeds_by_length.items():
                items_by_shape.setdefault((round_count(task.n_rows), seeds, length), []).append(item)
    return [
        _Group(items, min(rows, max(item.task.n_rows for item in items)), seeds, n_design)
        for (rows, seeds, n_design), items in items_by_shape.items()
    ]


def _run_items(
    method: Method, group: _Group, items: Sequence[_Item], config: GridConfig, capacity: int
) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Yields the traces of some tasks of a group, which are one compiled call; all else is NumPy's work."""
    tasks = [sort_task(item.task) for item in items]
    ranks = [np.argsort(task.order) for task in tasks]
    starts = [[item.designs[seed] for seed in group.seeds] for item in items]
    designs = np.array([rank[np.array(rows)] for rank, rows in zip(ranks, starts, strict=True)], np.int32)
    seed_ids = [run_id(seed) for seed in group.seeds]
    run_ids = np.array([[(run_id(item.name), seed_id) for seed_id in seed_ids] for item in items], np.uint32)
    key_data = np.stack([item.key_data for item in items])
    params = items[0].params
    if config.params_by_task:
        params = jax.tree.map(lambda *leaves: np.stack(leaves), *[item.params for item in items])
    runs = GridRuns(stack_tasks(tasks, group.rows), designs, key_data, run_ids)
    picks = run_grid(method, params, runs, config, capacity)
    for item, task, design, rows in zip(items, tasks, designs, picks, strict=True):
        traces = incumbents(unit_scale(item.task.y)[task.order], design, rows)
        for seed, trace in zip(group.seeds, traces, strict=True):
            yield item.space, item.name, seed, trace


def stack_tasks(tasks: Sequence[SortedTask], rows: int) -> SearchTask:
    """Returns the tables of tasks in NumPy arrays with the tasks in front, each padded to a number of rows."""
    shape = len(tasks), rows
    x = np.zeros((*shape, tasks[0].x.shape[1]), np.float32)
    response, residual = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    level, where = np.full(shape, np.iinfo(np.int32).max, np.int32), np.zeros(shape, bool)
    for i, task in enumerate(tasks):
        n = len(task.level)
        x[i, :n], response[i, :n], residual[i, :n] = task.x, task.response, task.float32_residual
        level[i, :n], where[i, :n] = task.level, True
    columns: Any = (x, response, level, where, residual)
    return SearchTask(*columns)


def incumbents(
    response: Float64[np.ndarray, " n"], design: Int[np.ndarray, "*batch n0"], picks: Int[np.ndarray, "*batch T"]
) -> Float64[np.ndarray, "*batch T+1"]:
    """Returns the best responses after the designs, and after each of the picks; a pick of -1 is no evaluation.

    Example:
      >>> incumbents(np.array([1.0, 0.7, 0.2]), np.array([2]), np.array([1, 0, -1])).tolist()
      [0.2, 0.7, 1.0, 1.0]
    """
    first = response[design].max(axis=-1, keepdims=True)
    later = np.where(picks >= 0, response[picks], -np.inf)
    return np.maximum.accumulate(np.concatenate([first, later], axis=-1), axis=-1)
