"""What a method gets of the errors of values."""

import numpy as np
import pytest

from dre_jax.tuning import EngineConfig, Float, Optimizer
from dre_jax.tuning.suggestion.record import excess_errors


def test_the_least_variance_is_taken_off():
    errors, where = np.array([0.5, 1.3, 0.5, 0.1]), np.array([True, True, True, False])
    np.testing.assert_allclose(excess_errors(errors, where), [0.0, np.sqrt(1.3**2 - 0.5**2), 0.0, 0.0])
    np.testing.assert_array_equal(excess_errors(np.array([2.0]), np.array([False])), [2.0])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gp-mixture", "gp"])
def test_errors_that_are_alike_change_no_suggestion(method):
    def suggestion(stderr):
        optimizer = Optimizer({"x": Float(0.0, 1.0)}, seed=0, config=EngineConfig(method=method))
        for x in np.linspace(0.0, 1.0, 9):
            optimizer.add({"x": x}, np.sin(9.0 * x), stderr=stderr)
        return optimizer.ask()["x"]

    assert suggestion(0.2) == pytest.approx(suggestion(None), abs=1e-4)
