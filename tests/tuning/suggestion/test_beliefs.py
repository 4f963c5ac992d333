"""Beliefs about good values: densities of SciPy, and what they do to suggestions."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dre_jax.suggest.weighting import log_belief
from dre_jax.tuning import Categorical, EngineConfig, Float, Int, Optimizer, Space, Surrogate
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.suggestion.beliefs import belief_weights, log_densities, to_quantiles
from dre_jax.tuning.suggestion.state import StudyState
from dre_jax.tuning.trials.objectives import objectives_of
from tests.known_methods import RISING
from tests.known_trials import complete_trial

SPACE = Space(
    {
        "rate": Float(1e-4, 1.0, log=True, likely=(1e-3, 1e-2)),
        "kernel": Categorical(["rbf", "poly", None], likely=["poly", None]),
        "degree": Int(1, 8, when={"kernel": "poly"}, likely=(2, 3)),
        "plain": Float(0.0, 1.0),
    }
)


def rising(space, start=(), **options):
    return Engine(space, objectives_of("maximize"), Surrogate(space, "rising", RISING, None, start), **options)


def density(low, high, deviation):
    """A fifth uniform, the rest constant between the ends and Gaussian beyond, in proportion to its integral."""

    def bump(u):
        peak = norm.pdf(0.0, scale=deviation)
        return 1.0 if low <= u <= high else norm.pdf(u - (low if u < low else high), scale=deviation) / peak

    total = sum(quad(bump, *ends)[0] for ends in ((0.0, low), (low, high), (high, 1.0)))
    return lambda u: 0.2 + 0.8 * bump(u) / total


def test_densities_and_their_quantiles_are_those_of_scipy():
    table, u = log_densities(SPACE), np.linspace(0.0, 1.0, 129)
    rate, degree = density(0.25, 0.5, 0.125), density(1.5 / 8, 2.5 / 8, 1 / 16)
    np.testing.assert_allclose(np.exp(table[0]), [rate(x) for x in u], rtol=1e-9)
    np.testing.assert_allclose(np.exp(table[3]), [degree(x) for x in u], rtol=1e-9)
    assert SPACE.sequence == ("rate", "kernel", "plain", "degree")
    assert not table[2].any()
    points = np.random.default_rng(0).random((50, 4))
    drawn = to_quantiles(table, points)
    share = lambda x: quad(rate, 0.0, x, points=[0.25, 0.5], limit=200)[0]  # noqa: E731
    np.testing.assert_allclose(list(map(share, drawn[:, 0])), points[:, 0], atol=2e-3)
    np.testing.assert_array_equal(drawn[:, 2], points[:, 2])


def test_weights_are_sums_over_active_hyperparameters():
    """In a compiled program, against a loop over configurations; choices have their exact shares."""
    table = log_densities(SPACE)
    rng = np.random.default_rng(1)
    configurations = [SPACE.params(point) for point in rng.random((64, 4))]
    points = np.array([SPACE.point(params) for params in configurations])
    belief = jax.jit(lambda points: log_belief(SPACE.layout, jnp.asarray(table, jnp.float32), points))
    result = belief(jnp.asarray(points, jnp.float32))
    rate, degree = density(0.25, 0.5, 0.125), density(1.5 / 8, 2.5 / 8, 1 / 16)
    for params, point, log in zip(configurations, points, result, strict=True):
        expected = np.log(rate(point[0])) + np.log(0.2 if params["kernel"] == "rbf" else 0.2 + 0.8 * 3 / 2)
        if "degree" in params:
            expected += np.log(degree((params["degree"] - 0.5) / 8))
        assert log == pytest.approx(expected, abs=0.01)


def test_a_weight_follows_the_responses():
    """A Bayesian linear regression with an intercept, whose slope has the prior mean and deviation 0.5."""
    table, rng = log_densities(SPACE), np.random.default_rng(3)
    points = np.array([SPACE.point(SPACE.params(point)) for point in rng.random((12, 4))])
    densities = log_belief(SPACE.layout, table, points)

    def power(points, responses):
        """The power of the densities, of a study with two empty slots."""
        n, none = np.int32(len(points)), np.int32(0)
        padded = np.pad(points, ((0, 2), (0, 0))), np.pad(responses, (0, 2), constant_values=9.0)
        state = StudyState(*padded, n, none, points[:0], none)
        weights = belief_weights(table, SPACE.layout, state, 6.0)
        below = table - table.max(axis=1, keepdims=True)
        result = weights.min() / below.min()
        np.testing.assert_allclose(weights, result * below, atol=1e-12)
        return result

    assert power(points, -densities) == 0.0
    assert power(points, densities) == pytest.approx(6.0 / 13)
    assert power(points[:1], densities[:1]) == pytest.approx(3.0)
    responses = rng.normal(size=12)
    values = (responses - responses.mean()) / responses.std()
    design = np.column_stack([np.ones(12), densities / np.sqrt(np.sum([np.var(row) for row in table]))])
    prior = np.diag([1e-9, 4.0])
    _, slope = np.linalg.solve(design.T @ design + prior, design.T @ values + prior @ [0.0, 0.5])
    assert 0.0 < slope < 0.5
    result = power(points, responses)
    assert result == pytest.approx(6.0 / 13 * slope / 0.5, rel=1e-6)


def test_a_weight_decays_with_the_number_of_trials():
    """The method wants high values, the belief low ones."""
    space = Space({"x": Float(0.0, 1.0, likely=(0.0, 0.1)), "y": Float(0.0, 1.0)})
    observed = [complete_trial({"x": 0.5, "y": i / 60}, float(i)) for i in range(60)]
    result = [rising(space).propose(observed[:n], number=n).params["x"] for n in (1, 60)]
    assert result[0] < 0.2
    assert result[1] > 0.9


def test_the_default_comes_first_and_likely_values_follow():
    space = Space({**SPACE, "rate": replace(SPACE["rate"], default=0.1), "degree": replace(SPACE["degree"], default=7)})
    space = Space({**space, "kernel": replace(space["kernel"], default="rbf")})
    optimizer = Optimizer(space, seed=3)
    first, *others = [optimizer.ask() for _ in range(4)]
    assert (first["rate"], first["kernel"]) == (0.1, "rbf")
    assert "degree" not in first.params
    assert sum(5e-4 < trial["rate"] < 2e-2 for trial in others) >= 2
    start = {"rate": 0.5, "kernel": None, "plain": 0.5}
    default = rising(space, (start,)).propose([], number=0).params
    assert (default["rate"], default["kernel"]) == (0.1, "rbf")
    assert rising(space, (start,)).propose([complete_trial(default, 0.0)], number=1).params == start


@pytest.mark.slow
def test_nothing_changes_without_a_belief():
    """A weight of 0 gives the picks of the space without likely values."""
    plain = Space({name: replace(parameter, likely=None) for name, parameter in SPACE.items()})
    rng = np.random.default_rng(2)
    observed = [complete_trial(plain.params(point), float(rng.normal())) for point in rng.random((6, 4))]
    ignored = rising(SPACE, config=EngineConfig(belief_weight=0.0))
    for n in (0, 6):
        expected = rising(plain).propose(observed[:n], number=n).params
        assert ignored.propose(observed[:n], number=n).params == expected
        assert rising(SPACE).propose(observed[:n], number=n).params != expected
