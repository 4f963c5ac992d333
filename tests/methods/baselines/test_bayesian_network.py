"""The posterior of a Bayesian network against scipy, and its chain against importance sampling."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from dre_jax.methods.baselines.bayesian_network import PriorConfig, n_coordinates, potential, predictions
from dre_jax.methods.baselines.mixture import mixture_moments
from dre_jax.methods.baselines.sghmc import SGHMCConfig, sample
from dre_jax.nn.mlp import MLPConfig

SMALL = MLPConfig(hidden=(3,))
PRIOR = PriorConfig(weight_deviation=1.5, noise=0.1, noise_deviation=0.5)
X, Y = np.array([[-1.5], [0.0], [1.5]]), np.array([-1.0, 0.2, 0.8])
NEW = np.array([[-3.0], [-0.75], [0.75], [3.0]])


def slow(z, x):
    """Means f[S, n] and noise variances f[S] of the small network, written out."""
    noise = np.exp(np.log(0.1) + 0.5 * z[:, 0])
    hidden_bias, hidden = 1.5 * z[:, 1:4], 1.5 * z[:, 4:7]  # one input
    out_bias, out = 1.5 / np.sqrt(3.0) * z[:, 7], 1.5 / np.sqrt(3.0) * z[:, 8:11]
    h = np.tanh(x[None, :, :] * hidden[:, None, :] + hidden_bias[:, None, :])
    return np.einsum("snh,sh->sn", h, out) + out_bias[:, None], noise


@pytest.fixture(scope="module")
def z():
    return np.random.default_rng(0).normal(size=(400_000, 11))


def log_likelihood(z):
    mean, noise = slow(z, X)
    return norm.logpdf(Y[None, :], mean, np.sqrt(noise)[:, None]).sum(axis=1)


@pytest.mark.parametrize("empty", [0, 4])
def test_density(z, empty):
    assert n_coordinates(SMALL, 1) == 11
    few = z[:20]
    expected = -norm.logpdf(few).sum(axis=1) - log_likelihood(few)
    x, y = np.pad(X, ((0, empty), (0, 0)), constant_values=9.0), np.pad(Y, (0, empty), constant_values=9.0)
    where = jnp.arange(3 + empty) < 3
    f = partial(potential, SMALL, PRIOR, jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), where)
    found = jax.jit(jax.vmap(f))(jnp.asarray(few, jnp.float32))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-3, atol=1e-3)


def test_predictions(z):
    means, noises = jax.jit(predictions, static_argnums=(0, 1))(
        SMALL, PRIOR, jnp.asarray(z[:20], jnp.float32), jnp.asarray(NEW, jnp.float32)
    )
    expected = slow(z[:20], NEW)
    np.testing.assert_allclose(means, expected[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(noises[:, 0], expected[1], rtol=1e-4)


def test_the_chain_has_the_moments_of_the_posterior(z):
    means, noise = slow(z, NEW)
    weight = np.exp(log_likelihood(z))
    weight /= weight.sum()
    assert 1.0 / np.sum(weight**2) > 2000  # draws that count: the oracle's own error is a few per cent
    mean = weight @ means
    variance = weight @ (means - mean) ** 2 + weight @ noise

    where = jnp.ones(3, bool)
    f = partial(potential, SMALL, PRIOR, jnp.asarray(X, jnp.float32), jnp.asarray(Y, jnp.float32), where)
    config = SGHMCConfig(burn_in=1000, samples=400, keep_every=20, step_size=0.01)
    run = jax.jit(jax.vmap(lambda key: sample(config, jax.grad(f), jax.random.normal(key, (11,)), key)[0]))
    samples = run(jax.random.split(jax.random.key(1), 32)).reshape(-1, 11)
    moments = jax.jit(
        lambda samples: mixture_moments(*predictions(SMALL, PRIOR, samples, jnp.asarray(NEW, jnp.float32)))
    )
    found = moments(samples)
    np.testing.assert_allclose(found[0], mean, atol=0.06)
    np.testing.assert_allclose(np.sqrt(found[1]), np.sqrt(variance), rtol=0.08)
