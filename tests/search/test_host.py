"""The plain Python loop for host methods against the compiled loop, on one method stated both ways."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import Task
from dre_jax.search import run_tasks
from dre_jax.search.host import run_host


@dataclass(frozen=True)
class Nearest:
    """The candidate that is closest to the best trial so far."""

    def fit(self, meta, key):
        return None

    def acquire(self, params, history, candidates, key):
        best = history.x[jnp.argmin(jnp.where(history.where, history.level, jnp.iinfo(jnp.int32).max))]
        return -jnp.sum((candidates.x - best[None, :]) ** 2, axis=-1)


class NearestHost:
    def observe_and_suggest(self, X_obs, y_obs, X_pen):
        assert X_obs.dtype == X_pen.dtype == y_obs.dtype == np.float64
        best = X_obs[np.argmax(y_obs)]
        return np.argmin(((X_pen - best) ** 2).sum(axis=1))


def make_task(rows, seed):
    rng = np.random.default_rng(seed)
    return Task("t", rng.random((rows, 3), dtype=np.float32), 1e3 - 50 * rng.random(rows))


@pytest.mark.parametrize(("rows", "n_trials"), [(60, 25), (9, 25), (60, 0)])
def test_both_loops_agree(rows, n_trials):
    for seed in range(4):
        task = make_task(rows, seed)
        design = np.argsort(task.y)[:3]
        ((_, _, expected),) = run_tasks(
            Nearest(), None, {"t": task}, {"t": {"s": design}}, n_trials=n_trials, key=jax.random.key(0)
        )
        found = run_host(NearestHost(), task.X, task.y, design, n_trials)
        np.testing.assert_array_equal(found, expected)


def test_a_constant_task_ends_where_it_begins():
    task = Task("t", np.eye(8, dtype=np.float32), np.full(8, 0.3))
    design = np.array([1, 2])
    ((_, _, expected),) = run_tasks(
        Nearest(), None, {"t": task}, {"t": {"s": design}}, n_trials=4, key=jax.random.key(0)
    )
    np.testing.assert_array_equal(run_host(NearestHost(), task.X, task.y, design, 4), expected)


def test_what_a_method_does_to_its_arguments_stays_with_it():
    class Vandal(NearestHost):
        def observe_and_suggest(self, X_obs, y_obs, X_pen):
            index = super().observe_and_suggest(X_obs, y_obs, X_pen)
            for given in (X_obs, y_obs, X_pen):
                given[:] = 7.0
            return index

    task = make_task(60, 0)
    before = task.X.copy()
    design = np.argsort(task.y)[:3]
    expected = run_host(NearestHost(), task.X, task.y, design, 20)
    np.testing.assert_array_equal(run_host(Vandal(), task.X, task.y, design, 20), expected)
    np.testing.assert_array_equal(task.X, before)
