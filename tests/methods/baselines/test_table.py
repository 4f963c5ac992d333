"""What host methods share, against SciPy and quadrature."""

import numpy as np
import pytest
from scipy import integrate, stats

from dre_jax.errors import MethodError
from dre_jax.methods.baselines.host_tables import best_row, log_expected_improvement
from tests.oracles import log_improvement


def test_expected_improvement_is_the_textbooks():
    rng = np.random.default_rng(0)
    mean, deviation, best = rng.normal(size=200), rng.uniform(0.1, 2.0, 200), 0.3
    expected = log_improvement(mean, deviation, best)
    np.testing.assert_allclose(log_expected_improvement(mean, deviation, best), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("z", [-0.99, -1.01, -7.0, -30.0, -999.0, -1001.0, -1e5])
def test_expected_improvement_far_below_the_best(z):
    # E[max(0, Z + z)] = pdf(z) times the integral of t exp(t z - t^2 / 2) over t > 0; t in units of 1 / |z|.
    integral, _ = integrate.quad(lambda t: t * np.exp(-t - 0.5 * (t / z) ** 2), 0, 60, epsabs=0, epsrel=1e-12)
    expected = stats.norm.logpdf(z) + np.log(integral / z**2)
    result = log_expected_improvement(np.array([z]), np.ones(1), 0.0)[0]
    assert result == pytest.approx(expected, rel=1e-9, abs=2e-6)


def test_of_equal_rows_each_has_its_turn_and_nan_is_no_value():
    np.random.seed(0)  # noqa: NPY002
    drawn = [best_row(np.array([1.0, 3.0, 3.0, -np.inf, 3.0])) for _ in range(60)]
    assert set(drawn) == {1, 2, 4}
    assert best_row(np.full(1, -np.inf)) == 0
    with pytest.raises(MethodError, match="gave 1 of them NaN"):
        best_row(np.array([1.0, np.nan]))
