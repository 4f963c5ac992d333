"""How devices execute many runs: in turn on a CPU, whose caches hold one run, and side by side elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int

from dre_jax.runtime import devices

RUNS = "runs"
_RUNS_PER_CORE, _RUNS_PER_DEVICE = 16, 512  # of one call

P = TypeVar("P")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class ExecutionConfig:
    """How many runs are executed on devices."""

    devices: int | None = None
    """Devices of the mesh; by default all that are in use, including those of other processes."""
    side_by_side: bool | None = None
    """A device works on all its runs side by side, or else on one after the other; by default one after the other
    on a CPU, whose caches hold one run, and side by side elsewhere."""


def runs_side_by_side(config: ExecutionConfig) -> bool:
    """Returns whether a device works on its runs side by side; the default is no on a CPU and yes elsewhere."""
    on_cpu = devices.all_devices()[0].platform == "cpu"
    return not on_cpu if config.side_by_side is None else config.side_by_side


def map_in_turn(f: Callable[..., Any], count: Int[Array, ""], results: Any, *args: Any) -> Any:
    """Returns ``results`` with the first ``count`` entries replaced by ``f`` of the arguments' entries; compiled.

    Trees have the entries in front, and are taken one after the other. The count is not known when the loop is
    compiled. The loop is therefore the same program for any number of devices, which all round and pick alike.
    """

    def body(i: Array, results: Any) -> Any:
        entry = f(*jax.tree.map(lambda a: a[i], args))
        return jax.tree.map(lambda a, new: a.at[i].set(new), results, entry)

    return lax.fori_loop(0, count, body, results)


def mesh_of(execution: ExecutionConfig | None) -> Mesh | None:
    """Returns the devices that runs are spread over; None for the cores of a CPU, which work on one at a time."""
    config = execution or ExecutionConfig()
    return Mesh(np.array(devices.local()[: config.devices]), (RUNS,)) if runs_side_by_side(config) else None


def map_runs(
    function: Callable[[Any, Any, Any], Any],
    mesh: Mesh | None,
    shared: Any,
    runs: Any,
    results: Any,
    count: Int[Array, ""],
) -> Any:
    """Returns ``function(shared, run, result)`` of each run; compiled.

    Results have the runs in front; ``function`` returns one entry of them. The first ``count`` runs are wanted,
    the others are padding.
    """
    if mesh is not None:
        spec = PartitionSpec(RUNS)
        specs = (PartitionSpec(), spec, spec)
        side_by_side = jax.vmap(function, in_axes=(None, 0, 0))
        # Loops begin with constants, which no device owns.
        on_mesh = jax.shard_map(side_by_side, mesh=mesh, in_specs=specs, out_specs=spec, check_vma=False)
        return on_mesh(shared, runs, results)
    return map_in_turn(partial(function, shared), count, results, runs, results)


def put(mesh: Mesh | None, shared: Any, runs: Any) -> tuple[Any, Any]:
    """Returns arrays that all runs share, and arrays with the runs in front, on the devices of the mesh."""
    if mesh is None:
        return jax.device_put((shared, runs))
    run_sharding = NamedSharding(mesh, PartitionSpec(RUNS))
    return jax.device_put(shared, NamedSharding(mesh, PartitionSpec())), jax.device_put(runs, run_sharding)


def run_blocks(
    mesh: Mesh | None, runs: Sequence[S], parts: Sequence[P], run: Callable[[list[S], int, Sequence[P], int], T]
) -> Iterator[T]:
    """Yields the results of blocks of runs as these are finished.

    ``parts`` of the work on a run are programs. ``run`` gets the runs of a block, the size that they are padded
    to, the parts, and how many of the runs are worked on. Where blocks share cores, ``run`` is first called for no
    runs, which compiles its programs: two threads that need a program would both compile it.
    """
    workers, most = (devices.cores(), _RUNS_PER_CORE) if mesh is None else (1, _RUNS_PER_DEVICE * mesh.size)
    n_blocks = -(-len(runs) // most)
    n_blocks = min(-(-n_blocks // workers) * workers, len(runs))
    blocks = [[runs[i] for i in part] for part in np.array_split(np.arange(len(runs)), n_blocks)]
    size = most if mesh is None else -(-len(blocks[0]) // mesh.size) * mesh.size
    with ThreadPoolExecutor(workers) as executor:
        try:
            if mesh is None:
                list(executor.map(lambda part: run(blocks[0][:1], size, [part], 0), parts))
            futures = [executor.submit(run, block, size, parts, len(block)) for block in blocks]
            for future in as_completed(futures):
                yield future.result()
        finally:
            executor.shutdown(cancel_futures=True)
