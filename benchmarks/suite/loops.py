"""The bodies of the compiled loops: an epoch of fine-tuning and a step of meta-training, for devices here or not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import jax
from jax.sharding import Mesh, Sharding

from benchmarks.suite import ours, programs
from dre_jax import ModelConfig
from dre_jax.search.grid import DESIGNS, TASKS
from dre_jax.training.lanes import layout_of, passes
from dre_jax.training.mesh import LISTS, MEMBERS

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


def loops(
    model: ModelConfig, runs: Sequence[int], lists: Sequence[int], histories: Sequence[int] = (105,)
) -> Iterator[Loop]:
    """An epoch of so many runs side by side, at each history; and a step of so many lists."""
    for n, history in product(runs, histories):
        name = f"epoch of fine-tuning, {_counted(n, 'run')}, history {history}"
        layout = layout_of(model, _COLUMNS)
        walks = n * passes(layout, layout.groups(model.members), history)
        program = ours.fine_tuning_program(model, n, history, _COLUMNS, _EPOCHS)
        yield Loop(name, _EPOCHS, program, runs=n, walks=walks)
    for n in lists:
        name = f"step of meta-training, {_counted(n, 'list')}"
        yield Loop(name, _STEPS, ours.meta_training_program(model, n, _COLUMNS, _STEPS), lists=n)


def on_meshes(model: ModelConfig, mesh: Mesh, lists: int, runs: int, rows: int) -> Iterator[Loop]:
    """Work shared out over chips: members and lists of a training step; and runs through their first four trials."""
    shape = "x".join(map(str, mesh.devices.shape))
    over = {names: Mesh(mesh.devices, names) for names in ((MEMBERS, LISTS), (TASKS, DESIGNS))}
    steps = ours.meta_training_program(model, lists, _COLUMNS, _STEPS, over[MEMBERS, LISTS])
    yield Loop(f"step of meta-training, {_counted(lists, 'list')}, {shape} chips", _STEPS, steps, lists=lists)
    grid = ours.grid_program(model, over[TASKS, DESIGNS], tasks=runs, rows=rows, columns=_COLUMNS, trials=4)
    yield Loop(f"{_counted(runs, 'run')} of 4 trials, {shape} chips", 0, grid, runs=runs)


def turn_of(loop: Loop, on: Sharding | None = None) -> dict[str, Any]:
    """Kernels, fusions and bytes of a turn, and what compiling took.

    The devices that it is compiled for need not be there; by default the one that is.
    """
    compiled, seconds = compile_for(loop.program, on)
    text = str(compiled.as_text())
    counts = asdict(programs.loop_body(text, loop.turns) if loop.turns else programs.whole(text))
    if loop.turns and programs.has_kernel(text):  # it is called run by run
        counts |= {name: value * (loop.runs or 1) for name, value in counts.items() if name.endswith("bytes")}
    memory = compiled.memory_analysis()
    compiling = {"compile_s": round(seconds, 1), "temporary_bytes": memory.temp_size_in_bytes if memory else None}
    return {"name": loop.name, "runs": loop.runs, "lists": loop.lists, **compiling, **counts}


def compile_for(program: ours.Program, on: Sharding | None = None) -> tuple[Any, float]:
    """A program, compiled for its inputs, or for such inputs on devices that need not be there; and the seconds."""
    jitted, inputs = program
    if on is not None:
        inputs = tuple(_described(one, on) for one in inputs)
    lowered = jitted.lower(*inputs)
    begun = time.perf_counter()
    return lowered.compile(), time.perf_counter() - begun


def _described(tree: Any, on: Sharding) -> Any:
    """Shapes in place of arrays; what is no array stays."""
    if not jax.tree.leaves(tree) or not all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(tree)):
        return tree
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on), tree)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
