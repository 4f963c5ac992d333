"""Past tasks, candidates and little configurations for methods."""

import json
from functools import cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.data.tasks import sort_task, unit_scale
from dre_jax.search import Candidates, run_in_python
from dre_jax.testing.cases import past_tasks
from tests.known_methods import quick_method

assert_same = partial(chex.assert_trees_all_equal, strict=True)


@pytest.fixture(scope="session")
def fitted():
    """A method by name and what it learned, from tables of so many columns."""

    @cache
    def fit(name, columns=2, times=1):
        method = quick_method(name, times)
        return method, method.fit(past_tasks(columns), jax.random.key(1))

    return fit


def hill(shift, n, seed):
    """A task whose response has one peak, in the first column at 0.5 + shift."""
    x = np.random.default_rng(seed).uniform(size=(n, 2)).astype(np.float32)
    return Task(f"hill {shift} {seed}", x, np.exp(-20.0 * (x[:, 0] - 0.5 - shift) ** 2) - 0.2 * (x[:, 1] - 0.5) ** 2)


@pytest.fixture(scope="session")
def hills():
    """Past tasks with the same peak but two, and a test task of 80 rows."""
    shifts = (0.0, 0.02, -0.02, 0.4, -0.4)
    train = {f"task {i}": hill(shift, 30 + i, i) for i, shift in enumerate(shifts)}
    return SearchSpace("hills", train=train, test={"new": hill(0.01, 80, 99)})


@pytest.fixture(scope="session")
def make_candidates():
    def make(x, empty=0):
        padded = np.pad(np.asarray(x, np.float32), ((0, empty), (0, 0)), constant_values=0.5)
        return Candidates(jnp.asarray(padded), jnp.arange(len(padded)) < len(x))

    return make


@pytest.fixture(scope="session")
def mean_regrets(search_task):
    """Of runs from designs of three rows that are none of the best thirty; f64[trials]."""

    def measure(method, params, task, n_trials, n_designs):
        table, scaled, result = search_task(task), unit_scale(task.y)[sort_task(task).order], []
        for seed in range(n_designs):
            design = np.random.default_rng(seed).choice(np.arange(30, 80), 3, replace=False).astype(np.int32)
            picks = run_in_python(method, params, table, design, jax.random.key(seed), n_trials)
            # A run that has found the optimum picks nothing more.
            result.append(1.0 - np.maximum.accumulate(np.where(picks >= 0, scaled[picks], 1.0)))
        return np.mean(result, axis=0)

    return measure


@pytest.fixture
def rewrite():
    """Changes the metadata of the last step in a folder, as another version would have written it."""

    def rewrite(steps, change):
        step = max(steps.iterdir(), key=lambda path: int(path.name))
        path = step / "metadata" / "metadata"
        metadata = json.loads(path.read_text())
        change(metadata)
        path.write_text(json.dumps(metadata))
        (step / "digests.json").unlink(missing_ok=True)

    return rewrite
