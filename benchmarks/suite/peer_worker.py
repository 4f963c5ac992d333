"""A process that does a PyTorch peer's work on demand: ``python -m benchmarks.suite.peer_worker``.

The first line of standard input is the work as JSON. Each further line is a number of epochs or steps; its answer is
the seconds that they took. All answers are lines of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.suite.memory import peak_bytes
from benchmarks.suite.work import Work
from dre_jax.data import Task
from dre_jax.model import ModelConfig
from dre_jax.model import preset as model_preset

Doing = Callable[[int], Any]

_RATE = 1e-3
_TASKS, _ROWS = 30, 300  # of the meta-training data
_WARM_UP = 50  # a block of the fast peer


def main() -> None:
    """Serves one piece of work."""
    answers = os.fdopen(os.dup(1), "w")  # what PyTorch's compiler prints goes to standard error
    os.dup2(2, 1)
    work = Work(**json.loads(sys.stdin.readline()))
    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    if work.device != "cpu" and work.peer == "eager":  # which names no device of its own
        torch.set_default_device(work.device)
    begun = time.perf_counter()
    do, note = prepare(work)
    answer(answers, first_s=time.perf_counter() - begun, note=note)
    for line in sys.stdin:
        seconds = timed(do, int(line), work.device)
        answer(answers, seconds=seconds, peak=peak(work.device))


def answer(stream: Any, **values: Any) -> None:
    stream.write(json.dumps(values) + "\n")
    stream.flush()


def timed(do: Doing, count: int, device: str) -> float:
    """Seconds of so many epochs or steps."""
    synchronise = torch.cuda.synchronize if device != "cpu" else (lambda: None)
    synchronise()
    begun = time.perf_counter()
    do(count)
    synchronise()
    return time.perf_counter() - begun


def peak(device: str) -> int:
    """Most memory that this process has had; on a GPU that of its arrays there."""
    return peak_bytes() if device == "cpu" else torch.cuda.max_memory_allocated()


def prepare(work: Work) -> tuple[Doing, str]:
    """What does the work, warmed up; and a note."""
    if work.peer == "eager":
        do = eager_trial(work) if work.kind == "trial" else eager_meta_training(work)
        do(1)
        return do, ""
    if not work.compiled:
        do = best(work, compiled=False)
        do(_WARM_UP)
        return do, ""
    try:
        do = best(work, compiled=True)
        do(_WARM_UP)
        return do, ""
    except Exception as error:  # whatever a compiler that is missing or unfit does
        do = best(work, compiled=False)
        do(_WARM_UP)
        return do, f"torch.compile failed ({type(error).__name__}), so not compiled"


def model_of(work: Work) -> ModelConfig:
    return replace(model_preset(work.preset), members=work.members)


def task(n_rows: int, work: Work, seed: int) -> Task:
    """A random task: speed does not depend on the values."""
    rng = np.random.default_rng(seed)
    return Task(f"task-{seed}", rng.random((n_rows, work.columns), np.float32), rng.random(n_rows))


def eager_trial(work: Work) -> Doing:
    """Fine-tuning and a suggestion by the plain peer, runs in turn."""
    from benchmarks.torch_reference import LIBRARY, REFERENCE, Batch, Ensemble, Table, fine_tune, tensors
    from benchmarks.torch_search import expected_improvement, rank

    decisions = LIBRARY if work.preset == "default" else REFERENCE
    ensemble = Ensemble(model_of(work), work.columns, decisions.response_scale)
    generator = torch.Generator(device=work.device).manual_seed(0)
    tables = [tensors(task(work.history + work.candidates, work, seed)) for seed in range(work.runs)]

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
    from benchmarks.torch_reference import LIBRARY, REFERENCE, Ensemble, adam, draw_lists, tensors, train_step

    decisions = LIBRARY if work.preset == "default" else REFERENCE
    ensemble = Ensemble(model_of(work), work.columns, decisions.response_scale)
    generator = torch.Generator(device=work.device).manual_seed(0)
    tables = [tensors(task(_ROWS, work, seed)) for seed in range(_TASKS)]
    optimiser = adam(ensemble, _RATE)
    draws = work.members if decisions.lists == "own" else 1

    def steps(count: int) -> None:
        for _ in range(count):
            batches = [draw_lists(tables, work.lists, generator) for _ in range(draws)]
            train_step(ensemble, optimiser, batches, decisions, generator)

    return steps


def best(work: Work, *, compiled: bool) -> Doing:
    """The fast peer's trial or steps."""
    from benchmarks.torch_best import Layout, Trainer
    from benchmarks.torch_reference import Ensemble
    from benchmarks.torch_weights import host_tree

    model = model_of(work)
    groups = model.members * (work.runs if work.kind == "trial" else 1)
    layout = Layout(model, work.columns, groups)
    flat = layout.pack(host_tree(model, Ensemble(model, work.columns, "support")), device=work.device)
    trainer = Trainer(layout, flat, compiled=compiled, graph=work.device != "cpu")
    return best_trial(work, trainer, flat) if work.kind == "trial" else best_meta_training(work, trainer)


def best_trial(work: Work, trainer: Any, flat: torch.Tensor) -> Doing:
    from benchmarks import torch_best_search as search

    tables = [task(work.history + work.candidates, work, seed) for seed in range(work.runs)]
    x, response, level = _stacked(tables, work.device)
    n = work.history
    histories, candidates = search.Histories(x[:, :n], response[:, :n], level[:, :n]), x[:, n:]
    generator = torch.Generator(device=work.device).manual_seed(0)

    def one(epochs: int) -> torch.Tensor:
        return search.trial(
            trainer, flat, histories, candidates, epochs=epochs, learning_rate=_RATE, generator=generator
        )

    return one


def best_meta_training(work: Work, trainer: Any) -> Doing:
    from benchmarks import torch_best_search as search

    tables = search.Tables(*_stacked([task(_ROWS, work, seed) for seed in range(_TASKS)], work.device, in_order=True))
    rng = np.random.default_rng(0)

    def steps(count: int) -> None:
        search.meta_train(trainer, tables, steps=count, lists_per_step=work.lists, learning_rate=_RATE, rng=rng)

    return steps


def _stacked(tasks: list[Task], device: str, *, in_order: bool = False) -> tuple[torch.Tensor, ...]:
    """Tasks side by side: configurations, scaled responses, levels; sorted by response if asked."""
    from benchmarks.torch_reference import tensors

    tables = [tensors(one) for one in tasks]
    if in_order:
        tables = [type(t)(*(field[t.level.argsort(stable=True)] for field in t)) for t in tables]
    return tuple(torch.stack(fields).to(device) for fields in zip(*tables, strict=True))


if __name__ == "__main__":
    main()
