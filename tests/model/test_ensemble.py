from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.model import EnsembleParams, ModelConfig, Support, blocks, init, scores, scores_in_blocks, widen
from dre_jax.model.ensemble import scale_response

N_COLUMNS, MEMBERS = 3, 4
CONFIGS = {
    context: ModelConfig(
        members=MEMBERS, hidden=(8, 8), phi=(6, 5), rho=(5, 4), context=context, initialiser="torch_uniform"
    )
    for context in ("own", "shared", "none")
}
every_context = pytest.mark.parametrize("context", CONFIGS)
compiled = jax.jit(scores, static_argnums=0)


def draw_support(n=6, seed=0):
    rng = np.random.default_rng(seed)
    x, response = rng.random((n, N_COLUMNS)), rng.normal(3.0, 2.0, n)
    return Support(jnp.asarray(x, jnp.float32), jnp.asarray(response, jnp.float32), jnp.arange(n) % 3 != 1)


def draw_rows(n=7):
    return jnp.asarray(np.random.default_rng(9).random((n, N_COLUMNS)), jnp.float32)


def params_of(context):
    return init(CONFIGS[context], N_COLUMNS, jax.random.key(1))


def min_max(support):
    """Responses as the deep set sees them, in float64."""
    response, where = (np.asarray(a) for a in (support.response.astype(jnp.float32), support.where))
    low, high = (np.float64(f(response[where])) for f in (np.min, np.max))
    return (response - low) / (high - low)


def plain_member(plain, context, params, i, support, x, response):
    """One member alone."""
    scorer = {name: a[i] for name, a in params.scorers.items()}
    if context == "none":
        return plain.scorer(scorer, x)
    deep_set = params.deep_set if context == "shared" else {name: a[i] for name, a in params.deep_set.items()}
    return plain.scorer(scorer, x, plain.deep_set(deep_set, support.x, response, support.where))


@every_context
def test_a_member_is_the_single_network(context, plain):
    params, support, x = params_of(context), draw_support(), draw_rows()
    values = compiled(CONFIGS[context], params, support, x)
    assert values.shape == (MEMBERS, 7)
    for i in range(MEMBERS):
        expected = plain_member(plain, context, params, i, support, x, min_max(support))
        np.testing.assert_allclose(values[i], expected, rtol=1e-4, atol=1e-6)


def test_the_tables_own_scale(plain):
    config = ModelConfig(**{**vars(CONFIGS["own"]), "response_scale": "table"})
    params, support, x = params_of("own"), draw_support(), draw_rows()
    values = compiled(config, params, support, x)
    expected = plain_member(plain, "own", params, 2, support, x, np.asarray(support.response))
    np.testing.assert_allclose(values[2], expected, rtol=1e-4, atol=1e-5)
    assert np.abs(values - compiled(CONFIGS["own"], params, support, x)).max() > 1e-3


@every_context
def test_members_differ(context):
    values = np.asarray(compiled(CONFIGS[context], params_of(context), draw_support(), draw_rows()))
    for i in range(MEMBERS):
        for j in range(i):
            assert np.abs(values[i] - values[j]).max() > 1e-3


def test_each_member_has_a_deep_set_of_its_own_or_all_share_one():
    own, shared = params_of("own"), params_of("shared")
    assert own.deep_set["phi_0_kernel"].shape == (MEMBERS, N_COLUMNS + 1, 6)
    assert len(np.unique(own.deep_set["phi_0_kernel"], axis=0)) == MEMBERS
    assert shared.deep_set["phi_0_kernel"].shape == (N_COLUMNS + 1, 6)
    assert params_of("none").deep_set is None


@every_context
def test_the_support_matters_only_with_a_deep_set(context):
    values = [compiled(CONFIGS[context], params_of(context), draw_support(seed=s), draw_rows()) for s in (0, 5)]
    assert (np.abs(values[0] - values[1]).max() > 1e-5) == (context != "none")


def test_another_members_parameters_do_not_matter():
    params, support, x = params_of("own"), draw_support(), draw_rows()
    moved = EnsembleParams(*jax.tree.map(lambda a: a.at[1].add(1.0), tuple(params)))
    before, after = (np.asarray(compiled(CONFIGS["own"], p, support, x)) for p in (params, moved))
    np.testing.assert_array_equal(np.delete(before, 1, axis=0), np.delete(after, 1, axis=0))
    assert np.abs(before[1] - after[1]).min() > 1e-3


def test_a_key_gives_the_same_members_and_another_key_others():
    first, again, other = (init(CONFIGS["own"], N_COLUMNS, jax.random.key(seed)) for seed in (1, 1, 2))
    for one, two, three in zip(*(jax.tree.leaves(p) for p in (first, again, other)), strict=True):
        np.testing.assert_array_equal(one, two)
        assert np.abs(one - three).min(axis=tuple(range(1, one.ndim))).max() > 0.0


def test_wrong_ranks_are_refused():
    support = draw_support()
    with pytest.raises(AssertionError):
        scores(CONFIGS["own"], params_of("own"), support, draw_rows()[0])


def test_scale_response_against_numpy():
    rng = np.random.default_rng(3)
    response = rng.normal(0.0, 100.0, (5, 8)).astype(np.float32)
    where = rng.random((5, 8)) < 0.6
    where[:, :2] = True
    scaled = np.asarray(scale_response(jnp.asarray(response), jnp.asarray(where)))
    for row, values, items in zip(scaled, response, where, strict=True):
        low, high = values[items].min(), values[items].max()
        np.testing.assert_allclose(row[items], (values[items] - low) / (high - low), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(row[~items], 0.5)


@pytest.mark.parametrize("where", [[True, True, True], [False, True, False], [False, False, False]])
def test_equal_responses_are_one_half(where):
    response = jnp.where(jnp.array(where), 7.0, jnp.nan)
    np.testing.assert_array_equal(scale_response(response, jnp.array(where)), 0.5)


@every_context
@pytest.mark.parametrize("n_rows", [1, 8, 13])
def test_blocks_change_nothing(context, n_rows, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    inputs = CONFIGS[context], params_of(context), draw_support(), draw_rows(n_rows)
    by_block = jax.jit(partial(scores_in_blocks, inputs[0]))(*inputs[1:])
    assert by_block.shape == (MEMBERS, n_rows)
    np.testing.assert_allclose(by_block, compiled(*inputs), rtol=1e-5, atol=1e-6)


@every_context
def test_columns_of_zeros_change_neither_scores_nor_gradients(context):
    config, params, support, x = CONFIGS[context], params_of(context), draw_support(), draw_rows()
    wide = widen(params, N_COLUMNS, N_COLUMNS + 2)

    def more(rows):
        return jnp.pad(rows, ((0, 0), (0, 2)))

    def loss(params, support, x):
        return jnp.sum(compiled(config, params, support, x) ** 2)

    wide_support = support._replace(x=more(support.x))
    expected = compiled(config, params, support, x)
    np.testing.assert_allclose(compiled(config, wide, wide_support, more(x)), expected, rtol=1e-6, atol=1e-7)
    gradient_of = jax.jit(jax.grad(loss))
    narrow_gradient, gradient = gradient_of(params, support, x), gradient_of(wide, wide_support, more(x))
    widened = widen(narrow_gradient, N_COLUMNS, N_COLUMNS + 2)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), gradient, widened)
    # What was added stays zero: an optimiser that moves by the gradient leaves it.
    assert not np.any(gradient.scorers["hidden_0_kernel"][:, N_COLUMNS : N_COLUMNS + 2])
