"""Cholesky factors with the least sufficient jitter, and the solutions of their systems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.gp.cholesky import (
    _product,
    apply_inverse_factor,
    cholesky_solve,
    invert_factor,
    prepare_factor,
    safe_cholesky,
    triangular_solve,
)


def spread(rng, eigenvalues):
    """Returns a symmetric matrix with these eigenvalues."""
    basis, _ = np.linalg.qr(rng.normal(size=(len(eigenvalues), len(eigenvalues))))
    return jnp.asarray((basis * eigenvalues) @ basis.T, jnp.float32)


def test_positive_definite_matrices_need_no_jitter():
    matrix = spread(np.random.default_rng(0), np.linspace(0.5, 4.0, 7))
    lower, jitter = safe_cholesky(matrix)
    assert float(jitter) == 0.0
    np.testing.assert_allclose(lower, np.linalg.cholesky(np.asarray(matrix, np.float64)), atol=2e-6)
    right = jnp.arange(7.0)
    np.testing.assert_allclose(cholesky_solve(lower, right), np.linalg.solve(matrix, right), rtol=1e-4)
    np.testing.assert_allclose(triangular_solve(lower, right), np.linalg.solve(np.asarray(lower), right), rtol=1e-4)
    lower, _ = safe_cholesky(spread(np.random.default_rng(3), np.linspace(0.5, 4.0, 7)))
    right = np.random.default_rng(4).normal(size=(7, 5)).astype(np.float32)
    expected = np.linalg.solve(np.asarray(lower, np.float64), right)
    np.testing.assert_allclose(apply_inverse_factor(prepare_factor(lower), jnp.asarray(right)), expected, atol=1e-5)
    np.testing.assert_allclose(_product(invert_factor(lower), jnp.asarray(right)), expected, atol=1e-5)


@pytest.mark.parametrize("min_eigenvalue", [0.0, -1e-6, -1e-3, -0.3])
def test_jitter_grows_until_the_factor_is_finite(min_eigenvalue):
    matrix = spread(np.random.default_rng(1), np.array([min_eigenvalue, 0.0, 1.0, 2.0, 5.0]))
    lower, jitter = safe_cholesky(matrix)
    assert np.isfinite(lower).all()
    assert float(jitter) <= max(10 * -min_eigenvalue, 1e-4) * 1.7  # the mean of the diagonal is about 1.6
    assert float(safe_cholesky(1e6 * matrix)[1]) == pytest.approx(1e6 * float(jitter), rel=1e-3)
    np.testing.assert_allclose(lower @ lower.T, np.asarray(matrix) + float(jitter) * np.eye(5), atol=2e-5)


def test_each_matrix_of_a_batch_has_its_own_jitter():
    good, bad = jnp.eye(3), jnp.ones((3, 3))
    lower, jitter = jax.jit(jax.vmap(safe_cholesky))(jnp.stack([good, bad]))
    np.testing.assert_array_equal(lower[0], np.eye(3))
    assert float(jitter[0]) == 0.0 < float(jitter[1])


def test_a_difference_needs_the_scale_of_its_matrices_and_nan_ends():
    # The difference of two equal covariances of size one is rounding error, partly negative.
    matrix = 1e-6 * spread(np.random.default_rng(3), np.array([-3.0, -1.0, 0.0, 1.0, 4.0]))
    assert np.isnan(safe_cholesky(matrix)[0]).any()
    lower, jitter = safe_cholesky(matrix, jnp.ones(()))
    assert np.isfinite(lower).all()
    assert float(jitter) < 1e-4
    lower, _ = safe_cholesky(jnp.full((3, 3), jnp.nan))
    assert np.isnan(jnp.diagonal(lower)).all()


def test_batches_are_loops_on_a_cpu():
    # A batched call can deadlock (see `dre_jax.gp.lapack`).
    def predict(matrix, right):
        lower, _ = safe_cholesky(matrix)
        return cholesky_solve(lower, triangular_solve(lower, right))

    rng = np.random.default_rng(4)
    halves = rng.normal(size=(2, 3, 5, 5))
    matrices = jnp.asarray(halves @ halves.transpose(0, 1, 3, 2) + np.eye(5), jnp.float32)
    right = jnp.asarray(rng.normal(size=(3, 5)), jnp.float32)
    both = jax.jit(jax.vmap(jax.vmap(predict), in_axes=(0, None)))
    text = both.lower(matrices, right).compile().as_text()
    calls = [line for line in text.splitlines() if "custom-call" in line and "lapack" in line]
    assert len(calls) == 4
    assert all("f32[5,5]" in line or "f32[5,1]" in line or "f32[1,5]" in line for line in calls), calls
    solutions = both(matrices, right)
    for i in range(2):
        for j in range(3):
            lower = np.linalg.cholesky(np.asarray(matrices[i, j], np.float64))
            expected = np.linalg.solve(lower @ lower.T, np.linalg.solve(lower, np.asarray(right[j])))
            np.testing.assert_allclose(solutions[i, j], expected, rtol=2e-3, atol=1e-4)
