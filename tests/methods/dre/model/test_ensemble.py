"""The ensemble against its networks in plain float64 NumPy, one member and one row after the other."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.methods.dre.model.ensemble import Support, init, scale_response, scores, scores_in_blocks
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.runtime import blocks
from tests.oracles import forward

N_COLUMNS, MEMBERS = 3, 4
SIZES = {"members": MEMBERS, "hidden": (8, 7), "phi": (6, 5), "rho": (5, 4), "initialiser": "torch_uniform"}
CONFIGS = {context: ModelConfig(**SIZES, context=context) for context in ("own", "shared", "none")}
LIMITED = ModelConfig(**SIZES, range_limit=2.5, range_slope=3.0)
TABLE = ModelConfig(**SIZES, response_scale="table")
compiled = jax.jit(scores, static_argnums=0)


def slow_scores(config, params, member, support, x):
    """One member alone."""
    scorer = {name: np.asarray(a, np.float64)[member] for name, a in params.scorers.items()}
    context = []
    if config.context != "none":
        of_member = member if config.context == "own" else ...
        deep_set = {name: np.asarray(a, np.float64)[of_member] for name, a in params.deep_set.items()}
        response = np.asarray(support.response, np.float64)
        if config.response_scale == "support" and support.where.any():
            filled = response[np.asarray(support.where)]
            response = (response - filled.min()) / np.ptp(filled)
        rows = [np.append(np.asarray(support.x)[i], response[i]) for i in np.flatnonzero(support.where)]
        items = [forward(deep_set, row, "phi") for row in rows]
        context = forward(deep_set, sum(items) / len(items) if items else np.zeros(config.phi[-1]), "rho")
    result = np.array([forward(scorer, np.concatenate([row, context])).item() for row in np.asarray(x, np.float64)])
    limit, slope = config.range_limit, config.range_slope
    return result if limit is None else limit * np.tanh(slope * result)


def draw_support(n=6, seed=0, garbage=7.0):
    rng = np.random.default_rng(seed)
    x, response, where = rng.random((n, N_COLUMNS)), rng.normal(3.0, 2.0, n), np.arange(n) % 3 != 1
    x[~where], response[~where] = garbage, garbage
    return Support(jnp.asarray(x, jnp.float32), jnp.asarray(response, jnp.float32), jnp.asarray(where))


def draw_rows(n=7):
    return jnp.asarray(np.random.default_rng(9).random((n, N_COLUMNS)), jnp.float32)


@cache
def params_of(context):
    return init(CONFIGS[context], N_COLUMNS, jax.random.key(1))


@pytest.mark.parametrize("config", [*CONFIGS.values(), LIMITED, TABLE], ids=[*CONFIGS, "limited", "table"])
def test_a_member_is_the_single_network(config):
    params, support, x = params_of(config.context), draw_support(), draw_rows()
    nothing = support._replace(where=jnp.zeros(6, bool))
    for calls in (support, draw_support(garbage=-1e6), draw_support(seed=1), nothing):
        values = np.asarray(compiled(config, params, calls, x))
        assert values.shape == (MEMBERS, 7)
        for i in range(MEMBERS):
            np.testing.assert_allclose(values[i], slow_scores(config, params, i, calls, x), rtol=1e-4, atol=1e-5)


def test_members_differ_and_a_key_gives_the_same_again():
    first, again, other = (init(CONFIGS["own"], N_COLUMNS, jax.random.key(seed)) for seed in (1, 1, 2))
    for one, two, three in zip(*(jax.tree.leaves(p) for p in (first, again, other)), strict=True):
        np.testing.assert_array_equal(one, two)
        assert len(np.unique(np.concatenate([one, three]), axis=0)) == 2 * MEMBERS
    for context, config in CONFIGS.items():
        values = np.asarray(compiled(config, params_of(context), draw_support(), draw_rows()))
        distances = np.abs(values[:, None] - values[None]).max(axis=-1)
        assert (distances + np.eye(MEMBERS) > 1e-3).all()


def test_scale_response_against_numpy():
    rng = np.random.default_rng(3)
    response = rng.normal(0.0, 100.0, (5, 8)).astype(np.float32)
    where = rng.random((5, 8)) < 0.6
    where[:, :2] = True
    response[4], where[2], where[3] = 7.0, False, np.arange(8) == 1
    response[~where] = np.nan
    scaled = np.asarray(scale_response(jnp.asarray(response), jnp.asarray(where)))
    np.testing.assert_array_equal(scaled[2:], 0.5)  # nothing, one response, equal ones
    for row, values, items in zip(scaled[:2], response, where, strict=False):
        low, high = values[items].min(), values[items].max()
        np.testing.assert_allclose(row[items], (values[items] - low) / (high - low), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(row[~items], 0.5)


@pytest.mark.parametrize("n_rows", [1, 8, 13])
def test_blocks_change_nothing(n_rows, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    inputs = CONFIGS["own"], params_of("own"), draw_support(), draw_rows(n_rows)
    by_block = jax.jit(partial(scores_in_blocks, inputs[0]))(*inputs[1:])
    assert by_block.shape == (MEMBERS, n_rows)
    np.testing.assert_allclose(by_block, compiled(*inputs), rtol=1e-5, atol=1e-6)
