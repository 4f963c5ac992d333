"""Folds of past tasks for cross-validation: the training data of priors, and held-out histories.

With three or more tasks, whole tasks are held out, in as many groups as folds. With one or two tasks, half of the
trials of each task is held out: the later half, the earlier half, the odd or the even ones. The training half is then
the context of a held-out history, and the evidence is that of the held-out trials given the context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import jax
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.data import Task
from dre_jax.data.sampling import TaskSpans
from dre_jax.data.tasks import TaskTable, build_table, sort_task

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_MAX_SPLIT_TASKS = 2  # with more tasks, whole tasks are held out
_SPLITS = 4  # ways of halving a task's trials


class HeldOut(NamedTuple):
    """Held-out histories, H of each of K folds, with n slots each."""

    rows: Array
    """i32[K, H, n]: row numbers in the table."""
    where: Array
    """bool[K, H, n]: the filled slots."""
    context: Array
    """bool[K, H, n]: the trials that are also training data."""


class Folds(NamedTuple):
    """Past tasks in one table for J members and K folds."""

    table: TaskTable
    """All tasks, then the training halves of tasks, if any; responses are not scaled."""
    all_tasks: TaskSpans
    """Training data of the members: all tasks; J in front."""
    train: TaskSpans
    """Training data of each fold; K in front."""
    held_out: HeldOut
    """Held-out histories of each fold."""
    task: npt.NDArray[np.int32]
    """i32[K, H]: the tasks of the held-out histories."""
    by_rows: bool
    """Whether halves of tasks are held out instead of tasks."""
    slots: int
    """Number of slots that the longest history of these tasks needs, and up to three more."""

    def mean_a_trial(self, values: Floats) -> float:
        """Returns the mean over tasks of values of held-out histories, f64[K, H], divided by their held-out trials."""
        trials = np.asarray(self.held_out.where) & ~np.asarray(self.held_out.context)
        means = values / np.maximum(np.sum(trials, axis=-1), 1)
        return float(np.mean([np.mean(group) for group in group_by_task(means, self.task)]))


def group_by_task(values: Floats, task: npt.NDArray[np.int32]) -> list[Floats]:
    """Returns the values of histories, f[K, H, ...], grouped by their tasks i32[K, H]."""
    return [values[task == i] for i in np.unique(task)]


def held_out_tasks(count: int, folds: int) -> list[list[int]]:
    """Returns the numbers of the tasks that each of K folds holds out, of three or more; with few tasks folds repeat.

    Example:
      >>> held_out_tasks(5, 4), held_out_tasks(3, 4)
      ([[0, 4], [1], [2], [3]], [[0], [1], [2], [0]])
    """
    groups = min(folds, max(count, 1))
    return [list(range(fold % groups, count, groups)) for fold in range(folds)]


def make_folds(tasks: Mapping[str, Task], *, members: int, folds: int, histories: int, rows: int) -> Folds:
    """Splits past tasks, with trials in the order of their evaluation, into K folds for each of J members.

    Each task has H histories of n trials at most. Raises `DataError` as `build_table`.
    """
    count, by_rows = len(tasks), len(tasks) <= _MAX_SPLIT_TASKS
    entries = {str(i): task for i, task in enumerate(tasks.values())}
    splits = [j % _SPLITS for j in range(folds)]
    for (i, task), split in product(enumerate(tasks.values()), range(_SPLITS) if by_rows else ()):
        is_training = _training_half(np.arange(task.n_rows), split)
        if is_training.any():
            entries[f"{i}/{split}"] = replace(task, X=task.X[is_training], y=task.y[is_training])
    table = build_table(entries)
    index_by_name = {name: i for i, name in enumerate(entries)}
    held_out = [list(range(count))] * folds if by_rows else held_out_tasks(count, folds)
    if by_rows:
        names = [[f"{i}/{split}" for i in range(count)] for split in splits]
    else:
        names = [[str(i) for i in range(count) if i not in group] for group in held_out]
    training_tasks = [[index_by_name[name] for name in fold if name in index_by_name] for fold in names]
    start, size = np.asarray(table.start), np.asarray(table.size)
    random = np.random.default_rng(0)
    orders = [sort_task(task).order for task in tasks.values()] if by_rows else []
    samples = []
    for group, split in zip(held_out, splits, strict=True):
        for h in range(histories):
            i = group[h % len(group)]
            if by_rows:
                history = _halved_history(_training_half(orders[i], split), rows, random)
            else:
                history = _history(int(size[i]), rows, random, best=h // len(group) % 2 == 0)
            samples.append((start[i] + history[0], history[1], history[2], np.int32(i)))
    parts = [np.stack(part).reshape(folds, histories, *np.shape(part[0])) for part in zip(*samples, strict=True)]
    slots = min(rows, -(-max(task.n_rows for task in tasks.values()) // 4) * 4)
    parts = [*(part[..., :slots] for part in parts[:3]), parts[3]]
    return Folds(
        table,
        _spans(start, size, [list(range(count))] * members),
        _spans(start, size, training_tasks),
        HeldOut(*jax.device_put((parts[0].astype(np.int32), parts[1], parts[2]))),
        parts[3],
        by_rows,
        slots,
    )


def _training_half(order: npt.NDArray[np.int64], split: int) -> Mask:
    """Returns the mask bool[n] of the training trials of a split, given the evaluation order of the trials."""
    return (order < (len(order) + 1) // 2, order >= (len(order) + 1) // 2, order % 2 == 0, order % 2 == 1)[split]


def _spans(start: npt.NDArray[np.int32], size: npt.NDArray[np.int32], tasks: Sequence[Sequence[int]]) -> TaskSpans:
    """Returns the spans of selected tasks, with one slot for each task of the table; empty slots have no rows."""
    starts, sizes = (np.zeros((len(tasks), len(start)), np.int32) for _ in range(2))
    for j, indices in enumerate(tasks):
        starts[j, : len(indices)], sizes[j, : len(indices)] = start[list(indices)], size[list(indices)]
    return TaskSpans(*jax.device_put((starts, sizes, np.array([len(indices) for indices in tasks], np.int32))))


def _history(
    size: int, rows: int, random: np.random.Generator, *, best: bool
) -> tuple[npt.NDArray[np.int64], Mask, Mask]:
    """Draws a random number of trials of a held-out task: random rows, or the best of random rows."""
    max_count = min(size, rows)
    count = int(random.integers(min(4, max_count), max_count + 1))
    row_numbers = np.sort(random.choice(size, max_count if best else count, replace=False))[:count]
    return _slots(row_numbers, np.zeros(count, np.bool_), rows)


def _halved_history(is_train: Mask, rows: int, random: np.random.Generator) -> tuple[npt.NDArray[np.int64], Mask, Mask]:
    """Draws trials of both halves of a task; those of the training half are the context."""
    sides = []
    for side in (np.flatnonzero(is_train), np.flatnonzero(~is_train)):
        max_count = min(len(side), rows // 2)
        count = int(random.integers(min(2, max_count), max_count + 1))
        sides.append(random.choice(side, count, replace=False))
    row_numbers = np.sort(np.concatenate(sides))
    return _slots(row_numbers, is_train[row_numbers], rows)


def _slots(row_numbers: npt.NDArray[np.int64], context: Mask, rows: int) -> tuple[npt.NDArray[np.int64], Mask, Mask]:
    empty = (0, rows - len(row_numbers))
    return np.pad(row_numbers, empty), np.arange(rows) < len(row_numbers), np.pad(context, empty)
