"""Worker processes: every item has a result, whoever dies."""

import multiprocessing
import os
from functools import partial

import pytest

from dre_jax.errors import MethodError
from dre_jax.hpob.workers import Pool, WorkerDeath

pytestmark = pytest.mark.multiprocess

# Other processes cannot import a test: what they run is spelled out.
WORK = """lambda item, os=__import__("os"), signal=__import__("signal"): (
    os.kill(os.getpid(), item) if item < 99 else
    (item, os.getpid(), os.environ["OMP_NUM_THREADS"], signal.pthread_sigmask(0, []))
)"""


@pytest.mark.slow
def test_results_of_workers_and_deaths():
    before = dict(os.environ)
    pool = Pool(partial(eval, WORK), 2)
    items = {"a": 100, "b": 9, "c": 101, "d": 102, "e": 15, "f": 103}
    result = dict(pool.run(items.items()))
    assert os.environ == before
    assert result.keys() == items.keys()
    assert result["b"] == WorkerDeath("was ended by SIGKILL (too little memory?)")
    assert result["e"] == WorkerDeath("was ended by SIGTERM")
    for name in ("a", "c", "d", "f"):
        item, process, threads, blocked = result[name]
        assert (item, threads) == (items[name], "1")
        assert process != os.getpid()
        assert 2 in blocked
    assert len(multiprocessing.active_children()) <= 2
    # They stay, and nothing of what was not waited for is left to the next call.
    some = pool.run([("g", 104), ("h", 105)])
    assert next(some)[0] in "gh"
    some.close()
    assert dict(pool.run([("i", 106)]))["i"][0] == 106
    pool.close()
    assert multiprocessing.active_children() == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (partial(int, "no number"), "invalid literal for int.*'no number'"),
        (partial(os._exit, 3), "a worker process must start, but one ended with status 3; a script"),
    ],
)
def test_workers_that_cannot_start(make, said):
    with pytest.raises(MethodError, match=said):
        list(Pool(make, 2).run([("a", 1), ("b", 2)]))
    assert multiprocessing.active_children() == []
