"""Every registered method, in both loops: a new one is tested by being registered."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, bundled
from dre_jax.data.tasks import sort_task
from dre_jax.errors import ConfigError, DataError
from dre_jax.methods import METHODS, find
from dre_jax.methods.ensembles import LOSSES
from dre_jax.model import ModelConfig, preset
from dre_jax.search import SearchTask, run, run_in_python
from dre_jax.search.history import Candidates, History
from dre_jax.training.config import META_TRAINING_PRESETS

MODEL = ModelConfig(members=3, hidden=(4,), phi=(4,), rho=(4,))
N_ROWS, N_TRIALS, DESIGNS = 24, 4, np.array([[20, 5, 11], [23, 22, 21], [9, 17, 3], [12, 6, 19]], np.int32)


def few_rows(task):
    return Task(task.name, task.X[:N_ROWS], task.y[:N_ROWS])


@pytest.fixture(scope="module")
def space():
    whole = bundled.load("svm")
    train = {name: few_rows(task) for name, task in list(whole.train.items())[:3]}
    test = {name: few_rows(task) for name, task in list(whole.test.items())[:1]}
    return SearchSpace("svm", train=train, test=test)


@pytest.fixture(scope="module")
def task(space):
    found = sort_task(next(iter(space.test.values())))
    return SearchTask(*map(jnp.asarray, (found.x, found.response, found.level)), jnp.ones(N_ROWS, bool))


# Of those that differ by a loss alone, one with transfer and one without.
LIKE_OTHERS = {f"{loss}{end}" for loss in LOSSES for end in ("", "-ri")} - {"regression", "pairwise-ri"}
COMPILED = [name for name, entry in METHODS.items() if entry.host is None and name not in LIKE_OTHERS]
OFTEN = ("random", "dre-gp", "rgpe", "deep-ensemble-reuse")
each_method = pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.thorough) for name in COMPILED]
)


@each_method
def test_both_loops_pick_alike(name, space, task, quick):
    method = quick(name)
    params = method.fit(space, jax.random.key(1))
    assert (params is not None) == METHODS[name].transfer
    keys = jax.random.split(jax.random.key(2), len(DESIGNS))
    # The designs hold no row of the best level, but the runs may find one and end: then -1.
    whole_run = jax.jit(partial(run, method, n_trials=N_TRIALS))
    for design, key in zip(DESIGNS, keys, strict=True):
        picks = np.asarray(whole_run(params, task, jnp.asarray(design), key))
        np.testing.assert_array_equal(picks, run_in_python(method, params, task, design, key, N_TRIALS))
        done = picks[picks >= 0]
        assert (picks[len(done) :] == -1).all()
        assert len(done) == N_TRIALS or (np.asarray(task.level)[done] == 0).any()
        evaluated = [*design, *done]
        assert len(set(evaluated)) == len(evaluated)
        assert max(done) < N_ROWS


@each_method
def test_nobody_knows_the_range_of_the_task(name, space, task, quick):
    """HPO-B scales responses with the whole table; a method that is not told of the table must not miss it."""
    method = quick(name)
    params = method.fit(space, jax.random.key(1))
    rows = np.array([20, 5, 11, 23, 9, 17, 3])
    seen = jnp.asarray(np.isin(np.arange(N_ROWS), rows))
    candidates = Candidates(task.x, ~seen)
    acquire = jax.jit(method.acquire)

    def values(scale):
        history = History(task.x[rows], scale * task.response[rows], task.level[rows], jnp.ones(len(rows), bool))
        return np.asarray(acquire(params, history, candidates, jax.random.key(3)))[~seen]

    np.testing.assert_allclose(values(0.25), values(1.0), rtol=1e-3, atol=1e-3)  # a quarter is exact


def test_the_papers_method_is_the_preset_unless_a_checkpoint_says_otherwise():
    own, read = METHODS["dre-paper"].make(), METHODS["dre-paper"].make(model=MODEL)
    assert (own.model, own.training) == (preset("paper"), META_TRAINING_PRESETS["paper"])
    assert read.model == MODEL
    assert own.fine_tuning.epochs == 1000


@pytest.mark.parametrize("name", METHODS)
def test_entries(name):
    entry = METHODS[name]
    assert entry.summary
    assert entry.paper
    assert find(name) is entry
    assert (entry.host is None) != (entry.default is None)
    if entry.host is None:
        assert hash(entry.make()) == hash(entry.default)  # static under jit
        return
    assert callable(entry.host.observe_and_suggest)
    assert not entry.transfer
    assert entry.extra
    assert entry.library != "JAX"


@pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if entry.transfer])
def test_who_learns_from_past_tasks_says_that_there_are_none(name):
    with pytest.raises(DataError, match="meta-training needs training tasks, but search space 'none' has none"):
        METHODS[name].make().fit(SearchSpace("none"), jax.random.key(0))


@pytest.mark.parametrize(("given", "suggested"), [("dree", "dre"), ("radnom", "random"), ("Dre-RI", None), ("", None)])
def test_an_unknown_name(given, suggested):
    with pytest.raises(ConfigError) as caught:
        find(given)
    message = str(caught.value)
    assert repr(given) in message
    assert all(name in message for name in METHODS)
    assert suggested is None or f"did you mean {suggested}?" in message
