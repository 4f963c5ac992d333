"""Bayesian networks against scipy and importance sampling; SG-HMC against NumPy loops."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from dre_jax.methods.baselines.bohamiann import (
    Chain,
    PriorConfig,
    Scales,
    SGHMCConfig,
    adapt_scales,
    n_coordinates,
    potential,
    predict_networks,
    run_chain,
    sample_chain,
    start_chain,
    take_step,
)
from dre_jax.methods.baselines.shared import mixture_moments
from dre_jax.nn.mlp import MLPConfig
from tests.oracles import in_slots

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
    f = partial(potential, SMALL, PRIOR, *in_slots(3 + empty, X, Y))
    result = jax.jit(jax.vmap(f))(jnp.asarray(few, jnp.float32))
    np.testing.assert_allclose(np.diff(result), np.diff(expected), rtol=1e-3, atol=1e-3)


def test_predictions(z):
    predict = jax.jit(partial(predict_networks, SMALL, PRIOR))
    means, noises = predict(jnp.asarray(z[:20], jnp.float32), jnp.asarray(NEW, jnp.float32))
    expected = slow(z[:20], NEW)
    np.testing.assert_allclose(means, expected[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(noises[:, 0], expected[1], rtol=1e-4)


@pytest.mark.slow
def test_the_chain_has_the_moments_of_the_posterior(z):
    means, noise = slow(z, NEW)
    weight = np.exp(log_likelihood(z))
    weight /= weight.sum()
    assert 1.0 / np.sum(weight**2) > 2000  # draws that count: the oracle's own error is a few per cent
    mean = weight @ means
    variance = weight @ (means - mean) ** 2 + weight @ noise

    f = partial(potential, SMALL, PRIOR, *in_slots(3, X, Y))
    config = SGHMCConfig(burn_in=1000, samples=400, keep_every=20, step_size=0.01)
    run = jax.jit(jax.vmap(lambda key: sample_chain(config, jax.grad(f), jax.random.normal(key, (11,)), key)[0]))
    samples = run(jax.random.split(jax.random.key(1), 32)).reshape(-1, 11)
    new = jnp.asarray(NEW, jnp.float32)
    result = jax.jit(lambda samples: mixture_moments(*predict_networks(SMALL, PRIOR, samples, new)))(samples)
    np.testing.assert_allclose(result[0], mean, atol=0.06)
    np.testing.assert_allclose(np.sqrt(result[1]), np.sqrt(variance), rtol=0.08)


CONFIG = SGHMCConfig(burn_in=500, samples=1500, keep_every=4, step_size=0.05, friction=0.2)


def slow_adapt(gradients):
    """The update equations, number by number, in float64."""
    history = []
    for column in np.asarray(gradients, np.float64).T:
        window, mean, square = 1.0, 1.0, 1.0
        for gradient in column:
            share = 1.0 / (window + 1.0)
            window = window + 1.0 - window * mean * mean / square
            mean = mean + share * (gradient - mean)
            square = square + share * (gradient * gradient - square)
        history.append((window, mean, square))
    return np.array(history).T


def test_statistics_equal_a_loop():
    # Noise, a drift and noise, no noise at all.
    rng = np.random.default_rng(0)
    gradients = np.stack([rng.normal(size=60), 30.0 + rng.normal(size=60), np.full(60, -1e3)], axis=1)
    scales = start_chain(jnp.zeros(3)).scales
    for gradient in gradients:
        scales = adapt_scales(scales, jnp.asarray(gradient, jnp.float32))
    np.testing.assert_allclose(np.stack(scales), slow_adapt(gradients), rtol=2e-3)
    # Noise makes the window long, a drift keeps it short.
    assert scales.window[0] > 10
    assert (scales.window[1:] < 2.5).all()


@pytest.mark.parametrize("adapting", [True, False])
def test_a_step_equals_its_equations(adapting):
    rng = np.random.default_rng(1)
    position, momentum, window, mean = (rng.normal(size=3) for _ in range(4))
    square = mean**2 + rng.random(3)
    scales = Scales(*(jnp.asarray(a, jnp.float32) for a in (window**2, mean, square)))
    chain = Chain(jnp.asarray(position, jnp.float32), jnp.asarray(momentum, jnp.float32), scales)
    gradient, noise = rng.normal(size=(2, 3))
    numbers = (jnp.asarray(a, jnp.float32) for a in (gradient, noise))
    after = take_step(CONFIG, chain, *numbers, adapting=adapting)
    if adapting:
        square = square + (gradient**2 - square) / (window**2 + 1.0)
    size = 0.05 * square**-0.5
    expected = (1.0 - 0.2) * momentum - size * gradient + np.sqrt(2.0 * 0.2 * size) * noise
    np.testing.assert_allclose(after.momentum, expected, rtol=1e-4)
    np.testing.assert_allclose(after.position, position + expected, rtol=1e-4)
    np.testing.assert_allclose(after.scales.square, square, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 19, 20, 47])
def test_walks_of_any_length(n):
    # Without noise or gradient the momentum decays, step by step.
    config = SGHMCConfig(**{**vars(CONFIG), "step_size": 1e-20})
    chain = start_chain(jnp.zeros(3))._replace(momentum=jnp.ones(3))
    after = run_chain(config, jnp.zeros_like, chain, jax.random.key(0), n, adapting=False)
    np.testing.assert_allclose(after.momentum, 0.8**n, rtol=1e-4, atol=1e-9)


def test_scales_are_fixed_after_burn_in():
    chains = [SGHMCConfig(burn_in=50, samples=samples, keep_every=4) for samples in (1, 20)]
    ends = [sample_chain(config, lambda z: 3.0 * z, jnp.ones(3), jax.random.key(0))[1] for config in chains]
    np.testing.assert_array_equal(*(end.scales for end in ends))
    assert np.abs(ends[0].scales.square - 1.0).max() > 0.1


@pytest.mark.parametrize("burn_in", [0, 50])
def test_a_chain_that_is_too_fast_stays_finite(burn_in):
    config = SGHMCConfig(burn_in=burn_in, samples=20, keep_every=50, step_size=10.0)
    positions, _ = sample_chain(config, lambda z: 1e8 * z, jnp.ones(4), jax.random.key(0))
    assert jnp.isfinite(positions).all()
    positions, _ = sample_chain(config, lambda z: jnp.full_like(z, jnp.nan), jnp.ones(4), jax.random.key(0))
    assert jnp.isfinite(positions).all()
