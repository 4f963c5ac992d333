"""Scrambled Sobol sequences: SciPy's, to the bit."""

import numpy as np
import pytest
from scipy.stats import qmc

from dre_jax.space import sobol


@pytest.mark.parametrize("n_parts", [1, 2, 7, 60, 200])
@pytest.mark.parametrize("n", [1, 2, 256, 1024])
def test_points_are_those_of_scipy(n, n_parts):
    for seed in (0, 12345678901234567890):
        sequence = qmc.Sobol(n_parts, scramble=True, seed=np.random.default_rng(seed))
        expected = sequence.random_base2(n.bit_length() - 1).astype(np.float32)
        points = sobol.sobol_points(n, n_parts, seed)
        assert points.dtype == np.float32
        np.testing.assert_array_equal(points, expected)


@pytest.mark.slow
def test_without_the_table_scipy_draws(monkeypatch):
    expected = sobol.sobol_points(8, 3, 1)
    monkeypatch.setattr(sobol, "_directions", lambda n_parts: None)
    np.testing.assert_array_equal(sobol.sobol_points(8, 3, 1), expected)
