import math

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.losses import position_weights

RULES = {
    "inverse_log": lambda j, k: 1.0 / math.log(j + 1),
    "inverse_linear": lambda j, k: 1.0 / j,
    "attention": lambda j, k: (k - j + 1) / sum(range(1, k + 1)),
    "none": lambda j, k: 1.0,
}


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("k", [1, 2, 7, 300])
def test_equals_the_formula(kind, k):
    weights = position_weights(kind, jnp.arange(1.0, k + 1.0), jnp.array(float(k)))
    expected = [RULES[kind](j, k) for j in range(1, k + 1)]
    assert weights.dtype == jnp.float32
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_lists_of_different_lengths_side_by_side():
    positions = jnp.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 2.0, 2.0]])
    weights = position_weights("attention", positions, jnp.array([[4.0], [2.0]]))
    np.testing.assert_allclose(weights, [[0.4, 0.3, 0.2, 0.1], [2 / 3, 1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)


@pytest.mark.parametrize("kind", RULES)
def test_empty_slots_ahead_and_empty_lists_stay_finite(kind):
    weights = position_weights(kind, jnp.zeros(3), jnp.array([0.0]))
    assert np.isfinite(weights).all()
    np.testing.assert_array_equal(weights, position_weights(kind, jnp.ones(3), jnp.array([0.0])))


def test_an_unknown_kind():
    with pytest.raises(ConfigError, match=r"position weights must be one of inverse_log, .*, but got 'log'"):
        position_weights("log", jnp.ones(1), jnp.array(1.0))
