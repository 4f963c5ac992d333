"""Small methods, and real tasks to run them on."""

import jax
import jax.numpy as jnp
import pytest

from dre_jax.data import Task, bundled
from dre_jax.methods import DRE, RandomSearch
from dre_jax.methods.dre import FineTuneConfig, ModelConfig, init

MODEL = ModelConfig(members=3, hidden=(8, 8), phi=(8,), rho=(8, 4))


@pytest.fixture(scope="session")
def space():
    return bundled.load("svm")


@pytest.fixture(scope="session")
def methods(space):
    """Name -> method and parameters. The start is random, not meta-trained: the loop does not know."""
    start = init(MODEL, space.n_columns, jax.random.key(0))
    tuning = FineTuneConfig(epochs=15, learning_rate=0.01)
    return {
        "random": (RandomSearch(), None),
        "dre": (DRE(model=MODEL, fine_tuning=tuning), start),
        "dre-as-it-is": (DRE(model=MODEL, fine_tuning=FineTuneConfig(epochs=0)), start),
        "dre-of-zeros": (DRE(model=MODEL, fine_tuning=FineTuneConfig(epochs=0)), jax.tree.map(jnp.zeros_like, start)),
    }


@pytest.fixture(scope="session")
def cut_task():
    """Keeps the first n rows of a task."""
    return lambda task, n: Task(task.name, task.X[:n], task.y[:n])
