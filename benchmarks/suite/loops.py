"""What the compiled loops consist of: an epoch of fine-tuning and a step of meta-training, for devices here or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import jax
from jax.sharding import Sharding

from benchmarks.suite import ours, programs
from dre_jax import ModelConfig

_EPOCHS, _STEPS = 1013, 53  # unlike any other loop's number of turns
_COLUMNS = 16


def loops(
    model: ModelConfig,
    runs: Sequence[int],
    lists: Sequence[int],
    histories: Sequence[int] = (105,),
    on: Sharding | None = None,
) -> list[dict[str, Any]]:
    """Kernels, fusions and bytes of an epoch of so many runs side by side, at each history; and of a step.

    The devices that they are compiled for need not be there; by default the one that is.
    """
    found = []
    for n, history in product(runs, histories):
        program = ours.fine_tuning_program(model, n, history, _COLUMNS, _EPOCHS)
        counts = programs.loop_body(text_of(program, on), _EPOCHS)
        found.append({"name": f"epoch of fine-tuning, {_counted(n, 'run')}, history {history}", **asdict(counts)})
    for n in lists:
        counts = programs.loop_body(text_of(ours.meta_training_program(model, n, _COLUMNS, _STEPS), on), _STEPS)
        found.append({"name": f"step of meta-training, {_counted(n, 'list')}", **asdict(counts)})
    return found


def text_of(program: ours.Program, on: Sharding | None) -> str:
    """The text of a program, compiled for its inputs, or for such inputs on devices that need not be there."""
    jitted, inputs = program
    if on is not None:
        inputs = tuple(_described(one, on) for one in inputs)
    return str(jitted.lower(*inputs).compile().as_text())


def _described(tree: Any, on: Sharding) -> Any:
    """Shapes in place of arrays; what is no array stays."""
    if not jax.tree.leaves(tree) or not all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(tree)):
        return tree
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on), tree)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
