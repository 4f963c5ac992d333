"""Tasks x designs runs as one compiled program, sharded over a mesh of devices."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int, Key, UInt32

from dre_jax.runtime import processes
from dre_jax.runtime.arrays import AnyArray
from dre_jax.runtime.devices import Devices, covering_shape, make_mesh
from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.acquisition import UNDEFINED_INDEX, undefined_values
from dre_jax.search.execution import map_in_turn
from dre_jax.search.loop import SearchTask, run
from dre_jax.search.method import Method


class GridRuns(NamedTuple):
    """The runs of a grid: A tasks, each from B designs."""

    tables: SearchTask
    """A tasks of N rows, every leaf with the tasks in front."""
    designs: Int[AnyArray, "A B n0"]
    """Rows evaluated at the start."""
    key_data: UInt32[AnyArray, "A ..."]
    """`jax.random.key_data` of the key that each task's runs fold their identifiers into."""
    run_ids: UInt32[AnyArray, "A B 2"]
    """Identifiers of the task and of the design."""


@dataclass(frozen=True)
class GridConfig:
    """The static part of a grid of runs."""

    n_trials: int
    """T"""
    mesh: Mesh
    """Tasks along its first axis, designs along its second; see `mesh_for`."""
    side_by_side: bool
    """A device works on all its runs at once; otherwise on one after the other."""
    stop_at_optimum: bool = True
    """See `dre_jax.search.loop.run`."""
    params_by_task: bool = False
    """Every task has parameters of its own; otherwise all share one set."""
    single_loop: bool = False
    """See `dre_jax.search.loop.run`."""
    key_impl: Any = None
    """`jax.random.key_impl` of the keys; None for JAX's default."""


TASKS, DESIGNS = "tasks", "designs"


def mesh_for(devices: Devices, tasks: int, designs: int) -> Mesh:
    """Returns the mesh for a number of tasks and designs; tasks are sharded first, designs if there are few tasks."""
    return make_mesh(devices, covering_shape(len(devices), tasks, designs), (TASKS, DESIGNS))


@on_one_thread
def run_grid(
    method: Method, params: Any, runs: GridRuns, config: GridConfig, capacity: int
) -> Int[np.ndarray, "A B T"]:
    """Runs every task from each of its designs; returns the picks.

    Tasks and designs are sharded over the mesh. The runs of a task share its table, and devices exchange nothing. All
    arguments cross to the devices in one transfer, with the sharding of the program: a later call therefore finds the
    program of the first one, whether its parameters are NumPy arrays or on some device. Every device has a copy of
    ``params``, which with ``params_by_task`` have tasks in front. The program has room for ``capacity`` tasks, so that
    calls with fewer compile nothing new.

    Raises `ConfigError` if the method's values of all candidates are NaN in a trial.
    """
    n_tasks, n_designs = runs.designs.shape[:2]
    shape = config.mesh.devices.shape
    room = [-(-n // size) * size for n, size in zip((capacity, n_designs), shape, strict=True)]
    counts = np.stack(np.meshgrid(*map(_counts, (n_tasks, n_designs), room, shape), indexing="ij"), axis=-1)
    runs = jax.tree.map(lambda a: _fill_up(a, 0, room[0]), runs)
    runs = runs._replace(designs=_fill_up(runs.designs, 1, room[1]), run_ids=_fill_up(runs.run_ids, 1, room[1]))
    if config.params_by_task:
        params = jax.tree.map(lambda a: _fill_up(a, 0, room[0]), params)
    shardings = jax.tree.map(partial(NamedSharding, config.mesh), _specs(config))
    picks = grid(method, *processes.spread((params, runs, counts), shardings), config)
    all_picks = processes.gather(picks)[:n_tasks, :n_designs]
    if (all_picks == UNDEFINED_INDEX).any():
        raise undefined_values(method)
    return all_picks


def _specs(config: GridConfig) -> tuple[PartitionSpec, GridRuns, PartitionSpec]:
    """Returns the partitions of parameters, runs and counts."""
    by_task, by_run = PartitionSpec(TASKS), PartitionSpec(TASKS, DESIGNS)
    tables: Any = by_task
    return by_task if config.params_by_task else PartitionSpec(), GridRuns(tables, by_run, by_task, by_run), by_run


def _counts(real: int, room: int, n_devices: int) -> Int[np.ndarray, " {n_devices}"]:
    """Returns the number of tasks, or of designs, of each device along an axis without padding."""
    per_device = room // n_devices
    return np.clip(real - np.arange(n_devices) * per_device, 0, per_device).astype(np.int32)


def _fill_up(a: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Repeats the last slice, up to a size."""
    return a if a.shape[axis] == size else np.take(a, np.arange(size), axis, mode="clip")


@partial(jax.jit, static_argnames=("method", "config"))
def grid(
    method: Method, params: Any, runs: GridRuns, counts: Int[Array, "*mesh 2"], config: GridConfig
) -> Int[Array, "A B T"]:
    """Runs the compiled part of `run_grid`, for shapes that the mesh divides and counts of the runs of each device.

    ``counts`` has the numbers of tasks and designs of each device.
    """
    options = config.n_trials, config.stop_at_optimum, config.side_by_side, config.single_loop

    def run_design(params: Any, task: SearchTask, design: Array, key: Array) -> Array:
        return run(method, params, task, design, key, *options)

    by_task = config.params_by_task

    def side_by_side(params: Any, tables: SearchTask, designs: Array, keys: Array, counts: Array) -> Array:
        del counts
        of_a_task = jax.vmap(run_design, in_axes=(None, None, 0, 0))
        return jax.vmap(of_a_task, in_axes=(0 if by_task else None, 0, 0, 0))(params, tables, designs, keys)

    def in_turn(params: Any, tables: SearchTask, designs: Array, keys: Array, counts: Array) -> Array:
        no_picks = jnp.full((*designs.shape[:2], config.n_trials), -1, jnp.int32)

        def run_task(params: Any, task: SearchTask, designs: Array, keys: Array) -> Array:
            return map_in_turn(partial(run_design, params, task), counts[0, 0, 1], no_picks[0], designs, keys)

        if by_task:
            return map_in_turn(run_task, counts[0, 0, 0], no_picks, params, tables, designs, keys)
        return map_in_turn(partial(run_task, params), counts[0, 0, 0], no_picks, tables, designs, keys)

    def on_a_device(params: Any, runs: GridRuns, counts: Array) -> Array:
        keys = run_keys(runs.key_data, runs.run_ids, config.key_impl)
        return (side_by_side if config.side_by_side else in_turn)(params, runs.tables, runs.designs, keys, counts)

    in_specs = _specs(config)
    return jax.shard_map(on_a_device, mesh=config.mesh, in_specs=in_specs, out_specs=in_specs[2], check_vma=False)(
        params, runs, counts
    )


def run_keys(key_data: UInt32[Array, "A ..."], run_ids: UInt32[Array, "A B 2"], impl: Any = None) -> Key[Array, "A B"]:
    """Returns the keys of runs: each task's key, with the identifiers of both folded in."""

    def run_key(key: Array, ids: Array) -> Array:
        # A loop, because the generator is unrolled into two hundred operations wherever it is called.
        return lax.scan(lambda key, number: (jax.random.fold_in(key, number), None), key, ids)[0]

    by_run = jax.vmap(jax.vmap(run_key, in_axes=(None, 0)))
    return by_run(jax.random.wrap_key_data(key_data, impl=impl), run_ids)
