"""Where the best row of a table stands with a method that knows it, and with one that thinks the opposite."""

from dataclasses import dataclass

import jax
import numpy as np
import pytest

from dre_jax.data import Task
from dre_jax.errors import ConfigError

ROWS = 30
TASK = Task("line", np.linspace(0.0, 1.0, ROWS, dtype=np.float32)[:, None], np.arange(float(ROWS)))
DESIGNS = {"a": np.array([3, 8]), "b": np.array([1, 2]), "c": np.array([10, 4])}


@dataclass(frozen=True)
class Slope:
    """Thinks that the response is so many times the column."""

    slope: float

    def acquire(self, params, history, candidates, key):
        return self.slope * candidates.x[:, 0]


@pytest.fixture(scope="module")
def script(part):
    return part("follow_optimum")


def followed(script, method, at):
    runs = script.runs_of(method, None, TASK, DESIGNS, max(at), jax.random.key(0))
    return list(script.followed(method, None, runs, at))


def test_what_is_thought_the_worst_is_last(script):
    assert followed(script, Slope(-1.0), [4, 10]) == [("26 of 26", "-1.00"), ("20 of 20", "-1.00")]


def test_what_is_known_is_tried_next_and_found(script):
    assert followed(script, Slope(1.0), [2, 6]) == [("1 of 28", "1.00"), ("found", "1.00")]


def test_runs_begin_with_the_rows_of_the_design(part):
    runs = part("runs_of_tasks").runs_of(Slope(1.0), None, TASK, DESIGNS, 5, jax.random.key(0))
    assert runs.y[runs.rows[:, :2]].tolist() == [list(TASK.y[design]) for design in DESIGNS.values()]
    assert runs.y[runs.rows[:, 2:]].tolist() == [[29.0, 28.0, 27.0]] * 3


def test_a_task_that_is_nowhere_is_refused(script, tmp_path):
    with pytest.raises(ConfigError, match="a task must be SPACE/DATASET of the data given, but got 'svm/nobody'"):
        script.space_of("svm/nobody", [script.bundled.path()])
