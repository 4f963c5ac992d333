"""The plain Python loop for host methods against the compiled loop, on one method stated both ways."""

import jax
import numpy as np
import pytest

from dre_jax import Task, run_tasks
from dre_jax.errors import MethodError
from dre_jax.search.host import run_host
from tests.known_methods import NEAREST


class NearestHost:
    def observe_and_suggest(self, X_obs, y_obs, X_pen):
        assert X_obs.dtype == X_pen.dtype == y_obs.dtype == np.float64
        best = X_obs[np.argmax(y_obs)]
        return np.argmin(((X_pen - best) ** 2).sum(axis=1))


def make_task(rows, seed):
    rng = np.random.default_rng(seed)
    return Task("t", rng.random((rows, 3), dtype=np.float32), 1e3 - 50 * rng.random(rows))


@pytest.mark.parametrize(("rows", "n_trials"), [(60, 25), (9, 100), (60, 0)])
def test_both_loops_agree(rows, n_trials):
    tasks = [make_task(rows, seed) for seed in range(4)]
    constant = Task("t", tasks[0].X, np.full(rows, 0.3))
    for task in (*tasks, constant):
        design = np.argsort(task.y)[:3]
        designs, key = {"t": {"s": design}}, jax.random.key(0)
        ((_, _, expected),) = run_tasks(NEAREST, None, {"t": task}, designs, n_trials=n_trials, key=key)
        np.testing.assert_array_equal(run_host(NearestHost(), task.X, task.y, design, n_trials), expected)
        assert expected.shape == (n_trials + 1,)
        # Once no row is left the optimum has been found, and stays for all trials that are asked for.
        assert (expected[rows - len(design) :] == (0.5 if task is constant else 1.0)).all()


def test_a_method_cannot_change_the_task():
    class Vandal(NearestHost):
        def observe_and_suggest(self, X_obs, y_obs, X_pen):
            index = super().observe_and_suggest(X_obs, y_obs, X_pen)
            for argument in (X_obs, y_obs, X_pen):
                argument[:] = 7.0
            return index

    task = make_task(60, 0)
    before = task.X.copy()
    design = np.argsort(task.y)[:3]
    expected = run_host(NearestHost(), task.X, task.y, design, 20)
    np.testing.assert_array_equal(run_host(Vandal(), task.X, task.y, design, 20), expected)
    np.testing.assert_array_equal(task.X, before)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (4, "but returned 4"),
        (-1, "but returned -1"),
        (1.0, "but returned 1.0 of type float"),
        (True, "but returned True"),
        (np.array([1]), "of type ndarray"),
    ],
)
def test_answers_that_are_no_index(answer, said):
    rule = "method Peer: observe_and_suggest must return the index of one of the 4 rows of X_pen"
    peer = type("Peer", (), {"observe_and_suggest": lambda self, X_obs, y_obs, X_pen: answer})()
    with pytest.raises(MethodError, match=f"{rule}.*{said}"):
        run_host(peer, np.eye(6), np.arange(6.0), np.array([1, 2]), 3)


def test_arguments_are_passed_by_name_if_possible():
    """HPO-B's newer handlers name them; a class may count on that, or have other names for them."""

    class Swapped:
        def observe_and_suggest(self, X_pen, y_obs, X_obs):
            assert len(X_pen) > len(X_obs)
            return 0

    class Other:
        def observe_and_suggest(self, x, y, candidates):
            assert len(candidates) > len(x)
            return 0

    for method in (Swapped(), Other()):
        assert run_host(method, np.eye(9), np.arange(9.0), np.array([4]), 2).tolist() == [0.5] * 3


def test_errors_of_a_method_pass_through():
    broken = type("Peer", (), {"observe_and_suggest": lambda *_: 1 // 0})()
    with pytest.raises(ZeroDivisionError):
        run_host(broken, np.eye(3), np.arange(3.0), np.array([0]), 2)
