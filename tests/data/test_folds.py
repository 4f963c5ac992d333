"""Folds of past tasks: held-out trials are not training data of their fold, and cover all tasks."""

import numpy as np
import pytest

from dre_jax.data import Task
from dre_jax.data.folds import make_folds

HISTORIES, ROWS = 12, 8


def training_and_held_out_trials(folds):
    """Yields the training trials of each fold, its held-out trials, and their context."""
    x = np.asarray(folds.table.x)[:, 0].astype(int)
    rows, where, context = (np.asarray(a) for a in folds.held_out)
    for j in range(len(rows)):
        spans = zip(*(np.asarray(a)[j] for a in folds.train[:2]), strict=True)
        training = {int(a) for start, size in spans for a in x[start : start + size]}
        held_out = [x[r[w & ~c]] for r, w, c in zip(rows[j], where[j], context[j], strict=True)]
        yield training, held_out, x[rows[j][context[j]]]


@pytest.mark.parametrize(("sizes", "by_rows"), [((9,), True), ((3, 30), True), ((9, 1, 30), False), ((5,) * 9, False)])
def test_held_out_trials_are_not_training_trials(sizes, by_rows):
    rng, tasks, count = np.random.default_rng(0), {}, 0
    for i, size in enumerate(sizes):  # the only column numbers the trials of all tasks in evaluation order
        x = count + np.arange(size, dtype=np.float32)
        tasks[str(i)], count = Task(str(i), x[:, None], rng.normal(size=size)), count + size
    folds = make_folds(tasks, members=2, folds=4, histories=HISTORIES, rows=ROWS)
    assert folds.by_rows == by_rows
    owner = np.repeat(np.arange(len(sizes)), sizes)
    all_held_out = set()
    for j, (training, held_out, context) in enumerate(training_and_held_out_trials(folds)):
        assert set(context.tolist()) <= training
        assert (len(context) > 0) == by_rows
        for h, trials in enumerate(held_out):
            assert len(set(trials.tolist())) == len(trials) > 0
            assert not training & set(trials.tolist())
            assert (owner[trials] == folds.task[j, h]).all()
            all_held_out |= set(trials.tolist())
    assert set(owner[list(all_held_out)]) == set(range(len(sizes)))
    if sizes == (9,):
        assert all_held_out == set(range(9))
        training, held_out, _ = next(training_and_held_out_trials(folds))
        assert training == set(range(5))  # later trials are predicted from earlier ones
        assert all((trials >= 5).all() for trials in held_out)
    _, size, n_tasks = (np.asarray(a) for a in folds.all_tasks)
    assert n_tasks.tolist() == [len(sizes)] * 2
    assert size.sum(axis=1).tolist() == [count] * 2


def test_held_out_histories_are_the_best_of_the_rows_or_any():
    task = Task("0", np.zeros((200, 1), np.float32), np.arange(200.0))
    tasks = {str(i): task for i in range(4)}
    folds = make_folds(tasks, members=1, folds=4, histories=400, rows=ROWS)
    rows, where, _ = (np.asarray(a) for a in folds.held_out)
    place = rows - np.asarray(folds.table.start)[folds.task][..., None]
    length = where.sum(axis=-1)
    assert set(length.ravel().tolist()) == {4, 5, 6, 7, 8}
    half = (length == 4) & (np.arange(400)[None, :] % 2 == 0)
    other = (length == 4) & ~(np.arange(400)[None, :] % 2 == 0)
    # The four best of eight random rows of 200 have the mean rank 201 * 2.5 / 9 - 1.
    assert place[half][:, :4].mean() == pytest.approx(54.8, abs=8.0)
    assert place[other][:, :4].mean() == pytest.approx(99.5, abs=10.0)
