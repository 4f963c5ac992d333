"""Programs whose compiled form is described, for devices that are here or not.

The bodies of the two loops (an epoch of fine-tuning, a step of meta-training), suggestions of methods for many runs,
and HPO-B's whole protocol. Arrays are shapes where nothing has to be computed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from benchmarks.suite import hpob_shapes, ours, programs
from dre_jax import ModelConfig
from dre_jax.data import SearchSpace
from dre_jax.methods import find
from dre_jax.methods.baselines.sources import fit_sources, source_tasks
from dre_jax.methods.dre.ensemble import init
from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.methods.dre.mesh import LISTS, MEMBERS
from dre_jax.methods.dre.steps import start, train
from dre_jax.methods.dre.stream import Feed, ResidentFeed, StreamedFeed
from dre_jax.methods.dre.tpu import layout_of, passes
from dre_jax.methods.dre.training_config import PAPER_FINE_TUNING
from dre_jax.runtime.devices import covering_shape, dividing_shape, make_mesh
from dre_jax.search.batch import coarse_bucket
from dre_jax.search.grid import DESIGNS, TASKS, GridConfig, grid
from dre_jax.search.history import Candidates, History
from dre_jax.search.loop import SearchTask
from dre_jax.search.method import Method, members_of, runs_sequentially

CANDIDATES = 512
_EPOCHS, _STEPS = 1013, 53  # unlike any other loop's number of turns
_COLUMNS = 16
Program = tuple[Any, tuple[Any, ...]]
"""A compiled function, and inputs for it."""


@dataclass(frozen=True)
class Workload:
    """A program to describe."""

    name: str
    """Of a turn, if the program is mostly one loop."""
    turns: int
    """Of that loop; 0 for a program that is described as a whole, its loops once."""
    program: Program
    runs: int | None = None
    """Side by side."""
    lists: int | None = None
    """Of a training step."""
    kernel_passes: int = 0
    """How often a turn goes through the library's own kernel, where that is used."""
    sharding: Sharding | None = None
    """Of the inputs, if it is not that of all programs."""


def describe(workload: Workload, sharding: Sharding | None = None) -> dict[str, Any]:
    """Returns the counts of a turn or of a whole program, and what compiling took.

    The devices of the sharding need not be there; without one the program is compiled for its inputs. The processor
    seconds include tracing; they tell more than the elapsed ones on a busy machine.
    """
    function, inputs = workload.program
    if sharding := workload.sharding or sharding:
        inputs = tuple(_abstract(one, sharding) for one in inputs)
    begin_cpu = time.process_time()
    lowered = function.lower(*inputs)
    begin = time.perf_counter()
    compiled = lowered.compile()
    seconds = {"compile_s": time.perf_counter() - begin, "compile_cpu_s": time.process_time() - begin_cpu}
    text, memory = str(compiled.as_text()), compiled.memory_analysis()
    if not workload.turns:
        counts = programs.whole_program(text)
    else:
        counts = asdict(programs.loop_body(text, workload.turns))
        if programs.has_kernel(text):  # it is called run by run
            counts |= {name: n * (workload.runs or 1) for name, n in counts.items() if name.endswith("bytes")}
    row: dict[str, Any] = {"name": workload.name, "runs": workload.runs, "lists": workload.lists}
    row |= {name: round(value, 1) for name, value in seconds.items()}
    return {**row, "temporary_bytes": memory.temp_size_in_bytes if memory else None, **counts}


def _abstract(tree: Any, sharding: Sharding) -> Any:
    """Returns shapes in place of arrays; other leaves stay, and so does the sharding of a shape that has one."""
    leaves, kinds = jax.tree.leaves(tree), (jax.Array, jax.ShapeDtypeStruct)
    if not leaves or not all(isinstance(leaf, kinds) for leaf in leaves):
        return tree

    def abstract_leaf(a: Any) -> jax.ShapeDtypeStruct:
        placed = isinstance(a, jax.ShapeDtypeStruct) and a.sharding is not None
        return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding if placed else sharding)

    return jax.tree.map(abstract_leaf, tree)


def loop_workloads(
    model: ModelConfig,
    runs: Sequence[int],
    lists: Sequence[int],
    histories: Sequence[int] = (105,),
    *,
    streamed: bool = False,
) -> Iterator[Workload]:
    """Yields an epoch of each number of runs at each history, and a step of each number of lists."""
    layout = layout_of(model, _COLUMNS)
    for n, history in product(runs, histories):
        name = f"epoch of fine-tuning, {_count_words(n, 'run')}, history {history}"
        kernel_passes = n * passes(layout, layout.groups(model.members), history)
        yield Workload(name, _EPOCHS, _fine_tuning(model, n, history), runs=n, kernel_passes=kernel_passes)
    for n in lists:
        name = f"step of meta-training, {_count_words(n, 'list')}"
        yield Workload(name, _STEPS, _meta_training(model, n, streamed=streamed), lists=n)


def mesh_workloads(model: ModelConfig, mesh: Mesh, lists: int, runs: int, rows: int) -> Iterator[Workload]:
    """Yields work shared out over chips: members and lists of a training step, and runs of four trials.

    Where members or lists are not divided by the mesh, a step is laid out as the library does it on so many chips.
    """
    shape = mesh.devices.shape
    if model.members % shape[0] or lists % shape[1]:
        shape = dividing_shape(mesh.size, model.members, lists)
    over = make_mesh(mesh.devices.flat, shape, (MEMBERS, LISTS))
    name = f"step of meta-training, {_count_words(lists, 'list')}, {_chip_words(over)}"
    step = _meta_training(model, lists, over)
    yield Workload(name, _STEPS, step, lists=lists, sharding=NamedSharding(over, PartitionSpec()))
    over, n_designs = Mesh(mesh.devices, (TASKS, DESIGNS)), mesh.devices.shape[1]
    sizes = {"tasks": runs, "designs": n_designs, "rows": rows, "columns": _COLUMNS, "trials": 4}
    program = _run_grid(ours.method(model, 1000), ours.parameters(model, _COLUMNS), over, **sizes)
    runs *= n_designs
    yield Workload(f"{_count_words(runs, 'run')} of 4 trials, {_chip_words(over)}", 0, program, runs=runs)


def protocol_workloads(name: str, mesh: Mesh) -> Iterator[Workload]:
    """Yields all 430 runs of HPO-B by a method, a program for each size that tables are padded to.

    Runs are shared out over the chips of the mesh as the library does it.
    """
    spaces_by_size: dict[int, list[hpob_shapes.SpaceShape]] = {}
    for space in hpob_shapes.SPACES:
        spaces_by_size.setdefault(coarse_bucket(space.rows_per_task), []).append(space)
    method, columns = find(name).make(), max(space.columns for space in hpob_shapes.SPACES)
    params, designs, trials = _abstract_fit(method, columns), hpob_shapes.DESIGNS, hpob_shapes.TRIALS
    for _, spaces in sorted(spaces_by_size.items()):
        tasks, rows = sum(space.test_tasks for space in spaces), max(space.rows_per_task for space in spaces)
        over = make_mesh(mesh.devices.flat, covering_shape(mesh.size, tasks, designs), (TASKS, DESIGNS))
        padded = -(-tasks // over.shape[TASKS]) * over.shape[TASKS]
        sizes = {"tasks": padded, "designs": designs, "rows": rows, "columns": columns, "trials": trials}
        program, runs = _run_grid(method, params, over, **sizes), tasks * designs
        where = f", {_chip_words(over)}" if mesh.size > 1 else ""
        words = f"{name}, {runs} runs of {trials} trials, tables of {rows:,} rows{where}"
        yield Workload(words, 0, program, runs=runs)


def suggestion_workloads(names: Sequence[str], runs: Sequence[int], history: int) -> Iterator[Workload]:
    """Yields the values of 512 candidates by each method for each number of runs, which share what was learned."""
    for name, n in product(names, runs):
        method, key = find(name).make(), jax.random.key(0)
        shaped = partial(jax.tree.map, lambda a, n=n: jax.ShapeDtypeStruct((n, *a.shape), a.dtype))
        x, zeros, where = jnp.zeros((history, _COLUMNS)), jnp.zeros(history), jnp.ones(history, bool)
        trials = History(x, zeros, jnp.zeros(history, jnp.int32), where)
        candidates = Candidates(jnp.zeros((CANDIDATES, _COLUMNS)), jnp.ones(CANDIDATES, bool))
        function = jax.jit(jax.vmap(method.acquire, in_axes=(None, 0, 0, 0)))
        program = function, (_abstract_fit(method, _COLUMNS), *map(shaped, (trials, candidates, key)))
        yield Workload(f"suggestion of {name}, {n} runs, history {history}", 0, program, runs=n)


def _fine_tuning(model: ModelConfig, runs: int, history: int) -> Program:
    """Returns a function that fine-tunes several runs side by side."""
    config = replace(PAPER_FINE_TUNING, epochs=_EPOCHS)
    x, y = jnp.ones((runs, history, _COLUMNS)), jnp.broadcast_to(jnp.linspace(1.0, 0.0, history), (runs, history))
    level = jnp.broadcast_to(jnp.arange(history, dtype=jnp.int32), (runs, history))
    keys = jax.random.split(jax.random.key(0), runs)
    function = jax.jit(jax.vmap(partial(fine_tune, model, config), in_axes=(None, 0, 0, 0, 0, 0)))
    return function, (ours.parameters(model, _COLUMNS), x, y, level, jnp.ones((runs, history), bool), keys)


def _meta_training(model: ModelConfig, lists: int, mesh: Mesh | None = None, *, streamed: bool = False) -> Program:
    config, tasks, key = ours.meta_config(lists), ours.random_tasks(5, 200, _COLUMNS), jax.random.key(0)
    feed: Feed = StreamedFeed(model, config, key, None, tasks) if streamed else ResidentFeed(None, tasks)
    source = next(feed.portions([(0, _STEPS)]))
    return train, (model, config, source, start(model, config, _COLUMNS, key), key, _STEPS, mesh)


def _run_grid(
    method: Method, params: Any, mesh: Mesh, *, tasks: int, rows: int, columns: int, trials: int, designs: int
) -> Program:
    """Returns all trials of runs as a TPU computes them, shared over the mesh.

    Each task has parameters of its own, of the shapes of ``params``.
    """
    by_task = NamedSharding(mesh, PartitionSpec("tasks"))
    n_designs = -(-designs // mesh.shape["designs"]) * mesh.shape["designs"]

    def shaped(tree: Any) -> Any:
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct((tasks, *a.shape), a.dtype, sharding=by_task), tree)

    table = SearchTask(
        jnp.zeros((rows, columns)), jnp.zeros(rows), jnp.zeros(rows, jnp.int32), jnp.ones(rows, bool), jnp.zeros(rows)
    )
    design_rows = jax.ShapeDtypeStruct((n_designs, ours.DESIGN), jnp.int32)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), n_designs))
    side_by_side = not runs_sequentially(method, "tpu", columns, ours.DESIGN + trials - 1)
    config = GridConfig(trials, mesh, side_by_side, params_by_task=True, single_loop=True)
    counts = jax.ShapeDtypeStruct((*mesh.devices.shape, 2), jnp.int32)
    return grid, (method, *map(shaped, (params, table, design_rows, keys)), counts, config)


def _abstract_fit(method: Any, columns: int) -> Any:
    """Returns shapes of what a method learns from past tasks of so many columns; it is fitted only where it must be."""
    if members := members_of(method):
        return tuple(_abstract_fit(member, columns) for member in members)
    space, key = SearchSpace("past", train=ours.random_tasks(50, 120, columns)), jax.random.key(0)
    if hasattr(method, "rows"):  # NumPy draws them
        return jax.eval_shape(partial(fit_sources, method.fitting), source_tasks(space, method.rows, key))
    if hasattr(method, "training") and hasattr(method, "model"):  # an ensemble, which a loop on the host trains
        return jax.eval_shape(partial(init, method.model, columns), key)
    try:
        return jax.eval_shape(lambda: method.fit(space, key))
    except jax.errors.TracerArrayConversionError:  # a fit that is NumPy's in part; the shapes are those of few tasks
        params = method.fit(SearchSpace("past", train=ours.random_tasks(4, 30, columns)), key)
        return jax.eval_shape(lambda: params)


def _chip_words(mesh: Mesh) -> str:
    return f"{'x'.join(map(str, mesh.devices.shape))} chips"


def _count_words(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
