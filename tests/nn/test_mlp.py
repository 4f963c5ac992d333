"""Perceptrons, and mixtures of their predictions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.methods.baselines.shared import mixture_moments
from dre_jax.nn.mlp import MLPConfig, apply, features, init, shapes, standard_columns
from tests.oracles import forward

RNG = np.random.default_rng(0)
X = RNG.random((6, 3)).astype(np.float32)


@pytest.mark.parametrize(("name", "f"), [("tanh", np.tanh), ("relu", lambda a: np.maximum(a, 0.0))])
def test_equals_matrix_products(name, f):
    config = MLPConfig(hidden=(5, 4), activation=name, outputs=2)
    params = init(config, 3, jax.random.key(0))
    params = {key: value + 0.3 for key, value in params.items()}
    hidden, outputs = f(forward(params, X, "hidden", f)), forward(params, X, activation=f)
    np.testing.assert_allclose(features(config, params, X), hidden, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(apply(config, params, X), outputs, rtol=1e-4, atol=1e-6)
    shared = X[0, 1:]  # the last two columns, where all rows share them
    same = X.copy()
    same[:, 1:] = shared
    expected = apply(config, params, same)
    np.testing.assert_allclose(apply(config, params, X[:, :1], shared), expected, rtol=1e-4, atol=1e-6)
    assert {key: value.shape for key, value in params.items()} == {k: s.shape for k, s in shapes(config, 3).items()}


def test_columns_have_one_scale_and_a_mixture_its_moments():
    x = np.random.default_rng(0).random((100_000, 2)).astype(np.float32)
    result = np.asarray(standard_columns(jnp.asarray(x)))
    np.testing.assert_allclose(result.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(result.std(axis=0), 1.0, atol=0.01)
    where = jnp.array([True, False])
    assert (standard_columns(jnp.full((2, 2), jnp.nan).at[0].set(1.0), where)[1] == 0).all()
    means, variances = RNG.normal(size=(4, 3)), RNG.random((4, 3))
    mean, variance = mixture_moments(jnp.asarray(means, jnp.float32), jnp.asarray(variances, jnp.float32))
    # The thesis' form (its equation for the mixture).
    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, (variances + means**2).mean(axis=0) - means.mean(axis=0) ** 2, rtol=1e-4)
    shared = mixture_moments(jnp.asarray(means, jnp.float32), jnp.full((4, 1), 0.25))[1]
    np.testing.assert_allclose(shared, means.var(axis=0) + 0.25, rtol=1e-4)
