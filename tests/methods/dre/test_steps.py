"""The compiled steps of meta-training."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import build_table, bundled
from dre_jax.losses import LOSSES, listmle
from dre_jax.methods.dre import LossConfig, MetaTrainConfig, ModelConfig, Support, scores
from dre_jax.methods.dre.lists import draw_bits, draw_steps_bits, read_lists
from dre_jax.methods.dre.steps import evaluate, portion, start, train

MODEL = ModelConfig(members=3, hidden=(8, 8), phi=(8,), rho=(8, 4))
CONFIG = MetaTrainConfig(steps=20, lists_per_step=2, n_support=5, n_query=12, learning_rate=0.01, evaluation_lists=64)
KEY = jax.random.key(4)


@partial(jax.jit, static_argnums=(2, 3))
def draw(table, key, shape, config):
    return read_lists(table, draw_bits(key, shape, config), config)


@pytest.fixture(scope="module")
def table():
    return build_table(bundled.load("svm").train)


@jax.jit
def loss_of_list(table, params, support, query):
    """Loss of each member over a list in full, sorted by the loss itself."""
    context = Support(table.x[support], table.response[support], jnp.ones(support.shape, bool))
    values = scores(MODEL, params, context, table.x[query])
    return jax.vmap(lambda one: listmle(one, table.response[query], weights=CONFIG.loss.weights))(values)


@pytest.mark.slow
def test_the_first_loss_is_the_mean_over_members_of_their_lists(table):
    state = start(MODEL, CONFIG, table.n_columns, KEY)
    params = jax.tree.map(jnp.copy, state.params)  # training gives the state's own away
    support, _, query, _ = draw(table, jax.random.fold_in(KEY, 0), (MODEL.members, CONFIG.lists_per_step), CONFIG)
    expected = [loss_of_list(table, params, support[i], query[i])[i[0]] for i in np.ndindex(support.shape[:2])]
    np.testing.assert_allclose(train(MODEL, CONFIG, table, state, KEY, 5)[1][0], np.mean(expected), rtol=1e-4)
    bits = [draw_steps_bits(KEY, jnp.array([1]), 3, CONFIG)[0], draw_bits(jax.random.fold_in(KEY, 1), (3, 2), CONFIG)]
    np.testing.assert_array_equal(*bits)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.uses_values])
def test_a_loss_of_values_sees_them_on_the_scale_of_the_list(table, name):
    config = replace(CONFIG, loss=LossConfig(name=name))
    lists = jax.tree.map(np.asarray, draw(table, KEY, (50,), config))
    response = np.asarray(table.response, np.float64)
    narrow = 0
    for i in range(50):
        query = response[lists.query[i]][lists.ranked_list.where[i]]
        available = np.concatenate([query, response[lists.support[i]][lists.support_where[i]]])
        expected = (query - available.min()) / np.ptp(available)
        np.testing.assert_allclose(lists.ranked_list.response[i][lists.ranked_list.where[i]], expected, atol=1e-6)
        narrow += np.ptp(available) < 0.99
    assert narrow > 10  # lists that do not span their task


def test_an_evaluation_sees_the_same_lists_every_time(table):
    params = start(MODEL, CONFIG, table.n_columns, KEY).params
    values = [float(evaluate(MODEL, CONFIG, table, params, jax.random.key(seed))) for seed in (4, 4, 5)]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize(("lists_per_step", "steps"), [(1, 200), (10, 200), (100, 20), (1000, 10)])
def test_the_portion_bounds_the_lists_drawn_at_once(lists_per_step, steps):
    assert portion(MetaTrainConfig(lists_per_step=lists_per_step)) == steps
