"""A PyTorch peer in a process of its own, whose work `benchmarks.suite.peer_timing` decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.peers import torch_best_search as search
from benchmarks.peers.torch_best import Layout, Trainer
from benchmarks.peers.torch_reference import Ensemble, Table, adam, draw_lists, fine_tune, host_tree, suggest, tensors
from benchmarks.peers.torch_reference import train_step as plain_step
from benchmarks.suite.ours import random_tasks
from benchmarks.suite.peer_work import PeerWork
from dre_jax.methods.dre.model.model_config import preset

Doing = Callable[[int], Any]
"""Does so many epochs or steps."""

_RATE = 1e-3
_TASKS, _ROWS = 30, 300  # of the meta-training data
_WARM_UP = 50  # a block of the fast peer
_doing: list[tuple[PeerWork, Doing]] = []


def ready(work: PeerWork) -> tuple[float, str]:
    """Returns the seconds until the work is warm, and a note."""
    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    if work.device != "cpu" and work.peer == "eager":  # which names no device of its own
        torch.set_default_device(work.device)
    begin, note = time.perf_counter(), ""
    if work.peer == "eager":
        do = eager(work)
        do(1)
    else:
        try:
            do = best(work)
            do(_WARM_UP)
        except Exception as error:  # whatever a compiler that is missing or unfit does
            if not work.compiled:
                raise
            note = f"torch.compile failed ({type(error).__name__}), so not compiled"
            do = best(replace(work, compiled=False))
            do(_WARM_UP)
    _doing[:] = [(work, do)]
    return time.perf_counter() - begin, note


def go(amount: int) -> float:
    """Returns the seconds of so many epochs or steps."""
    ((work, do),) = _doing
    synchronise = (lambda: None) if work.device == "cpu" else torch.cuda.synchronize
    synchronise()
    begin = time.perf_counter()
    do(amount)
    synchronise()
    return time.perf_counter() - begin


def tables_of(work: PeerWork) -> list[Table]:
    """Returns a task a run, or those of meta-training."""
    n_tasks, rows = (work.runs, work.history + work.candidates) if work.kind == "trial" else (_TASKS, _ROWS)
    return [tensors(task) for task in random_tasks(n_tasks, rows, work.columns).values()]


def eager(work: PeerWork) -> Doing:
    """The plain peer: fine-tuning and a suggestion, runs in turn; or steps."""
    model, is_published = replace(preset(work.preset), members=work.members), work.preset == "paper"
    ensemble = Ensemble(model, work.columns, published=is_published)
    generator = torch.Generator(device=work.device).manual_seed(0)
    tables, optimiser = tables_of(work), adam(ensemble, _RATE)
    draws = 1 if is_published else work.members

    def trial(epochs: int) -> None:
        for table in tables:
            history = Table(*(field[: work.history] for field in table))
            tuned_ensemble = fine_tune(ensemble, history, generator=generator, epochs=epochs, learning_rate=_RATE)
            incumbent = history.x[history.level.argmin()]
            suggest(tuned_ensemble, history, incumbent, table.x[work.history :], generator)

    def steps(count: int) -> None:
        for _ in range(count):
            batches = [draw_lists(tables, work.lists, generator) for _ in range(draws)]
            plain_step(ensemble, optimiser, batches, generator)

    return trial if work.kind == "trial" else steps


def best(work: PeerWork) -> Doing:
    """The fast peer: a trial of runs side by side; or steps, each member with lists of its own or all with the same."""
    model = replace(preset(work.preset), members=work.members)
    layout = Layout(model, work.columns, model.members * (work.runs if work.kind == "trial" else 1))
    flat = layout.pack(host_tree(model, Ensemble(model, work.columns)), device=work.device)
    trainer = Trainer(layout, flat, compiled=work.compiled, graph=work.device != "cpu")
    tables = search.Histories(*(torch.stack(part).to(work.device) for part in zip(*tables_of(work), strict=True)))
    if work.kind == "meta-train":
        tables, rng = search.sort_histories(tables), np.random.default_rng(0)
        return lambda count: search.meta_train(
            trainer, tables, steps=count, lists_per_step=work.lists, learning_rate=_RATE, rng=rng
        )
    n, generator = work.history, torch.Generator(device=work.device).manual_seed(0)
    histories = search.Histories(*(part[:, :n] for part in tables))
    return lambda epochs: search.trial(
        trainer, flat, histories, tables.x[:, n:], epochs=epochs, learning_rate=_RATE, generator=generator
    )
