"""Training of learned priors: what histories hold."""

import jax
import numpy as np
import pytest

from dre_jax.data import Task
from dre_jax.data.tasks import build_table
from dre_jax.surrogates.prior_training import PriorTraining, draw_histories

drawn = jax.jit(draw_histories, static_argnums=0)


def test_histories_are_any_rows_of_one_task():
    sizes = np.array([40, 5, 1, 40])
    tasks = {str(i): Task(str(i), np.zeros((n, 1), np.float32), np.arange(float(n))) for i, n in enumerate(sizes)}
    table, training = build_table(tasks), PriorTraining(tasks=8000, rows=12, least=3)
    rows, where = (np.asarray(a) for a in drawn(training, table, jax.random.key(0)))
    start = np.asarray(table.start)
    task = np.searchsorted(start, rows[:, 0], side="right") - 1
    place = np.where(where, rows - start[task][:, None], -np.arange(1, 13))  # of a row in its task, best first
    assert all(len(set(row)) == 12 for row in place.tolist())
    assert (place < sizes[task][:, None]).all()
    assert (place[where] >= 0).all()
    np.testing.assert_allclose(np.bincount(task), 2000, atol=200)
    for i, size in enumerate(sizes):
        lengths, often = np.unique(where[task == i].sum(axis=1), return_counts=True)
        expected = np.bincount(np.minimum(np.arange(3, 13), size))
        assert lengths.tolist() == np.flatnonzero(expected).tolist()
        np.testing.assert_allclose(often / often.sum(), expected[lengths] / 10.0, atol=0.04)
    for n in (3, 7, 12):  # however short a history is, it is no better than the task
        of_length = place[(where.sum(axis=1) == n) & (sizes[task] == 40)]
        assert of_length[of_length >= 0].mean() == pytest.approx(19.5, abs=1.5)
