import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.model import ModelConfig, networks
from dre_jax.model.initial import draw

N_COLUMNS = 3
CONFIG = ModelConfig(hidden=(8, 7), phi=(6, 5), rho=(5, 4), initialiser="torch_uniform")
apply_scorer = jax.jit(networks.apply_scorer, static_argnums=0)
apply_deep_set = jax.jit(networks.apply_deep_set, static_argnums=0)


def rows(n, columns=N_COLUMNS, seed=0):
    return jnp.asarray(np.random.default_rng(seed).random((n, columns)), jnp.float32)


@pytest.fixture(scope="module")
def scorer():
    return draw(networks.scorer_shapes(CONFIG, N_COLUMNS), "torch_uniform", jax.random.key(1))


@pytest.fixture(scope="module")
def deep_set():
    return draw(networks.deep_set_shapes(CONFIG, N_COLUMNS), "torch_uniform", jax.random.key(2))


@pytest.fixture(scope="module")
def support():
    where = jnp.array([True, False, True, True, False, True, True])
    return rows(7, seed=3), rows(7, 1, seed=4)[:, 0], where


def test_names_and_shapes(scorer, deep_set):
    assert scorer["hidden_0_kernel"].shape == (N_COLUMNS + 4, 8)
    assert scorer["out_kernel"].shape == (7, 1)
    assert deep_set["phi_0_kernel"].shape == (N_COLUMNS + 1, 6)
    assert deep_set["rho_1_bias"].shape == (4,)


def test_a_scorer_with_context_is_a_network_over_both_side_by_side(scorer, plain):
    x, context = rows(6), jnp.array([0.3, -2.0, 1.0, 0.7])
    scores = apply_scorer(CONFIG, scorer, x, context)
    assert scores.dtype == jnp.float32
    np.testing.assert_allclose(scores, plain.scorer(scorer, x, context), rtol=1e-5, atol=1e-6)


def test_a_scorer_without_context(plain):
    config = ModelConfig(hidden=(8, 7), context="none")
    params = draw(networks.scorer_shapes(config, N_COLUMNS), "torch_uniform", jax.random.key(5))
    assert params["hidden_0_kernel"].shape == (N_COLUMNS, 8)
    np.testing.assert_allclose(
        apply_scorer(config, params, rows(6), None), plain.scorer(params, rows(6)), rtol=1e-5, atol=1e-6
    )


def test_the_range_controller(scorer, plain):
    config = ModelConfig(hidden=(8, 7), rho=(5, 4), range_limit=2.5, range_slope=3.0)
    x, context = 10.0 * rows(6), jnp.array([5.0, -5.0, 3.0, 0.0])
    free = plain.scorer(scorer, x, context)
    scores = apply_scorer(config, scorer, x, context)
    np.testing.assert_allclose(scores, 2.5 * np.tanh(3.0 * free), rtol=2e-5, atol=1e-6)
    assert np.abs(scores).max() <= 2.5
    assert np.abs(scores - free).max() > 0.1


def test_the_deep_set_is_phi_then_mean_then_rho(deep_set, support, plain):
    np.testing.assert_allclose(
        apply_deep_set(CONFIG, deep_set, *support), plain.deep_set(deep_set, *support), rtol=1e-5, atol=1e-6
    )


def test_the_deep_set_does_not_see_the_order(deep_set, support):
    order = np.random.default_rng(6).permutation(7)
    shuffled = (field[order] for field in support)
    np.testing.assert_allclose(
        apply_deep_set(CONFIG, deep_set, *shuffled), apply_deep_set(CONFIG, deep_set, *support), rtol=1e-5, atol=1e-6
    )


def test_the_deep_set_sees_every_item_and_response(deep_set, support):
    x, response, where = support
    context = apply_deep_set(CONFIG, deep_set, *support)
    for changed in ((x.at[3].add(0.5), response), (x, response.at[5].add(0.5))):
        assert np.abs(apply_deep_set(CONFIG, deep_set, *changed, where) - context).max() > 1e-3


def test_empty_slots_are_as_if_dropped(deep_set, support):
    x, response, where = support
    garbage = jnp.where(where[:, None], x, 1e6), jnp.where(where, response, -1e6)
    context = apply_deep_set(CONFIG, deep_set, *garbage, where)
    kept = (field[np.asarray(where)] for field in support)
    np.testing.assert_allclose(context, apply_deep_set(CONFIG, deep_set, *kept), rtol=1e-5, atol=1e-6)


def test_an_empty_support_is_the_context_of_nothing(deep_set, support, plain):
    nothing = (*support[:2], jnp.zeros(7, bool))
    context = apply_deep_set(CONFIG, deep_set, *nothing)
    np.testing.assert_allclose(context, plain.deep_set(deep_set, *nothing), rtol=1e-5, atol=1e-6)
