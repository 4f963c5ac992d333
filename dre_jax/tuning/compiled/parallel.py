"""How programs work on many studies: one by one on each core of a CPU, or side by side on other devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from dre_jax.runtime import devices
from dre_jax.search.execution import ExecutionConfig, map_in_turn, runs_side_by_side

STUDIES = "studies"
_STUDIES_PER_CORE, _STUDIES_PER_DEVICE = 16, 512  # of one call

P = TypeVar("P")
S = TypeVar("S")
T = TypeVar("T")


def mesh_of(execution: ExecutionConfig | None) -> Mesh | None:
    """Returns the devices that studies are spread over; None for the cores of a CPU, which work on one at a time."""
    config = execution or ExecutionConfig()
    return Mesh(np.array(devices.local()[: config.devices]), (STUDIES,)) if runs_side_by_side(config) else None


def map_studies(
    function: Callable[[Any, Any, Any], Any], mesh: Mesh | None, shared: Any, studies: Any, results: Any, count: Array
) -> Any:
    """Returns ``function(shared, study, result)`` of each study; compiled.

    Results have the studies in front; ``function`` returns one entry of them. The first ``count`` studies are wanted,
    the others are padding.
    """
    if mesh is not None:
        spec = PartitionSpec(STUDIES)
        specs = (PartitionSpec(), spec, spec)
        side_by_side = jax.vmap(function, in_axes=(None, 0, 0))
        # Loops begin with constants, which no device owns.
        on_mesh = jax.shard_map(side_by_side, mesh=mesh, in_specs=specs, out_specs=spec, check_vma=False)
        return on_mesh(shared, studies, results)
    return map_in_turn(partial(function, shared), count, results, studies, results)


def put(mesh: Mesh | None, shared: Any, studies: Any) -> tuple[Any, Any]:
    """Returns arrays that all studies share, and arrays with the studies in front, on the devices of the mesh."""
    if mesh is None:
        return jax.device_put((shared, studies))
    study_sharding = NamedSharding(mesh, PartitionSpec(STUDIES))
    return jax.device_put(shared, NamedSharding(mesh, PartitionSpec())), jax.device_put(studies, study_sharding)


def run_blocks(
    mesh: Mesh | None, studies: Sequence[S], parts: Sequence[P], run: Callable[[list[S], int, Sequence[P], int], T]
) -> Iterator[T]:
    """Yields the results of blocks of studies as these are finished.

    ``parts`` of the work on a study are programs. ``run`` gets the studies of a block, the size that they are padded
    to, the parts, and how many of the studies are worked on. Where blocks share cores, ``run`` is first called for no
    studies, which compiles its programs: two threads that need a program would both compile it.
    """
    workers, most = (devices.cores(), _STUDIES_PER_CORE) if mesh is None else (1, _STUDIES_PER_DEVICE * mesh.size)
    n_blocks = -(-len(studies) // most)
    n_blocks = min(-(-n_blocks // workers) * workers, len(studies))
    blocks = [[studies[i] for i in part] for part in np.array_split(np.arange(len(studies)), n_blocks)]
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
