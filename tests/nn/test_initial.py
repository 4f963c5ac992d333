"""Random weights against the theory of their distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax.nn.initial import draw

SHAPES = {
    "first_kernel": jax.ShapeDtypeStruct((9, 40), jnp.float32),
    "first_bias": jax.ShapeDtypeStruct((40,), jnp.float32),
    "out_kernel": jax.ShapeDtypeStruct((40, 3), jnp.float32),
    "out_bias": jax.ShapeDtypeStruct((3,), jnp.float32),
}
N_DRAWS = 60


@pytest.fixture(scope="module", params=["lecun_normal", "torch_uniform"])
def drawn(request):
    """Name of the initialiser, and sixty networks from keys of their own."""
    keys = jax.random.split(jax.random.key(0), N_DRAWS)
    networks = jax.jit(jax.vmap(lambda key: draw(SHAPES, request.param, key)))(keys)
    return request.param, jax.tree.map(np.asarray, networks)


@pytest.mark.parametrize("layer", ["first", "out"])
def test_kernels_and_biases_follow_their_distributions(drawn, layer):
    name, networks = drawn
    for part in (f"{layer}_kernel", f"{layer}_bias"):
        assert networks[part].shape == (N_DRAWS, *SHAPES[part].shape)
        assert networks[part].dtype == np.float32
    root = np.sqrt(SHAPES[f"{layer}_kernel"].shape[0])
    kernel, bias = (networks[f"{layer}_{part}"].astype(np.float64).ravel() for part in ("kernel", "bias"))
    if name == "torch_uniform":
        expected = stats.uniform(-1.0 / root, 2.0 / root)
        assert stats.kstest(bias, expected.cdf).pvalue > 1e-3
    else:
        expected = stats.truncnorm(-2.0, 2.0, scale=1.0 / root / stats.truncnorm(-2.0, 2.0).std())
        np.testing.assert_array_equal(bias, 0.0)
    assert stats.kstest(kernel, expected.cdf).pvalue > 1e-3


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
