"""The bodies of the compiled loops: an epoch of fine-tuning and a step of meta-training, for devices here or not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from benchmarks.suite import ours, programs
from benchmarks.suite.serial import serial
from dre_jax import ModelConfig
from dre_jax.methods.dre.mesh import LISTS, MEMBERS
from dre_jax.methods.dre.tpu import layout_of, passes
from dre_jax.runtime.devices import dividing, make_mesh
from dre_jax.search.grid import DESIGNS, TASKS

_EPOCHS, _STEPS = 1013, 53  # unlike any other loop's number of turns
_COLUMNS = 16


@dataclass(frozen=True)
class Loop:
    """A program that is mostly one loop."""

    name: str
    """Of a turn."""
    turns: int
    """0 for a program that is described as a whole, its loops once."""
    program: ours.Program
    runs: int | None = None
    """Fine-tuned side by side."""
    lists: int | None = None
    """Of a training step."""
    walks: int = 0
    """How often a turn goes through the library's own kernel, where it is used."""
    on: Sharding | None = None
    """Where its arrays lie, if it is not compiled for the devices that all are."""


def loops(
    model: ModelConfig,
    runs: Sequence[int],
    lists: Sequence[int],
    histories: Sequence[int] = (105,),
    *,
    streamed: bool = False,
) -> Iterator[Loop]:
    """An epoch of so many runs side by side, at each history; and a step of so many lists, streamed or not."""
    for n, history in product(runs, histories):
        name = f"epoch of fine-tuning, {_counted(n, 'run')}, history {history}"
        layout = layout_of(model, _COLUMNS)
        walks = n * passes(layout, layout.groups(model.members), history)
        program = ours.fine_tuning_program(model, n, history, _COLUMNS, _EPOCHS)
        yield Loop(name, _EPOCHS, program, runs=n, walks=walks)
    for n in lists:
        name = f"step of meta-training, {_counted(n, 'list')}"
        yield Loop(name, _STEPS, ours.meta_training_program(model, n, _COLUMNS, _STEPS, streamed=streamed), lists=n)


def on_meshes(model: ModelConfig, mesh: Mesh, lists: int, runs: int, rows: int) -> Iterator[Loop]:
    """Work shared out over chips: members and lists of a training step; and runs through their first four trials.

    Where members or lists are not divided by the mesh, a step is laid out as the library does it on so many chips.
    """
    shape = mesh.devices.shape
    if model.members % shape[0] or lists % shape[1]:
        shape = dividing(mesh.size, model.members, lists)
    over = make_mesh(mesh.devices.flat, shape, (MEMBERS, LISTS))
    steps = ours.meta_training_program(model, lists, _COLUMNS, _STEPS, over)
    name = f"step of meta-training, {_counted(lists, 'list')}, {chips_of(over)}"
    yield Loop(name, _STEPS, steps, lists=lists, on=NamedSharding(over, PartitionSpec()))
    asked, sizes = ours.method(model, 1000), {"rows": rows, "columns": _COLUMNS, "trials": 4}
    over = Mesh(mesh.devices, (TASKS, DESIGNS))
    params = ours.parameters(model, _COLUMNS)
    grid = ours.grid_program(asked, params, over, tasks=runs, designs=mesh.devices.shape[1], **sizes)
    runs *= mesh.devices.shape[1]
    yield Loop(f"{_counted(runs, 'run')} of 4 trials, {chips_of(over)}", 0, grid, runs=runs)


def chips_of(mesh: Mesh) -> str:
    """The shape of a mesh in words."""
    return f"{'x'.join(map(str, mesh.devices.shape))} chips"


def turn_of(loop: Loop, on: Sharding | None = None) -> dict[str, Any]:
    """Kernels, fusions and bytes of a turn, and what compiling took.

    The devices that it is compiled for need not be there; by default the one that is.
    """
    compiled, took = compile_for(loop.program, loop.on or on)
    text = str(compiled.as_text())
    counts = asdict(programs.loop_body(text, loop.turns)) if loop.turns else _whole(text)
    if loop.turns and programs.has_kernel(text):  # it is called run by run
        counts |= {name: value * (loop.runs or 1) for name, value in counts.items() if name.endswith("bytes")}
    memory = compiled.memory_analysis()
    temporary = {"temporary_bytes": memory.temp_size_in_bytes if memory else None}
    return {"name": loop.name, "runs": loop.runs, "lists": loop.lists, **took, **temporary, **counts}


def _whole(text: str) -> dict[str, Any]:
    """Counts of a whole program, and what it does one after the other."""
    found = serial(text)
    chain = {
        "chain": found.total("kernels"),
        "factorisations": found.total("factorisations"),
        "loops_inside": str(found),
    }
    return {**asdict(programs.whole(text)), "cycles": found.total("cycles"), **chain}


def compile_for(program: ours.Program, on: Sharding | None = None) -> tuple[Any, dict[str, float]]:
    """A program, compiled for its inputs, or for such inputs on devices that need not be there; and what it took.

    The seconds that processors spent have the tracing in them; they tell more where a machine is busy.
    """
    jitted, inputs = program
    if on is not None:
        inputs = tuple(_described(one, on) for one in inputs)
    spent = time.process_time()
    lowered = jitted.lower(*inputs)
    begun = time.perf_counter()
    compiled = lowered.compile()
    took = {"compile_s": time.perf_counter() - begun, "compile_cpu_s": time.process_time() - spent}
    return compiled, {name: round(value, 1) for name, value in took.items()}


def _described(tree: Any, on: Sharding) -> Any:
    """Shapes in place of arrays; what is no array stays, and a shape that has its place."""
    leaves, kinds = jax.tree.leaves(tree), (jax.Array, jax.ShapeDtypeStruct)
    if not leaves or not all(isinstance(leaf, kinds) for leaf in leaves):
        return tree

    def at(a: Any) -> jax.ShapeDtypeStruct:
        placed = isinstance(a, jax.ShapeDtypeStruct) and a.sharding is not None
        return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding if placed else on)

    return jax.tree.map(at, tree)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
