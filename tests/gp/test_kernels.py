"""What makes a function a kernel, over scales, numbers of columns and repeated points."""

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from dre_jax.gp.kernels import (
    Kernel,
    correlation,
    matern52,
    matern52_of_distance,
    squared_distances,
    squared_distances_by_products,
    squared_exponential,
)

LENGTHS = (0.05, 0.3, 30.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distances", [squared_distances, squared_distances_by_products])
@pytest.mark.parametrize("kernel", get_args(Kernel))
def test_matrices_are_symmetric_and_positive_semidefinite(kernel, distances, dtype):
    with jax.enable_x64(dtype == np.float64):
        matrix_of = jax.jit(lambda a: correlation(kernel, distances(a, a)))
        for columns in (1, 20):
            x = np.random.default_rng(columns).random((40, columns))
            x[30:35] = x[0]  # repeated points make a singular matrix
            for length in LENGTHS:
                matrix = np.asarray(matrix_of((x / length).astype(dtype)), np.float64)
                # Products round by a share of the largest squared distance; those below 1e-12 count as 1e-12.
                largest = columns / length**2 if distances is not squared_distances or dtype == np.float64 else 1.0
                error = max(1e-12, 16 * np.finfo(dtype).eps * max(1.0, largest))
                assert matrix.max() <= 1.0 + error
                np.testing.assert_allclose(np.diag(matrix), 1.0, atol=error)
                np.testing.assert_allclose(matrix, matrix.T, atol=error)
                assert np.linalg.eigvalsh(matrix).min() >= -len(x) * error


@pytest.mark.parametrize("kernel", get_args(Kernel))
def test_correlations_fall_with_the_distance(kernel):
    distances = np.concatenate([[-1e-9, 0.0], np.geomspace(1e-4, 1e4, 200)]).astype(np.float32)
    values = np.asarray(correlation(kernel, distances))
    assert (np.diff(values) <= 0).all()
    assert values[0] == pytest.approx(1.0)
    assert 0.0 <= values[-1] < 1e-6


DISTANCES = np.linspace(0.0, 6.0, 61)


@pytest.mark.parametrize(
    ("kernel", "correlation", "tolerance"),
    [
        (Matern(nu=2.5), lambda d: matern52(jnp.asarray(d**2, jnp.float32)), 1e-6),
        (Matern(nu=2.5), lambda d: matern52_of_distance(jnp.asarray(d, jnp.float32)), 1e-6),
        (Matern(nu=2.5), matern52_of_distance, 1e-15),
        (RBF(), lambda d: squared_exponential(jnp.asarray(d**2, jnp.float32)), 1e-6),
    ],
)
def test_correlations_are_those_of_scikit_learn(kernel, correlation, tolerance):
    expected = kernel(np.zeros((1, 1)), DISTANCES[:, None])[0]
    np.testing.assert_allclose(correlation(DISTANCES), expected, atol=tolerance)
