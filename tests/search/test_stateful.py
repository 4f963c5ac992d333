"""Methods that carry something from one trial to the next."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.search import History, run, run_in_python
from dre_jax.search.history import Candidates, sort_history
from dre_jax.search.loop import look_up, trial_keys
from dre_jax.search.suggester import Suggester
from dre_jax.training.fine_tune import fine_tune

compiled = jax.jit(run, static_argnums=0, static_argnames=("n_trials", "stop_at_optimum"))


@dataclass(frozen=True)
class Stride:
    """Evaluates the row whose first column is nearest to a counter that only the state knows."""

    stateful = True

    def fit(self, meta, key):
        return None

    def begin(self, params, n_columns, key):
        return jnp.float32(n_columns)

    def acquire(self, params, history, candidates, key):
        return self.advance(self.begin(params, candidates.x.shape[1], key), history, candidates, key)[0]

    def advance(self, state, history, candidates, key):
        return -jnp.abs(candidates.x[:, 0] - state), state + 2.0


@pytest.fixture
def numbered(search_task, cut_task, space):
    """A table whose first column is the row's number."""
    task = search_task(cut_task(space.test["wine-proline"], 60))
    return task._replace(x=task.x.at[:, 0].set(jnp.arange(60.0)))


def test_the_state_is_carried_from_trial_to_trial(numbered):
    # The state starts at the number of columns and grows by two.
    first = numbered.x.shape[1]
    design, key = jnp.array([1, 3, 5, 7, 9]), jax.random.key(0)
    picks = compiled(Stride(), None, numbered, design, key, n_trials=20, stop_at_optimum=False)
    assert picks.tolist() == [first + 2 * t for t in range(20)]
    assert run_in_python(Stride(), None, numbered, np.asarray(design), key, 20, False).tolist() == picks.tolist()


def test_a_suggester_carries_it_too():
    suggester = Suggester(Stride())
    x_pen = np.stack([np.arange(30.0)] * 3, axis=1)
    picks = [suggester.observe_and_suggest(np.zeros((2 + t, 3)), np.zeros(2 + t), x_pen) for t in range(4)]
    assert picks == [3, 5, 7, 9]


@pytest.fixture
def reuse(methods):
    method, params = methods["dre"]
    return replace(method, fine_tuning=replace(method.fine_tuning, reuse=True)), params


@pytest.mark.slow
def test_reuse_goes_on_from_the_last_trial(reuse, methods, space, search_task):
    method, params = reuse
    restart = methods["dre"][0]
    task = search_task(space.test["wine-proline"])
    design = jnp.asarray(space.designs["wine-proline"]["test0"], jnp.int32)
    key = jax.random.key(3)
    picks = compiled(method, params, task, design, key, n_trials=12, stop_at_optimum=False)
    np.testing.assert_array_equal(run_in_python(method, params, task, np.asarray(design), key, 12, False), picks)
    other = compiled(restart, params, task, design, key, n_trials=12, stop_at_optimum=False)
    assert picks.tolist() != other.tolist()
    advance = jax.jit(lambda method, *rest: method.advance(*rest), static_argnums=0)
    tuned = jax.jit(fine_tune, static_argnums=(0, 1))
    # The second trial, by hand: fine-tuned from what fine-tuning before the first one gave.
    for trial in range(2):
        rows = jnp.concatenate([design, picks[:trial], jnp.full(16 - 5 - trial, -1)])
        history, candidates = look_up(task, rows, jnp.int32(5 + trial))
        method_key, _ = trial_keys(key, jnp.int32(trial))
        values, _ = advance(method, params, history, candidates, method_key)
        assert int(jnp.argmax(jnp.where(candidates.where, values, -jnp.inf))) == int(picks[trial])
        params = tuned(method.model, method.fine_tuning, params, *sort_history(history), method_key)


def test_random_weights_are_drawn_once_a_run(reuse):
    method = replace(reuse[0], transfer=False)
    state = method.begin(None, 3, jax.random.key(0))
    history = History(jnp.ones((16, 3)), jnp.zeros(16), jnp.zeros(16, jnp.int32), jnp.arange(16) < 5)
    candidates = Candidates(jax.random.uniform(jax.random.key(1), (8, 3)), jnp.ones(8, bool))
    _, after = jax.eval_shape(method.advance, state, history, candidates, jax.random.key(2))
    shapes = [jax.tree.map(lambda a: (a.shape, a.dtype), tree) for tree in (state, after)]
    assert shapes[0] == shapes[1]


def test_without_epochs_there_is_nothing_to_carry(reuse):
    method, _ = reuse
    assert method.stateful
    assert not replace(method, fine_tuning=replace(method.fine_tuning, epochs=0)).stateful
