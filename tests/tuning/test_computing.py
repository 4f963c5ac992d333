"""What suggestions are computed in."""

import threading

import pytest
from threadpoolctl import threadpool_info

from dre_jax.tuning.computing import Shared, computing

TWO = 2


def threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_one_thread_for_factorisations_inside():
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(TWO, user_api="blas"):
        with computing, computing:
            assert set(threads()) == {1}
        assert set(threads()) == {TWO}
        with pytest.raises(ZeroDivisionError), computing:
            raise ZeroDivisionError
        assert set(threads()) == {TWO}


def test_the_last_thread_leaves():
    """Two threads whose stays overlap: the context is entered once and left once, after both."""
    told = []

    class Context:
        def __enter__(self):
            told.append("in")

        def __exit__(self, *error):
            told.append("out")

    shared, both, first_left = Shared(Context), threading.Barrier(2), threading.Event()

    def first():
        with shared:
            both.wait(60)
        told.append("first left")
        first_left.set()

    thread = threading.Thread(target=first)
    thread.start()
    with shared:
        both.wait(60)
        first_left.wait(60)
    thread.join()
    assert told == ["in", "first left", "out"]
