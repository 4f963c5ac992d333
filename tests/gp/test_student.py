"""The Student-t density and its gradient against scipy's, with empty slots; the learned priors test predictions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_t

from dre_jax.gp.regression import add_noise
from dre_jax.gp.student import log_student_t_density

DOF, NOISE, N, EMPTY = 4.5, 0.2, 8, 4


@jax.jit
def log_density(kernel, y, where):
    noise, dof = (jnp.asarray(number, y.dtype) for number in (NOISE, DOF))
    return log_student_t_density(add_noise(kernel, noise, where), y, where, dof)


gradient = jax.jit(jax.grad(log_density, argnums=(0, 1)))


def problem(seed):
    """Returns the signal covariance at trials, and observations of another scale."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N, N))
    return root @ root.T / N, 3.0 * rng.normal(size=N)


def slots(kernel, y):
    """Returns the trials followed by empty slots."""
    padded = np.pad(kernel, ((0, EMPTY), (0, EMPTY)), constant_values=9.0)
    return jnp.asarray(padded), jnp.asarray(np.pad(y, (0, EMPTY))), jnp.arange(N + EMPTY) < N


def scipy_density(kernel, y):
    return multivariate_t(np.zeros(N), kernel + NOISE * np.eye(N), df=DOF).logpdf(y)


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
        expected = (of_kernel[:N, :N] * aside).sum() + of_y[:N] @ along
        assert (up - down) / (2.0 * step) == pytest.approx(expected, rel=1e-5, abs=1e-5)
