"""Values of every kind times the weights of a model of feasibility."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.methods import find
from dre_jax.search import make_history
from dre_jax.search.acquisition import (
    ACQUISITIONS,
    RESOLUTION,
    AcquisitionConfig,
    acquire_by_response,
    register_acquisition,
)
from dre_jax.space.layout import unit_cube
from dre_jax.suggest.candidates import CandidateConfig
from dre_jax.suggest.proposals import SuggestionInputs, TrialRecord, propose
from dre_jax.suggest.weighting import Weights, tie_noise, value_scale, values_are_logarithms, weigh

POINTS = jnp.linspace(0.0, 1.0, 5)[:, None]


class Slope(NamedTuple):
    """Log weights fall with the only coordinate."""

    decides: bool = False
    applies: bool = True

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


@dataclass(frozen=True)
class Predicting:
    """Predicts a mean by the first column and a deviation by the second."""

    acquisition: AcquisitionConfig

    def fit(self, meta, key):
        return None

    def acquire(self, params, history, candidates, key):
        best = jnp.max(history.response, where=history.where, initial=-jnp.inf)
        return acquire_by_response(self.acquisition, *candidates.x.T, best)


class Steep(Slope):
    """Log weights that compete with the improvements."""

    def log_weight(self, points):
        return -9.0 * points[:, 1]


def test_logarithms_of_a_users_acquisition_function_are_weighed_like_those_of_ours(registries):
    """For failures, and for costs and beliefs."""
    ours = ACQUISITIONS["ei"]
    register_acquisition("theirs", replace(ours, is_expected_improvement=False))
    register_acquisition("undeclared", replace(ours, is_expected_improvement=False, scale="linear"))
    x = np.array([[0.2, 0.5], [0.9, 0.5], [0.4, 0.1]], np.float32)
    history, nowhere = make_history(x, np.array([0.2, 0.9, 0.4])), (jnp.zeros((0, 2)), jnp.zeros(0))
    record = TrialRecord(history, jnp.asarray(x), jnp.zeros(3, bool), *nowhere)
    even = jax.random.uniform(jax.random.key(1), (64, 2))
    config, key = CandidateConfig(even=64, steps=0), jax.random.key(0)

    def proposals(kind, weights):
        method = Predicting(AcquisitionConfig(kind=kind))
        inputs = SuggestionInputs(None, record, even, key, jnp.int32(3), None, weights)
        return propose(method, unit_cube(2), config, inputs, 8)

    for weights in (Weights(feasibility=Steep()), Weights(cost=Steep())):
        expected = proposals("ei", weights)
        jax.tree.map(np.testing.assert_array_equal, proposals("theirs", weights), expected)
        assert (proposals("undeclared", weights).points[0] != expected.points[0]).any()
