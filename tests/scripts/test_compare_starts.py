"""What a run begins with, and what counts as evaluated."""

import numpy as np
import pytest

from dre_jax import Suggester
from dre_jax.data import SearchSpace, Task
from dre_jax.methods import find


@pytest.fixture(scope="module")
def script(part):
    return part("compare_starts")


def test_evaluations_are_counted_from_the_first(script):
    task = Task("a", np.zeros((4, 1), np.float32), np.array([2.0, 4.0, 3.0, 6.0]))
    found = script.whole(task, np.array([2, 0, 1]), np.array([0.5, 0.5, 1.0]))
    assert found.tolist() == [0.0, 0.25, 0.25, 0.5, 0.5, 1.0]


def test_starts(script, monkeypatch):
    x = np.linspace(0.0, 1.0, 11, dtype=np.float32)[:, None]
    past = {"one": Task("one", x, -np.abs(x[:, 0] - 0.2)), "two": Task("two", x, -np.abs(x[:, 0] - 0.9))}
    new = Task("new", x[::-2], np.arange(6.0))  # 1.0, 0.8, ... 0.0
    designs = {"new": {"test0": np.array([3, 4]), "test1": np.array([0, 1])}}
    space = SearchSpace("s", train=past, validation={"new": new}, designs=designs)
    monkeypatch.setattr("sys.argv", ["it", "--sizes", "1", "2", "--designs", "test0", "test1"])
    found = script.starts(script.parse(), space, Suggester(find("random").make(), None, seed=0))
    assert list(found) == ["5 at random", "its own", "1 chosen", "2 chosen"]
    assert found["5 at random"]["new"]["test0"].tolist() == [3, 4]
    assert len(found["its own"]["new"]["test0"]) == 1
    chosen = found["2 chosen"]["new"]["test1"]
    # The best of both past tasks, where the new task has a row next to it.
    assert len(chosen) == 2
    assert np.abs(np.sort(new.X[chosen, 0]) - [0.2, 0.9]).max() < 0.11
    assert found["1 chosen"]["new"]["test0"].tolist() == chosen[:1].tolist()
