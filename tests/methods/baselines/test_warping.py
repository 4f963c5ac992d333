"""Bends of columns and responses, against their formulas and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax.methods.baselines.warping import kumaraswamy, normal_exponent, to_normal, yeo_johnson

SAMPLES = {
    "normal": lambda rng: rng.normal(size=40),
    "skewed": lambda rng: np.exp(rng.normal(size=40)),
    "skewed down": lambda rng: -np.exp(1.5 * rng.normal(size=25)),
    "few": lambda rng: rng.random(5),
}


def standard(y):
    return (y - y.mean()) / y.std()


def test_kumaraswamys_distribution_function():
    rng = np.random.default_rng(0)
    x, a, b = rng.random((50, 3)), np.array([0.3, 1.0, 4.0]), np.array([2.0, 0.1, 7.0])
    with jax.enable_x64(True):
        found = kumaraswamy(jnp.asarray(x), jnp.log(a), jnp.log(b))
    np.testing.assert_allclose(found, 1 - (1 - x**a) ** b, rtol=1e-9, atol=1e-12)


def test_kumaraswamy_leaves_alone_and_has_slopes_at_the_ends():
    x = jnp.array([[0.0], [0.25], [1.0]])
    none = jnp.zeros(1)
    np.testing.assert_allclose(kumaraswamy(x, none, none), x, atol=3e-6)
    jacobian = jax.jit(jax.jacobian(kumaraswamy, argnums=(0, 1, 2)))
    for log in (np.full(1, 3.0, np.float32), np.full(1, -3.0, np.float32)):
        assert all(np.isfinite(slope).all() for slope in jacobian(x, log, -log))


@pytest.mark.parametrize("exponent", [-5.0, -0.4, 0.0, 1e-4, 1.0, 1.9999, 2.0, 7.0])
def test_yeo_johnson(exponent):
    y = np.random.default_rng(1).normal(size=60)
    with jax.enable_x64(True):
        found = yeo_johnson(jnp.asarray(y), jnp.asarray(exponent))
    np.testing.assert_allclose(found, stats.yeojohnson(y, exponent), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_exponent_and_what_comes_of_it(name):
    y = SAMPLES[name](np.random.default_rng(2))
    bent, exponent = stats.yeojohnson(standard(y))
    assert -5 < exponent < 7
    # All in one shape, which is compiled once.
    padded, where = np.full(42, -9.0), np.arange(42) < len(y)
    padded[: len(y)] = y
    with jax.enable_x64(True):
        found = jax.jit(normal_exponent)(jnp.where(where, (padded - y.mean()) / y.std(), 0.0), where)
        normal = jax.jit(to_normal)(padded, where)
    assert float(found) == pytest.approx(exponent, abs=2e-3)
    np.testing.assert_allclose(normal[: len(y)], standard(bent), atol=5e-3)
    assert not normal[len(y) :].any()


@pytest.mark.parametrize("response", [[0.7, 0.7, 0.7], [0.4], [0.0, 0.0, 1.0]])
def test_responses_that_say_little(response):
    n = len(response)
    y = jnp.zeros(3).at[:n].set(jnp.array(response))
    found = jax.jit(to_normal)(y, jnp.arange(3) < n)
    assert bool(jnp.isfinite(found).all())
    assert bool((found == 0).all()) == (len(set(response)) == 1)
