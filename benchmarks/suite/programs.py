"""Programs as XLA compiles them, for devices that are here or only described: which programs, and what they consist of.

The bodies of the two loops (an epoch of fine-tuning, a step of meta-training), and work shared out over a mesh.
Kernels, bytes and exchanges are counted in a program's HLO text. Arrays are shapes where nothing has to be computed.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from benchmarks.suite import ours
from dre_jax import ModelConfig
from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.methods.dre.mesh import LISTS, MEMBERS
from dre_jax.methods.dre.steps import start, train
from dre_jax.methods.dre.stream import Feed, ResidentFeed, StreamedFeed
from dre_jax.methods.dre.tpu import layout_of, passes
from dre_jax.methods.dre.training_config import PAPER_FINE_TUNING
from dre_jax.runtime.devices import dividing_shape, make_mesh
from dre_jax.search.grid import DESIGNS, TASKS, GridConfig, grid
from dre_jax.search.loop import SearchTask
from dre_jax.search.method import Method, runs_sequentially

_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "iota"}
_FREE |= {"partition-id", "replica-id", "opt-barrier", "async-done"}
_COLLECTIVES = {"all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute"}
_SLICES = ("dynamic-slice", "gather")
_NAME = r"%?([\w.\-]+)"
_HEADER = re.compile(rf"^(ENTRY )?{_NAME} \(.*\) -> .* \{{$")
_INSTRUCTION = re.compile(rf"^\s+(?:ROOT )?{_NAME} = (.*)$")
_OPCODE = re.compile(r"\s([a-z][a-z\-]*)\(")
_CALLED = re.compile(rf"(?:to_apply|calls|true_computation|false_computation|body)={_NAME}")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?\s*:?\s*=?\s*\{\s*"?n"?\s*[:=]\s*"?(\d+)')
_CYCLES = re.compile(r'"estimated_cycles":"(\d{1,15})"')
_NAMES_MEMORY = re.compile(r'custom_call_target="(AllocateBuffer|ConcatBitcast)"')  # a TPU's
_OWN_KERNEL = 'custom_call_target="tpu_custom_call"'
_WIDTH = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "f32": 4}
_WIDTH |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "s4": 1, "u4": 1}
_ARRAY = re.compile(r"\b([a-z]+[0-9]*)\[([0-9,]*)\](?:\{([0-9,]*)(?::([^}]*))?\})?")


class Counts(NamedTuple):
    """Launches of a computation."""

    kernels: int = 0
    """Everything but what only names memory."""
    collectives: int = 0
    """Exchanges between devices."""
    bytes: int = 0
    """Results and operands in the device's main memory, with the padding of tiles; of a sliced operand, the slice."""
    cycles: int = 0
    """The sum of what the compiler estimates, kernel by kernel, where it does."""


def _sum(counts: Iterable[Counts], times: float = 1) -> Counts:
    return Counts(*(math.ceil(times * sum(column)) for column in zip(Counts(), *counts, strict=True)))


class Instruction(NamedTuple):
    name: str
    opcode: str
    padded: int
    """Bytes of its result, with the padding of tiles."""
    main: int
    """Of these, the bytes in main memory."""
    operands: tuple[str, ...]
    called: tuple[str, ...]
    """Computations that it runs; of a loop, its body."""
    text: str


class Module(NamedTuple):
    computations: dict[str, list[Instruction]]
    entry: str
    arrays: dict[str, Instruction]
    """All instructions by name, which is unique."""


def parse(text: str) -> Module:
    """Returns a module as ``compiled.as_text()`` prints it.

    Raises:
      ValueError: if the module has no entry.
    """
    computations: dict[str, list[Instruction]] = {}
    entry, current = "", list[Instruction]()
    for line in text.splitlines():
        if header := _HEADER.match(line):
            current = computations[header.group(2)] = []
            entry = header.group(2) if header.group(1) else entry
        elif instruction := _INSTRUCTION.match(line):
            current.append(_instruction(*instruction.groups()))
    if not entry:
        raise ValueError("a module with an entry is needed, but got one without")
    return Module(computations, entry, {one.name: one for part in computations.values() for one in part})


def _instruction(name: str, text: str) -> Instruction:
    at = _OPCODE.search(" " + text)
    result, after = (text[: at.start()], text[at.end() - 1 :]) if at else (text, "")
    inside = after.split(")", 1)[0]
    operands = re.findall(r"%([\w.\-]+)", inside) or re.findall(r"([\w.\-]+)(?:,|$)", inside)
    branches = [branch for part in _BRANCHES.findall(after) for branch in re.findall(_NAME, part)]
    opcode = "bitcast" if _NAMES_MEMORY.search(after) else at.group(1) if at else "unknown"
    return Instruction(name, opcode, *array_bytes(result), tuple(operands), (*_CALLED.findall(after), *branches), text)


def array_bytes(type_: str) -> tuple[int, int]:
    """Returns the bytes of all arrays that a type names, as they lie in memory, and those in main memory.

    On a TPU the innermost dimension comes in lanes of 128. ``S(1)`` is a memory on the chip.

    Example:
      >>> array_bytes("(f32[10,17,32]{2,1,0:T(8,128)}, f32[10,17,32]{2,1,0:T(8,128)S(1)}, pred[], s32[3])")
      (245773, 122893)
    """
    padded = main = 0
    for kind, sizes, order, tiling in _ARRAY.findall(type_):
        shape, tile = _numbers(sizes), re.search(r"T\(([0-9,]+)\)", tiling)
        from_innermost = [shape[i] for i in _numbers(order)] if order else shape[::-1]
        inner = _numbers(tile.group(1))[::-1] if tile and shape else []
        from_innermost += [1] * (len(inner) - len(from_innermost))
        tiled = [-(-size // part) * part for size, part in zip(from_innermost, inner, strict=False)]
        size = _WIDTH.get(kind, 0) * math.prod([*tiled, *from_innermost[len(inner) :]])
        padded += size
        main += 0 if re.search(r"S\([1-9]", tiling) else size
    return padded, main


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]


def loop_body(text: str, turns: int) -> Counts:
    """Returns the launches of one of so many turns of a loop; of a body of several turns its share, rounded up.

    Where the compiler does not tell the number of turns, or has several loops of that number, the largest body counts.
    A kernel of the library's own is all turns at once; its inputs and results count wherever they lie.

    Raises:
      ValueError: if there is no loop.
    """
    if _OWN_KERNEL in text:
        module = parse(text)
        own = [one for one in module.arrays.values() if _OWN_KERNEL in one.text]
        arrays = [array for one in own for array in (one, *(module.arrays[operand] for operand in one.operands))]
        return Counts(kernels=len(own), bytes=-(-sum(array.padded for array in arrays) // turns))
    module = parse(text)
    loops = [one for one in module.arrays.values() if one.opcode == "while"]
    if not loops:
        raise ValueError("a program with a loop is needed, but got one without")
    trips = [_TRIPS.search(loop.text) for loop in loops]
    unrolled = {
        n: [loop for loop, t in zip(loops, trips, strict=True) if t and int(t[1]) == turns // n] for n in (1, 2, 4)
    }
    n, candidates = next(((n, found) for n, found in unrolled.items() if found), (1, loops))
    bodies = (_count(module, loop.called[-1]) for loop in candidates)
    return _sum([max(bodies, key=lambda counts: counts.kernels)], 1 / n)


def _count(module: Module, name: str) -> Counts:
    """Returns the launches of a computation: a turn of each loop inside, and of branches the longest."""
    counts = []
    for one in _launched(module, name):
        if one.opcode == "while":
            counts.append(_count(module, one.called[-1]))
        elif one.opcode == "conditional":
            counts.append(max((_count(module, part) for part in one.called), key=lambda branch: branch.kernels))
        else:
            counts.append(_launch(module, one))
    return _sum(counts)


def _launched(module: Module, name: str) -> Iterator[Instruction]:
    """Yields kernels, loops and branches, also those of computations that are called."""
    for one in module.computations[name]:
        if one.opcode in ("call", "async-start"):
            for part in one.called:
                yield from _launched(module, part)
        elif one.opcode not in _FREE and not one.opcode.endswith("-start"):
            yield one


def _launch(module: Module, one: Instruction) -> Counts:
    """Returns the counts of a kernel; an asynchronous one counts where it is done, with its result read and written."""
    what = one.opcode.removesuffix("-done")
    moved = one.padded if what != one.opcode else one.main + sum(_reads(module, one))
    return Counts(1, what in _COLLECTIVES, moved, sum(map(int, _CYCLES.findall(one.text))))


def _reads(module: Module, one: Instruction) -> Iterator[int]:
    """Yields the bytes of each operand that a kernel reads from main memory: of an array that it slices, the slice."""
    inside = [inner for part in one.called if one.opcode == "fusion" for inner in module.computations.get(part, [])]
    for i, operand in enumerate(one.operands):
        if (whole := module.arrays.get(operand)) is None:
            continue
        names = {inner.name for inner in inside if inner.opcode == "parameter" and inner.operands == (str(i),)}
        users = [inner for inner in inside if names & set(inner.operands)]
        if one.opcode in _SLICES and i == 0:
            users = [one]
        elif not all(user.opcode in _SLICES and user.operands[0] in names for user in users):
            users = []
        part = sum(user.padded for user in users) if users else whole.padded
        yield min(whole.padded, part) if whole.main else 0


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
    """Of that loop; 0 for a program that is described as a whole, with a turn of each loop."""
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
    if workload.turns:
        counts: dict[str, Any] = loop_body(text, workload.turns)._asdict()
        if _OWN_KERNEL in text:  # it is called run by run
            counts["bytes"] *= workload.runs or 1
    else:
        module = parse(text)
        counts = _count(module, module.entry)._asdict()
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


def _chip_words(mesh: Mesh) -> str:
    return f"{'x'.join(map(str, mesh.devices.shape))} chips"


def _count_words(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
