"""Hold-outs of past tasks: what a prior is trained on, and the histories that say how long (and how far to trust it).

Three tasks and more are held out whole, in as many groups as there are folds. Of one or two, which leave no other task
to learn from, half of each one's trials are held out: the later ones, the earlier, and every other one. The trials that
were learned from are then the history's context: what counts is how well the rest is predicted from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.data import Task
from dre_jax.data.sampling import TaskSpans
from dre_jax.data.tasks import TaskTable, build_table, sort_task

Mask = npt.NDArray[np.bool_]
_FEW = 2  # tasks, of which none can be held out whole
_SPLITS = 4  # ways of halving a task's trials


class HeldOut(NamedTuple):
    """Histories of held-out trials, H of each of K folds, n slots each. Rows are numbers in the table."""

    rows: Array
    """i32[K, H, n]"""
    where: Array
    """bool[K, H, n]: which slots are filled."""
    context: Array
    """bool[K, H, n]: which of the trials were learned from."""


class HeldOutEvidence(NamedTuple):
    """What held-out trials say of the priors; all zero where the number of steps was given."""

    folds: Array
    """i32: hold-outs."""
    tasks: Array
    """i32: past tasks."""
    by_rows: Array
    """bool: whether halves of tasks were held out, not tasks."""
    learned: Array
    """Log evidence a trial with the number of steps that was chosen, the mean over tasks."""
    plain: Array
    """The same of processes that know nothing of the past (`learned_prior.plain_priors`)."""


class Folds(NamedTuple):
    """Past tasks laid out for K folds and J members, in one table."""

    table: TaskTable
    """All tasks, then the halves of tasks that folds learn from, if any; responses as they are."""
    everything: TaskSpans
    """All tasks; J in front."""
    train: TaskSpans
    """What each fold learns from; K in front."""
    held_out: HeldOut
    """What each fold is evaluated on."""
    task: npt.NDArray[np.int32]
    """i32[K, H]: the tasks of these histories."""
    by_rows: bool
    """Whether halves of tasks are held out, not tasks."""


def make_folds(tasks: Mapping[str, Task], *, members: int, folds: int, histories: int, rows: int) -> Folds:
    """Lays past tasks out for training on all of them and on folds.

    Args:
      tasks: past tasks; a task's trials in the order in which they were made.
      members: J.
      folds: K.
      histories: H.
      rows: n, the longest history.

    Raises:
      DataError: as `build_table`.
    """
    count, by_rows = len(tasks), len(tasks) <= _FEW
    halves = _halves(list(tasks.values())) if by_rows else {}
    entries = {
        **{str(i): task for i, task in enumerate(tasks.values())},
        **{f"{i}/{j}": t for (i, j), t in halves.items()},
    }
    table = build_table(entries)
    place = {name: i for i, name in enumerate(entries)}
    groups = min(folds, max(count, 1))
    if by_rows:
        learned = [[place[f"{i}/{j}"] for i in range(count) if (i, j) in halves] for j in _splits(folds)]
    else:
        learned = [[i for i in range(count) if i % groups != j % groups] for j in range(folds)]
    start, size = np.asarray(table.start), np.asarray(table.size)
    random = np.random.default_rng(0)
    orders = [sort_task(task).order for task in tasks.values()] if by_rows else []
    drawn = []
    for j, split in enumerate(_splits(folds)):
        asked = list(range(count)) if by_rows else [i for i in range(count) if i % groups == j % groups]
        for h in range(histories):
            i = asked[h % len(asked)]
            if by_rows:
                one = _halved_history(_learned_half(orders[i], split), rows, random)
            else:
                one = _history(int(size[i]), rows, random, best=h // len(asked) % 2 == 0)
            drawn.append((start[i] + one[0], one[1], one[2], np.int32(i)))
    parts = [np.stack(part).reshape(folds, histories, *np.shape(part[0])) for part in zip(*drawn, strict=True)]
    return Folds(
        table,
        _spans(start, size, [list(range(count))] * members),
        _spans(start, size, learned),
        HeldOut(*jax.device_put((parts[0].astype(np.int32), parts[1], parts[2]))),
        parts[3],
        by_rows,
    )


def _splits(folds: int) -> list[int]:
    return [j % _SPLITS for j in range(folds)]


def _learned_half(order: npt.NDArray[np.int64], split: int) -> Mask:
    """Which trials, by their place in the order they were made in, fold `split` learns from; bool[n]."""
    half: Mask = (order < (len(order) + 1) // 2, order >= (len(order) + 1) // 2, order % 2 == 0, order % 2 == 1)[split]
    return half


def _halves(tasks: Sequence[Task]) -> dict[tuple[int, int], Task]:
    """The halves of tasks that have trials, by task and split."""
    found = {}
    for i, task in enumerate(tasks):
        for j in range(_SPLITS):
            kept = _learned_half(np.arange(task.n_rows), j)
            if kept.any():
                found[i, j] = replace(task, X=task.X[kept], y=task.y[kept])
    return found


def _spans(start: npt.NDArray[np.int32], size: npt.NDArray[np.int32], chosen: Sequence[Sequence[int]]) -> TaskSpans:
    """The spans of chosen tasks, as many slots in each as the table has tasks; empty slots have no rows."""
    starts, sizes = (np.zeros((len(chosen), len(start)), np.int32) for _ in range(2))
    for j, one in enumerate(chosen):
        starts[j, : len(one)], sizes[j, : len(one)] = start[list(one)], size[list(one)]
    return TaskSpans(*jax.device_put((starts, sizes, np.array([len(one) for one in chosen], np.int32))))


def _history(
    size: int, rows: int, random: np.random.Generator, *, best: bool
) -> tuple[npt.NDArray[np.int64], Mask, Mask]:
    """Trials of a held-out task: as many as chance says, of any rows or the best of those drawn."""
    most = min(size, rows)
    count = int(random.integers(min(4, most), most + 1))
    drawn = np.sort(random.choice(size, most if best else count, replace=False))[:count]
    return _slots(drawn, np.zeros(count, np.bool_), rows)


def _halved_history(learned: Mask, rows: int, random: np.random.Generator) -> tuple[npt.NDArray[np.int64], Mask, Mask]:
    """Trials of a task of which one half was learned from, and is the context of the other."""
    sides = []
    for side in (np.flatnonzero(learned), np.flatnonzero(~learned)):
        most = min(len(side), rows // 2)
        count = int(random.integers(min(2, most), most + 1))
        sides.append(random.choice(side, count, replace=False))
    drawn = np.sort(np.concatenate(sides))
    return _slots(drawn, learned[drawn], rows)


def _slots(drawn: npt.NDArray[np.int64], context: Mask, rows: int) -> tuple[npt.NDArray[np.int64], Mask, Mask]:
    empty = (0, rows - len(drawn))
    return np.pad(drawn, empty), np.arange(rows) < len(drawn), np.pad(context, empty)
