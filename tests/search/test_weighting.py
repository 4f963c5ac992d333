"""Values of every kind times the weights of a model of feasibility."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.methods import find
from dre_jax.search.acquisition import RESOLUTION
from dre_jax.search.weighting import tie_noise, value_scale, values_are_logarithms, weigh

POINTS = jnp.linspace(0.0, 1.0, 5)[:, None]


class Slope(NamedTuple):
    """Log weights fall with the only coordinate."""

    decides: bool = False

    def log_weight(self, points):
        return -3.0 * points[:, 0]


def test_logarithms_of_improvements_are_added_to():
    improvements = np.array([0.5, 1.0, 1e-3, 0.0, 2.0])
    values = jnp.log(jnp.asarray(improvements)).at[4].set(-jnp.inf)  # the last is no candidate
    result = np.exp(np.asarray(weigh(values.at[3].set(-1e4), None, Slope(), POINTS)))
    expected = (improvements + RESOLUTION) * np.exp(-3.0 * np.asarray(POINTS[:, 0]))
    np.testing.assert_allclose(result[:4], expected[:4], rtol=1e-5)
    assert result[4] == 0.0
    assert values_are_logarithms(find("gp").make(), sample=False)
    assert not values_are_logarithms(find("gp").make(), sample=True)
    assert not values_are_logarithms(find("gp").make({"acquisition.kind": "lcb"}), sample=False)
    assert not values_are_logarithms(find("random").make(), sample=False)


@pytest.mark.parametrize(
    "values", [[3.0, 1.0, 2.0, 5.0, 4.0], [0.0, 1.0, 0.0, 0.0, 1.0], [300.0, 100.0, 1e9, 7.0, 0.0]]
)
def test_other_values_are_divided_by_their_deviation(values):
    """Whatever their unit: the order does not depend on it."""
    values, where = np.array(values, np.float32), np.arange(5) != 2
    expected = values / values[where].std() - 3.0 * np.asarray(POINTS[:, 0])
    for unit in (1.0, 1e-6, 1e6):
        scale = value_scale(jnp.asarray(unit * values), jnp.asarray(where))
        result = weigh(jnp.asarray(unit * values), scale, Slope(), POINTS)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_equal_values_are_draws_by_weight():
    values = jnp.zeros(5)
    bits = jax.random.bits(jax.random.key(0), (4000, 5), jnp.uint32)
    weighed = weigh(values, jnp.ones(()), Slope(), POINTS)
    draw = jax.jit(jax.vmap(lambda bits: jnp.argmax(weighed + tie_noise(values, bits))))
    rates = np.bincount(draw(bits), minlength=5) / 4000
    weights = np.exp(-3.0 * np.asarray(POINTS[:, 0]))
    np.testing.assert_allclose(rates, weights / weights.sum(), atol=0.03)
    assert not np.asarray(tie_noise(values.at[1].set(1.0), bits[0])).any()
    assert np.isfinite(tie_noise(values[:2], jnp.array([0, 2**32 - 1], jnp.uint32))).all()
