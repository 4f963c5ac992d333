"""Student's processes against scipy's densities, in float64 and with empty slots full of rubbish."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_t, t

from dre_jax.gp.regression import noisy, predict, ready
from dre_jax.gp.student import log_evidence, weigh

FREEDOM, NOISE, N, NEW, EMPTY = 4.5, 0.2, 8, 3, 4


@jax.jit
def evidence(kernel, y, where):
    return log_evidence(noisy(kernel, jnp.asarray(NOISE, y.dtype), where), y, where, jnp.asarray(FREEDOM, y.dtype))


@jax.jit
def predicted(kernel, y, where, cross, prior):
    found = weigh(noisy(kernel, jnp.asarray(NOISE, y.dtype), where), y, where, FREEDOM)
    return *predict(ready(found.given), cross, prior), found.scale, found.log_density, found.variance_scale


slope = jax.jit(jax.grad(evidence, argnums=(0, 1)))


def problem(seed):
    """Covariance of the signals at trials and new points, and observations of a scale that is not the covariance's."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N + NEW, N + NEW))
    return root @ root.T / N, 3.0 * rng.normal(size=N)


def slots(kernel, y, dtype=np.float64):
    """The trials, with empty slots behind."""
    padded = np.pad(kernel[:N, :N], ((0, EMPTY), (0, EMPTY)), constant_values=9.0)
    return jnp.asarray(padded, dtype), jnp.asarray(np.pad(y, (0, EMPTY)), dtype), jnp.arange(N + EMPTY) < N


def density(matrix, y):
    return multivariate_t(np.zeros(len(y)), matrix, df=FREEDOM).logpdf(y)


def scipys(kernel, y):
    return density(kernel[:N, :N] + NOISE * np.eye(N), y)


def test_evidence_is_scipys_but_for_a_term_in_the_number():
    (kernel, y), (other_kernel, other_y) = problem(0), problem(1)
    pairs = [(kernel, y), (kernel, other_y), (other_kernel, y), (kernel, 0.0 * y)]
    with jax.enable_x64(True):
        found = np.array([evidence(*slots(*pair)) for pair in pairs])
    expected = np.array([scipys(*pair) for pair in pairs])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-9)


def test_gradient_is_that_of_scipys_density():
    kernel, y = problem(2)
    with jax.enable_x64(True):
        of_kernel, of_y = (np.asarray(a) for a in slope(*slots(kernel, y)))
    assert (of_kernel[N:] == 0.0).all()
    assert (of_kernel[:, N:] == 0.0).all()
    assert (of_y[N:] == 0.0).all()
    rng, step = np.random.default_rng(3), 1e-5
    for _ in range(4):
        root, along = rng.normal(size=kernel.shape), rng.normal(size=N)
        aside = root + root.T
        up, down = (scipys(kernel + sign * step * aside, y + sign * step * along) for sign in (1, -1))
        expected = (of_kernel[:N, :N] * aside[:N, :N]).sum() + of_y[:N] @ along
        assert (up - down) / (2.0 * step) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_are_the_conditional_density(dtype):
    """What is added to the density by one more signal is Student's, with the scale that was found."""
    kernel, y = problem(4)
    joint = kernel + np.diag(np.r_[np.full(N, NOISE), np.zeros(NEW)])
    cross = np.pad(kernel[:N, N:], ((0, EMPTY), (0, 0)), constant_values=9.0)
    with jax.enable_x64(dtype == np.float64):
        more = (jnp.asarray(a, dtype) for a in (cross, np.diag(kernel)[N:]))
        found = [np.asarray(a, np.float64) for a in predicted(*slots(kernel, y, dtype), *more)]
    mean, variance, scale, _, variance_scale = found
    assert scale > 1.5
    for i in range(NEW):
        rows = [*range(N), N + i]
        for value in (-2.0, 0.5, 7.0):
            added = density(joint[np.ix_(rows, rows)], np.r_[y, value]) - scipys(kernel, y)
            student = t(FREEDOM + N, mean[i], np.sqrt(scale * variance[i]))
            assert student.logpdf(value) == pytest.approx(added, rel=1e-8 if dtype == np.float64 else 2e-3)
        assert variance_scale * variance[i] == pytest.approx(student.var(), rel=1e-5)


def test_nothing_is_known_without_trials():
    kernel, y = problem(5)
    kernel, y, _ = slots(kernel, 0.0 * y, np.float32)
    nothing, one = jnp.zeros((N + EMPTY, 1)), jnp.full(1, 0.7)
    found = predicted(kernel, y, jnp.zeros(N + EMPTY, bool), nothing + 9.0, one)
    mean, variance, scale, value, variance_scale = (float(a.ravel()[0]) for a in found)
    assert (mean, variance, scale, value) == (0.0, pytest.approx(0.7), 1.0, 0.0)
    assert variance_scale == pytest.approx(t(FREEDOM).var())
