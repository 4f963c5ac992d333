"""Random weights against the theory of their distributions, with bounds of five standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax.model.initial import draw

SHAPES = {
    "first_kernel": jax.ShapeDtypeStruct((9, 40), jnp.float32),
    "first_bias": jax.ShapeDtypeStruct((40,), jnp.float32),
    "out_kernel": jax.ShapeDtypeStruct((40, 3), jnp.float32),
    "out_bias": jax.ShapeDtypeStruct((3,), jnp.float32),
}
N_DRAWS = 60
CUT_NORMAL = stats.truncnorm(-2.0, 2.0)


@pytest.fixture(scope="module", params=["lecun_normal", "torch_uniform"])
def drawn(request):
    """Name of the initialiser, and sixty networks from keys of their own."""
    keys = jax.random.split(jax.random.key(0), N_DRAWS)
    networks = jax.jit(jax.vmap(lambda key: draw(SHAPES, request.param, key)))(keys)
    return request.param, jax.tree.map(np.asarray, networks)


def test_shapes_and_types(drawn):
    _, networks = drawn
    assert {name: a.shape for name, a in networks.items()} == {n: (N_DRAWS, *s.shape) for n, s in SHAPES.items()}
    assert {a.dtype for a in networks.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("layer", ["first", "out"])
def test_kernels_follow_their_distribution(drawn, layer):
    name, networks = drawn
    values = networks[f"{layer}_kernel"].astype(np.float64).ravel()
    inputs = SHAPES[f"{layer}_kernel"].shape[0]
    variance = 1.0 / inputs if name == "lecun_normal" else 1.0 / (3.0 * inputs)
    excess = float(CUT_NORMAL.stats("k")) if name == "lecun_normal" else -1.2
    n = len(values)
    assert abs(values.mean()) < 5.0 * np.sqrt(variance / n)
    assert abs(values.var() / variance - 1.0) < 5.0 * np.sqrt((excess + 2.0) / n)
    scale = np.sqrt(variance) / CUT_NORMAL.std()
    expected = (
        stats.truncnorm(-2.0, 2.0, scale=scale)
        if name == "lecun_normal"
        else stats.uniform(-1.0 / np.sqrt(inputs), 2.0 / np.sqrt(inputs))
    )
    assert stats.kstest(values, expected.cdf).pvalue > 1e-3


@pytest.mark.parametrize("layer", ["first", "out"])
def test_biases_follow_theirs(drawn, layer):
    name, networks = drawn
    values, inputs = networks[f"{layer}_bias"].ravel(), SHAPES[f"{layer}_kernel"].shape[0]
    if name == "lecun_normal":
        np.testing.assert_array_equal(values, 0.0)
    else:
        expected = stats.uniform(-1.0 / np.sqrt(inputs), 2.0 / np.sqrt(inputs))
        assert stats.kstest(values, expected.cdf).pvalue > 1e-3


def test_networks_and_layers_are_independent(drawn):
    _, networks = drawn
    flat = np.concatenate([networks[f"{layer}_kernel"].reshape(N_DRAWS, -1) for layer in ("first", "out")], axis=1)
    between_networks = np.corrcoef(flat)[np.triu_indices(N_DRAWS, 1)]
    between_weights = np.corrcoef(flat.T)[np.triu_indices(flat.shape[1], 1)]
    # The largest of n correlations of independent columns stays below this but once in a thousand.
    for correlations, length in ((between_networks, flat.shape[1]), (between_weights, N_DRAWS)):
        bound = stats.norm.isf(5e-4 / len(correlations)) / np.sqrt(length)
        assert np.abs(correlations).max() < 1.3 * bound
        assert abs(correlations.mean()) < 0.02


def test_a_key_gives_the_same_network_again(drawn):
    name, networks = drawn
    again = draw(SHAPES, name, jax.random.split(jax.random.key(0), N_DRAWS)[7])
    for part, values in again.items():
        np.testing.assert_allclose(values, networks[part][7], rtol=3e-6)
