"""The gradient of the Student-t density against scipy's, with empty slots; the learned priors test the density."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_t

from dre_jax.gp.regression import add_noise
from dre_jax.gp.student import log_student_t_density

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
