"""HPO-B's whole protocol as a TPU is given it: a program for each size that tables are padded to."""

from __future__ import annotations

from collections.abc import Iterator

from jax.sharding import Mesh

from benchmarks.suite import hpob_shapes, ours
from benchmarks.suite.hpob_shapes import SPACES, SpaceShape
from benchmarks.suite.loops import Loop, chips_of
from benchmarks.suite.suggestions import learned
from dre_jax.methods import find
from dre_jax.runtime.devices import covering_shape, make_mesh
from dre_jax.search.batch import coarse_bucket
from dre_jax.search.grid import DESIGNS, TASKS


def whole_protocol(name: str, mesh: Mesh) -> Iterator[Loop]:
    """All 430 runs by a method, shared out over the chips of a mesh as the library does it."""
    by_size: dict[int, list[SpaceShape]] = {}
    for space in SPACES:
        by_size.setdefault(coarse_bucket(space.rows_per_task), []).append(space)
    method, columns = find(name).make(), max(space.columns for space in SPACES)
    params = learned(method, columns)
    for _, spaces in sorted(by_size.items()):
        tasks, rows = sum(space.test_tasks for space in spaces), max(space.rows_per_task for space in spaces)
        over = make_mesh(mesh.devices.flat, covering_shape(mesh.size, tasks, hpob_shapes.DESIGNS), (TASKS, DESIGNS))
        program = ours.grid_program(
            method,
            params,
            over,
            tasks=-(-tasks // over.shape[TASKS]) * over.shape[TASKS],
            designs=hpob_shapes.DESIGNS,
            rows=rows,
            columns=columns,
            trials=hpob_shapes.TRIALS,
        )
        runs = tasks * hpob_shapes.DESIGNS
        where = f", {chips_of(over)}" if mesh.size > 1 else ""
        words = f"{name}, {runs} runs of {hpob_shapes.TRIALS} trials, tables of {rows:,} rows{where}"
        yield Loop(words, 0, program, runs=runs)
