"""The Student-t density and its gradient, with empty slots, against scipy's, and its limit against an integral."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t
from scipy.stats import t as student_t

from dre_jax.gp.regression import add_noise
from dre_jax.gp.student import condition_student_t, log_student_t_density, log_t_density

DOF, NOISE, N, EMPTY = 4.5, 0.2, 8, 4


@jax.jit
@partial(jax.grad, argnums=(0, 1))
def gradient(kernel, y, where):
    return log_student_t_density(add_noise(kernel, jnp.float64(NOISE), where), y, where, jnp.float64(DOF))


def scipy_density(kernel, y):
    return multivariate_t(np.zeros(N), kernel + NOISE * np.eye(N), df=DOF).logpdf(y)


def test_gradient_equals_that_of_scipy():
    rng, step = np.random.default_rng(2), 1e-5
    root, y = rng.normal(size=(N, N)), 3.0 * rng.normal(size=N)  # of another scale than the covariance
    kernel = root @ root.T / N
    padded = np.pad(kernel, ((0, EMPTY), (0, EMPTY)), constant_values=9.0)
    with jax.enable_x64(True):
        of_kernel, of_y = map(np.asarray, gradient(padded, np.pad(y, (0, EMPTY)), np.arange(N + EMPTY) < N))
    assert not of_kernel[N:].any()
    assert not of_kernel[:, N:].any()
    assert not of_y[N:].any()
    for _ in range(4):
        root, along = rng.normal(size=kernel.shape), rng.normal(size=N)
        aside = root + root.T
        up, down = (scipy_density(kernel + sign * step * aside, y + sign * step * along) for sign in (1, -1))
        expected = (of_kernel[:N, :N] * aside).sum() + of_y[:N] @ along
        assert (up - down) / (2.0 * step) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def integral_over_variances(kernel, y):
    """The log density of Gaussian observations, integrated over the logarithm of the variance."""
    variances = np.exp(np.linspace(-12.0, 12.0, 2401))
    return np.log(sum(np.exp(multivariate_normal.logpdf(y, cov=v * kernel)) for v in variances))


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize(
    ("degrees_of_freedom", "log_density"),
    [(DOF, lambda kernel, y: multivariate_t(np.zeros(3), kernel, df=DOF).logpdf(y)), (None, integral_over_variances)],
)
def test_densities_differ_as_those_of_scipy(degrees_of_freedom, log_density, xp):
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(2, 3, 3))
    cases = [(root @ root.T + np.eye(3), scale * rng.normal(size=3)) for root, scale in zip(roots, (1, 4), strict=True)]
    result = []
    for kernel, y in cases:
        squares, half_log_determinant = y @ np.linalg.solve(kernel, y), np.linalg.slogdet(kernel)[1] / 2
        with jax.enable_x64(True):
            result.append(float(log_t_density(xp.asarray(squares), half_log_determinant, 3, degrees_of_freedom)))
    expected = [log_density(kernel, y) for kernel, y in cases]
    assert result[1] - result[0] == pytest.approx(expected[1] - expected[0], rel=1e-6)


def test_a_prediction_is_the_joint_density_over_that_of_the_trials():
    """By the rule of conditional densities, with scipy's joint ones."""
    rng = np.random.default_rng(7)
    root = rng.normal(size=(N + 1, N + 1))
    kernel, y, new = root @ root.T / N, 2.0 * rng.normal(size=N), np.array([-3.0, 0.0, 0.5, 4.0])
    noisy = kernel + NOISE * np.diag([1.0] * N + [0.0])
    joint = [multivariate_t(np.zeros(N + 1), noisy, df=DOF).logpdf(np.append(y, value)) for value in new]
    where = np.arange(N + EMPTY) < N
    with jax.enable_x64(True):
        padded = np.pad(kernel[:N, :N], ((0, EMPTY), (0, EMPTY)), constant_values=9.0)
        matrix = add_noise(jnp.asarray(padded), jnp.float64(NOISE), where)
        posterior = condition_student_t(matrix, jnp.pad(jnp.asarray(y), (0, EMPTY)), where, DOF)
        cross = np.pad(kernel[:N, N:], ((0, EMPTY), (0, 0)), constant_values=9.0)
        mean, variance = map(float, jnp.squeeze(jnp.stack(posterior.predict(cross, jnp.asarray(kernel[N:, N]))), 1))
    freedom = DOF + N
    scale = (variance * (freedom - 2.0) / freedom) ** 0.5
    expected = np.array(joint) - scipy_density(kernel[:N, :N], y)
    np.testing.assert_allclose(student_t.logpdf(new, freedom, mean, scale), expected, rtol=1e-8)
