"""Methods that carry something from one trial to the next."""

from dataclasses import dataclass, replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.search import Candidates, Capabilities, make_history, run, run_in_python, sort_history
from dre_jax.search.suggester import Suggester

compiled = jax.jit(run, static_argnums=0, static_argnames=("n_trials", "stop_at_optimum"))


@dataclass(frozen=True)
class Stride:
    """Evaluates the row whose first column is nearest to a counter that only the state knows."""

    capabilities = Capabilities(stateful=True)

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


def test_reuse_goes_on_from_the_last_trial(reuse, space):
    method, params = reuse
    rng, key = np.random.default_rng(0), jax.random.key(3)
    history = make_history(rng.random((12, space.n_columns)), rng.random(12), 16)
    candidates = Candidates(jnp.asarray(rng.random((20, space.n_columns)), jnp.float32), jnp.ones(20, bool))
    advance, tune = jax.jit(method.advance), jax.jit(partial(fine_tune, method.model, method.fine_tuning))
    state = method.begin(params, space.n_columns, key)
    for _ in range(2):
        values, after = advance(state, history, candidates, key)
        chex.assert_trees_all_close(after, tune(state, *sort_history(history)[:4], key), atol=1e-4)
        assert np.abs(after.scorers["out_kernel"] - state.scorers["out_kernel"]).max() > 0.01
        state = after
    assert np.isfinite(values).all()
    # Random weights are drawn once a run: what they become has the same shapes.
    from_random = replace(method, transfer=False)
    state = from_random.begin(None, space.n_columns, key)
    chex.assert_trees_all_equal_shapes_and_dtypes(state, advance(state, history, candidates, key)[1])


def test_without_epochs_there_is_nothing_to_carry(reuse):
    method, _ = reuse
    assert method.capabilities.stateful
    assert not replace(method, fine_tuning=replace(method.fine_tuning, epochs=0)).capabilities.stateful
