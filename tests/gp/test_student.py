"""Student-t processes against scipy's densities, in float64 and with arbitrary numbers in empty slots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_t, t

from dre_jax.gp.regression import add_noise, predict_signal, prepare_gp
from dre_jax.gp.student import condition_student_t, log_student_t_density

DOF, NOISE, N, NEW, EMPTY = 4.5, 0.2, 8, 3, 4


@jax.jit
def log_density(kernel, y, where):
    return log_student_t_density(
        add_noise(kernel, jnp.asarray(NOISE, y.dtype), where), y, where, jnp.asarray(DOF, y.dtype)
    )


@jax.jit
def predict(kernel, y, where, cross, prior):
    conditioned = condition_student_t(add_noise(kernel, jnp.asarray(NOISE, y.dtype), where), y, where, DOF)
    moments = predict_signal(prepare_gp(conditioned.gp), cross, prior)
    return *moments, conditioned.scale, conditioned.log_density, conditioned.variance_scale


gradient = jax.jit(jax.grad(log_density, argnums=(0, 1)))


def problem(seed):
    """Returns the signal covariance at trials and new points, and observations of another scale."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N + NEW, N + NEW))
    return root @ root.T / N, 3.0 * rng.normal(size=N)


def slots(kernel, y, dtype=np.float64):
    """Returns the trials followed by empty slots."""
    padded = np.pad(kernel[:N, :N], ((0, EMPTY), (0, EMPTY)), constant_values=9.0)
    return jnp.asarray(padded, dtype), jnp.asarray(np.pad(y, (0, EMPTY)), dtype), jnp.arange(N + EMPTY) < N


def density(matrix, y):
    return multivariate_t(np.zeros(len(y)), matrix, df=DOF).logpdf(y)


def scipy_density(kernel, y):
    return density(kernel[:N, :N] + NOISE * np.eye(N), y)


def test_log_density_equals_scipy_up_to_a_term_in_the_number():
    (kernel, y), (other_kernel, other_y) = problem(0), problem(1)
    pairs = [(kernel, y), (kernel, other_y), (other_kernel, y), (kernel, 0.0 * y)]
    with jax.enable_x64(True):
        found = np.array([log_density(*slots(*pair)) for pair in pairs])
    expected = np.array([scipy_density(*pair) for pair in pairs])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-9)


def test_gradient_equals_that_of_scipy():
    kernel, y = problem(2)
    with jax.enable_x64(True):
        of_kernel, of_y = (np.asarray(a) for a in gradient(*slots(kernel, y)))
    assert (of_kernel[N:] == 0.0).all()
    assert (of_kernel[:, N:] == 0.0).all()
    assert (of_y[N:] == 0.0).all()
    rng, step = np.random.default_rng(3), 1e-5
    for _ in range(4):
        root, along = rng.normal(size=kernel.shape), rng.normal(size=N)
        aside = root + root.T
        up, down = (scipy_density(kernel + sign * step * aside, y + sign * step * along) for sign in (1, -1))
        expected = (of_kernel[:N, :N] * aside[:N, :N]).sum() + of_y[:N] @ along
        assert (up - down) / (2.0 * step) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_equal_the_conditional_density(dtype):
    """The log-density of one more signal is the difference of two joint log-densities."""
    kernel, y = problem(4)
    joint = kernel + np.diag(np.r_[np.full(N, NOISE), np.zeros(NEW)])
    cross = np.pad(kernel[:N, N:], ((0, EMPTY), (0, 0)), constant_values=9.0)
    with jax.enable_x64(dtype == np.float64):
        more = (jnp.asarray(a, dtype) for a in (cross, np.diag(kernel)[N:]))
        found = [np.asarray(a, np.float64) for a in predict(*slots(kernel, y, dtype), *more)]
    mean, variance, scale, _, variance_scale = found
    assert scale > 1.5
    for i in range(NEW):
        rows = [*range(N), N + i]
        for value in (-2.0, 0.5, 7.0):
            added = density(joint[np.ix_(rows, rows)], np.r_[y, value]) - scipy_density(kernel, y)
            student = t(DOF + N, mean[i], np.sqrt(scale * variance[i]))
            assert student.logpdf(value) == pytest.approx(added, rel=1e-8 if dtype == np.float64 else 2e-3)
        assert variance_scale * variance[i] == pytest.approx(student.var(), rel=1e-5)


def test_prediction_without_trials_is_the_prior():
    kernel, y = problem(5)
    kernel, y, _ = slots(kernel, 0.0 * y, np.float32)
    nothing, one = jnp.zeros((N + EMPTY, 1)), jnp.full(1, 0.7)
    found = predict(kernel, y, jnp.zeros(N + EMPTY, bool), nothing + 9.0, one)
    mean, variance, scale, value, variance_scale = (float(a.ravel()[0]) for a in found)
    assert (mean, variance, scale, value) == (0.0, pytest.approx(0.7), 1.0, 0.0)
    assert variance_scale == pytest.approx(t(DOF).var())
