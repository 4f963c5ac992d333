"""What the compiled loops consist of: an epoch of fine-tuning and a step of meta-training, for devices here or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from jax.sharding import Sharding

from benchmarks.suite import ours, programs
from dre_jax import ModelConfig

_EPOCHS, _STEPS = 1013, 53  # unlike any other loop's number of turns


def loops(
    model: ModelConfig,
    runs: Sequence[int],
    lists: Sequence[int],
    histories: Sequence[int] = (105,),
    on: Sharding | None = None,
) -> list[dict[str, Any]]:
    """Kernels, fusions and bytes of an epoch of so many runs side by side, at each history; and of a step.

    Args:
      model: sizes.
      runs: fine-tuning of so many.
      lists: meta-training with so many lists a step.
      histories: trials that fine-tuning knows.
      on: devices, which need not be there; by default the one that is.
    """
    found = []
    for n, history in product(runs, histories):
        jitted, inputs = ours.fine_tuning_program(model, n, history, 16, _EPOCHS)
        counts = programs.loop_body(ours.text_of(jitted, *inputs, on=on), _EPOCHS)
        found.append({"name": f"epoch of fine-tuning, {_counted(n, 'run')}, history {history}", **asdict(counts)})
    for n in lists:
        jitted, inputs = ours.meta_training_program(model, n, 16, _STEPS)
        counts = programs.loop_body(ours.text_of(jitted, *inputs, on=on), _STEPS)
        found.append({"name": f"step of meta-training, {_counted(n, 'list')}", **asdict(counts)})
    return found


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
