"""Fine-tuning against a plain loop over the epochs, whose lists are prepared with NumPy."""

from dataclasses import replace
from functools import cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dre_jax.losses import LOSSES, listmle
from dre_jax.methods.dre import FineTuneConfig, LossConfig, ModelConfig, Support, init, scores
from dre_jax.methods.dre.fine_tuning import draw_epochs, fine_tune
from dre_jax.search import make_history, sort_history
from tests.oracles import widen

MODEL = ModelConfig(members=3, hidden=(8, 8), phi=(8,), rho=(8, 4))
CONFIG = FineTuneConfig(epochs=12, learning_rate=0.01)
N_TRIALS, KEY = 12, jax.random.key(3)
tune = jax.jit(fine_tune, static_argnums=(0, 1))
draw = jax.jit(draw_epochs, static_argnums=0)


def history(capacity=N_TRIALS, n=N_TRIALS):
    """Trials with ties, best first."""
    rng = np.random.default_rng(0)
    x, y = rng.random((n, 3)), np.round(rng.normal(size=n))
    return sort_history(make_history(x, y, capacity))


@cache
def start():
    return init(MODEL, 3, jax.random.key(1))


def epochs_of(config, key=KEY, capacity=N_TRIALS, n=N_TRIALS):
    h = history(capacity, n)
    return jax.tree.map(np.asarray, draw(config, h.response, h.level, h.where, key))


@pytest.mark.parametrize(
    ("n", "capacity", "k"), [(1, 9, 1), (2, 9, 1), (9, 9, 1), (10, 16, 2), (16, 16, 3), (100, 105, 20)]
)
def test_a_fifth_feeds_the_deep_set_and_the_rest_is_ranked(n, capacity, k):
    epochs = epochs_of(FineTuneConfig(epochs=30), capacity=capacity, n=n)
    assert (epochs.support_where.sum(axis=1) == k).all()
    assert (epochs.ranked_list.where.sum(axis=1) == n - k).all()
    fields = epochs.support, epochs.support_where, epochs.query, epochs.ranked_list.where
    for support, filled, query, where in zip(*fields, strict=True):
        # Together each trial once; the query in the order of the history, which is that of relevance.
        assert sorted([*support[filled], *query[where]]) == list(range(n))
        assert (np.diff(query[where]) > 0).all()
    assert n == 1 or len(np.unique(epochs.support, axis=0)) > 1


def slow_fine_tune(config, params, key):
    """One epoch after the other: rows by NumPy, the unsorted loss over plain responses, optax's Adam."""
    h, epochs = jax.tree.map(np.asarray, widen(history())), epochs_of(config, key)

    @jax.jit
    def gradient(params, support, x, response):
        def loss(params):
            one = partial(listmle, response=response, weights="inverse_linear")
            return jnp.sum(jax.vmap(one)(scores(MODEL, params, support, x)))

        return jax.grad(loss)(params)

    optimiser = optax.adam(config.learning_rates())
    state, update, add = optimiser.init(params), jax.jit(optimiser.update), jax.jit(optax.apply_updates)
    for rows, filled in zip(epochs.support, epochs.support_where, strict=True):
        rows = rows[filled]
        query = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(N_TRIALS), rows))
        support = Support(h.x[rows], h.response[rows], np.ones(len(rows), bool))
        updates, state = update(gradient(params, support, h.x[query], h.response[query]), state)
        params = add(params, updates)
    return params


def test_equals_a_loop_over_the_epochs():
    config = replace(CONFIG, schedule="cosine")  # `test_torch_parity` has the constant rate
    start()  # drawn in float32, here as elsewhere
    # Adam makes whole steps of parameters that have no gradient but rounding, such as the last bias.
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        tuned = tune(MODEL, config, widen(start()), *widen(history())[:4], KEY)
        # The weights of the positions are float32 there too.
        chex.assert_trees_all_close(tuned, slow_fine_tune(config, widen(start()), KEY), atol=1e-6)
    change = np.asarray(tuned.scorers["out_kernel"]) - np.asarray(start().scorers["out_kernel"])
    assert np.abs(change).max() > 0.05


def test_no_epochs_change_nothing_and_one_trial_leaves_nothing_to_rank():
    chex.assert_trees_all_equal(tune(MODEL, FineTuneConfig(epochs=0), start(), *history()[:4], KEY), start())
    chex.assert_trees_all_equal(tune(MODEL, CONFIG, start(), *history(8, 1)[:4], KEY), start())


QUICK = ("listnet", "mean_squared_error")  # by the scan and, where there is a compiler, by the C++


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.thorough) for n in LOSSES])
def test_every_loss_trains(name):
    config = replace(CONFIG, loss=LossConfig(name=name), epochs=3)
    h = history(capacity=N_TRIALS + 3)
    tuned = [tune(MODEL, config, start(), h.x, r, h.level, h.where, KEY) for r in (h.response, h.response / 4)]
    if not LOSSES[name].uses_values:  # the deep set scales what it sees; a quarter is exact
        chex.assert_trees_all_close(*tuned, atol=1e-5)
    assert np.abs(tuned[0].scorers["out_kernel"] - start().scorers["out_kernel"]).max() > 1e-3
