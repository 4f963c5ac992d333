"""A PyTorch peer at work in a process of its own: `benchmarks.suite.peers` tells it what to do, and how much."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks import torch_best_search as search
from benchmarks.suite.children import peak_bytes
from benchmarks.suite.peers import Said, Work
from benchmarks.torch_best import Layout, Trainer
from benchmarks.torch_reference import (
    LIBRARY,
    REFERENCE,
    Batch,
    Ensemble,
    Table,
    adam,
    draw_lists,
    fine_tune,
    tensors,
    train_step,
)
from benchmarks.torch_search import expected_improvement, rank
from benchmarks.torch_weights import host_tree
from dre_jax.data import Task
from dre_jax.model import ModelConfig, preset

Doing = Callable[[int], Any]

_RATE = 1e-3
_TASKS, _ROWS = 30, 300  # of the meta-training data
_WARM_UP = 50  # a block of the fast peer


def answers(work: Work, amounts: Iterator[int]) -> Iterator[Said]:
    """When the work is ready, then the time of each amount of it, in epochs or steps."""
    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    if work.device != "cpu" and work.peer == "eager":  # which names no device of its own
        torch.set_default_device(work.device)
    begun = time.perf_counter()
    do, note = prepare(work)
    yield Said(time.perf_counter() - begun, note=note)
    on_cpu = work.device == "cpu"
    synchronise = (lambda: None) if on_cpu else torch.cuda.synchronize
    for amount in amounts:
        synchronise()
        begun = time.perf_counter()
        do(amount)
        synchronise()
        seconds = time.perf_counter() - begun
        yield Said(seconds, peak_bytes() if on_cpu else torch.cuda.max_memory_allocated())


def prepare(work: Work) -> tuple[Doing, str]:
    """What does the work, warmed up; and a note."""
    if work.peer == "eager":
        do = eager_trial(work) if work.kind == "trial" else eager_meta_training(work)
        do(1)
        return do, ""
    note = ""
    if work.compiled:
        try:
            do = best(work, compiled=True)
            do(_WARM_UP)
            return do, ""
        except Exception as error:  # whatever a compiler that is missing or unfit does
            note = f"torch.compile failed ({type(error).__name__}), so not compiled"
    do = best(work, compiled=False)
    do(_WARM_UP)
    return do, note


def model_of(work: Work) -> ModelConfig:
    """With so many members."""
    return replace(preset(work.preset), members=work.members)


def task(n_rows: int, work: Work, seed: int) -> Task:
    """A random task: speed does not depend on the values."""
    rng = np.random.default_rng(seed)
    return Task(f"task-{seed}", rng.random((n_rows, work.columns), np.float32), rng.random(n_rows))


def tables_of(work: Work) -> list[Task]:
    """A task a run, or those of meta-training."""
    if work.kind == "trial":
        return [task(work.history + work.candidates, work, seed) for seed in range(work.runs)]
    return [task(_ROWS, work, seed) for seed in range(_TASKS)]


def eager_trial(work: Work) -> Doing:
    """Fine-tuning and a suggestion by the plain peer, runs in turn."""
    decisions = LIBRARY if work.preset == "default" else REFERENCE
    ensemble = Ensemble(model_of(work), work.columns, decisions.response_scale)
    generator = torch.Generator(device=work.device).manual_seed(0)
    tables = [tensors(one) for one in tables_of(work)]

    def one(table: Table, epochs: int) -> int:
        history = Table(*(field[: work.history] for field in table))
        tuned = fine_tune(ensemble, history, decisions, generator=generator, epochs=epochs, learning_rate=_RATE)
        incumbent = history.x[history.level.argmin()]
        everyone = torch.cat([table.x[work.history :], incumbent[None]])
        with torch.no_grad():
            scores = tuned([Batch(history.x[None], history.y[None], everyone[None], torch.zeros(1, 0))])
        values = expected_improvement(rank(torch.cat(scores).cpu().numpy()), decisions.logarithm)
        return int(values.argmax())

    return lambda epochs: [one(table, epochs) for table in tables]


def eager_meta_training(work: Work) -> Doing:
    """Steps of the plain peer."""
    decisions = LIBRARY if work.preset == "default" else REFERENCE
    ensemble = Ensemble(model_of(work), work.columns, decisions.response_scale)
    generator = torch.Generator(device=work.device).manual_seed(0)
    tables = [tensors(one) for one in tables_of(work)]
    optimiser = adam(ensemble, _RATE)
    draws = work.members if decisions.lists == "own" else 1

    def steps(count: int) -> None:
        for _ in range(count):
            batches = [draw_lists(tables, work.lists, generator) for _ in range(draws)]
            train_step(ensemble, optimiser, batches, decisions, generator)

    return steps


def best(work: Work, *, compiled: bool) -> Doing:
    """The fast peer's trial or steps."""
    model = model_of(work)
    groups = model.members * (work.runs if work.kind == "trial" else 1)
    layout = Layout(model, work.columns, groups)
    flat = layout.pack(host_tree(model, Ensemble(model, work.columns, "support")), device=work.device)
    trainer = Trainer(layout, flat, compiled=compiled, graph=work.device != "cpu")
    return best_trial(work, trainer, flat) if work.kind == "trial" else best_meta_training(work, trainer)


def best_trial(work: Work, trainer: Trainer, flat: torch.Tensor) -> Doing:
    """Runs side by side."""
    x, response, level = stacked(tables_of(work), work.device)
    n = work.history
    histories, candidates = search.Histories(x[:, :n], response[:, :n], level[:, :n]), x[:, n:]
    generator = torch.Generator(device=work.device).manual_seed(0)
    return lambda epochs: search.trial(
        trainer, flat, histories, candidates, epochs=epochs, learning_rate=_RATE, generator=generator
    )


def best_meta_training(work: Work, trainer: Trainer) -> Doing:
    """Each member with lists of its own, or all with the same where they share a deep set."""
    x, response, level = stacked(tables_of(work), work.device, in_order=True)
    tables, rng = search.Histories(x, response, level), np.random.default_rng(0)
    return lambda count: search.meta_train(
        trainer, tables, steps=count, lists_per_step=work.lists, learning_rate=_RATE, rng=rng
    )


def stacked(tasks: list[Task], device: str, *, in_order: bool = False) -> tuple[torch.Tensor, ...]:
    """Tasks side by side: configurations, scaled responses, levels; sorted by response if asked."""
    tables = [tensors(one) for one in tasks]
    if in_order:
        tables = [Table(*(field[t.level.argsort(stable=True)] for field in t)) for t in tables]
    return tuple(torch.stack(fields).to(device) for fields in zip(*tables, strict=True))
