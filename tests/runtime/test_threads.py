"""How many threads a factorisation has."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.threads import VARIABLE, on_one_thread, one_thread
from dre_jax.search import run_tasks
from dre_jax.suggest import Suggester

TWO = 2


def threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    """As in a program that has said nothing about them."""
    import scipy.linalg  # noqa: F401

    monkeypatch.delenv(VARIABLE)
    with threadpool_limits(TWO, user_api="blas"):
        yield
        assert threads() == {TWO}


@pytest.mark.parametrize("context", [one_thread, suggestion_runtime])
def test_inside_a_block(context):
    with context:
        with context:  # as another thread, whose stay overlaps
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {TWO}
    with pytest.raises(ZeroDivisionError), context:
        raise ZeroDivisionError


def test_inside_a_function_unless_the_variable_decides(monkeypatch):
    assert on_one_thread(threads)() == {1}
    monkeypatch.setenv(VARIABLE, "3")
    with one_thread:
        assert threads() == {3}


def test_while_runs_are_computed(make_space):
    """A method that looks, in runs of a batch, and called by HPO-B's handler."""
    calls = []

    @dataclass(frozen=True)
    class Looking:
        def acquire(self, params, history, candidates, key):
            jax.debug.callback(lambda: calls.append(threads()))
            return jnp.zeros(candidates.where.shape)

    space = make_space("s", test="x")
    traces = list(run_tasks(Looking(), None, space.test, space.designs, n_trials=2, key=jax.random.key(0)))
    in_the_batch = len(calls)
    Suggester(Looking()).observe_and_suggest(np.zeros((2, 3)), np.array([[0.1], [0.5]]), np.ones((4, 3)))
    jax.effects_barrier()
    assert len(traces) > 0 < in_the_batch < len(calls)
    assert all(count == {1} for count in calls)
