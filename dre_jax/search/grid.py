"""Tasks x designs runs as one compiled program, sharded over a mesh of devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from dre_jax.search.loop import SearchTask, run
from dre_jax.search.method import Method


@dataclass(frozen=True)
class GridConfig:
    """What a grid of runs is compiled for; static."""

    n_trials: int
    """T"""
    devices: tuple[jax.Device, ...]
    """The mesh."""
    side_by_side: bool
    """Whether a device works on all its runs at once, or on one after the other."""
    stop_at_optimum: bool = True
    """See `dre_jax.search.loop.run`."""

    def mesh(self) -> Mesh:
        """The devices in a row, along which runs are sharded."""
        return Mesh(np.array(self.devices), ("runs",), axis_types=(AxisType.Auto,))


def run_grid(
    method: Method, params: Any, tables: SearchTask, designs: np.ndarray, keys: Array, config: GridConfig, capacity: int
) -> np.ndarray:
    """Runs every task from each of its designs.

    The tasks are sharded over the devices, or the designs where there is room for fewer tasks than devices. The runs
    of a task share its table.

    Args:
      method: static.
      params: what the method's `fit` returned; every device has a copy.
      tables: A tasks of N rows, every leaf with the tasks in front.
      designs: i32[A, B, n0], rows evaluated at the start.
      keys: PRNG keys [A, B].
      config: how.
      capacity: tasks that the program has room for, at least A: calls with fewer compile nothing new.

    Returns:
      i32[A, B, T], the picks.
    """
    n_tasks, n_designs = designs.shape[:2]
    n_devices = len(config.devices)
    axis = 0 if capacity >= n_devices else 1
    room = [capacity, n_designs]
    room[axis] = -(-room[axis] // n_devices) * n_devices
    tables = jax.tree.map(lambda a: _fill_up(a, 0, room[0]), tables)
    rows, keys = (_fill_up(_fill_up(a, 0, room[0]), 1, room[1]) for a in (designs, keys))
    counts = _counts((n_tasks, n_designs), axis, room[axis] // n_devices, n_devices)
    params = jax.device_put(params, NamedSharding(config.mesh(), PartitionSpec()))
    picks = grid(method, params, tables, rows, keys, counts, config, axis)
    return np.asarray(picks)[:n_tasks, :n_designs]


def _counts(real: tuple[int, int], axis: int, per_device: int, n_devices: int) -> np.ndarray:
    """Tasks and designs that each device really has, i32[devices, 2]."""
    counts = np.tile(np.array(real, np.int32), (n_devices, 1))
    first = np.arange(n_devices) * per_device
    counts[:, axis] = np.clip(real[axis] - first, 0, per_device)
    return counts


def _fill_up(a: Any, axis: int, size: int) -> Array:
    """Repeats the first slice at the end, up to a size."""
    a = jnp.asarray(a)
    first = lax.slice_in_dim(a, 0, 1, axis=axis)
    return jnp.concatenate([a, *[first] * (size - a.shape[axis])], axis=axis)


@partial(jax.jit, static_argnames=("method", "config", "axis"))
def grid(
    method: Method,
    params: Any,
    tables: SearchTask,
    designs: Array,
    keys: Array,
    counts: Array,
    config: GridConfig,
    axis: int,
) -> Array:
    """The compiled part of `run_grid`: shapes that the devices divide, and how many runs each device really has."""

    def one_run(params: Any, task: SearchTask, design: Array, key: Array) -> Array:
        return run(method, params, task, design, key, config.n_trials, config.stop_at_optimum)

    def side_by_side(params: Any, tables: SearchTask, designs: Array, keys: Array, counts: Array) -> Array:
        del counts
        return jax.vmap(jax.vmap(partial(one_run, params), in_axes=(None, 0, 0)))(tables, designs, keys)

    def one_by_one(params: Any, tables: SearchTask, designs: Array, keys: Array, counts: Array) -> Array:
        def one_task(task: SearchTask, designs: Array, keys: Array) -> Array:
            return _in_turn(partial(one_run, params, task), counts[0, 1], (config.n_trials,), designs, keys)

        return _in_turn(one_task, counts[0, 0], (designs.shape[1], config.n_trials), tables, designs, keys)

    sharded, everywhere = PartitionSpec("runs"), PartitionSpec()
    by_run = sharded if axis == 0 else PartitionSpec(None, "runs")
    on_a_device = jax.shard_map(
        side_by_side if config.side_by_side else one_by_one,
        mesh=config.mesh(),
        in_specs=(everywhere, sharded if axis == 0 else everywhere, by_run, by_run, sharded),
        out_specs=by_run,
        check_vma=False,
    )
    return on_a_device(params, tables, designs, keys, counts)


def _in_turn(f: Callable[..., Array], count: Array, shape: tuple[int, ...], *args: Any) -> Array:
    """f over the first ``count`` entries of the leading axis, one after the other; -1 for the rest.

    The count is not known when the loop is compiled. So the loop is the same program whatever the number of devices,
    and all of them round alike and pick alike.
    """
    length = jax.tree.leaves(args)[0].shape[0]

    def body(i: Array, results: Array) -> Array:
        return results.at[i].set(f(*jax.tree.map(lambda a: a[i], args)))

    return lax.fori_loop(0, count, body, jnp.full((length, *shape), -1, jnp.int32))
