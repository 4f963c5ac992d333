"""Calibration of predictions that are known to be right, or too sure; and the scale that truths are put on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.gp.response_scale import standardise
from dre_jax.search import make_history

ROWS = 20_000


@pytest.fixture(scope="module")
def script(part):
    return part("calibrate")


@pytest.fixture
def tried():
    """Nine trials, best last, and what the method's scale has for them."""
    history = make_history(np.zeros((9, 2)), np.arange(9.0) ** 2, capacity=12)
    return jax.device_get((history, standardise(history.response, history.where).y))


def test_trials_are_where_the_scale_has_them_and_what_is_beyond_goes_on(script, tried):
    history, scaled = tried
    nothing = jnp.zeros(1)
    predicted = script.Predicted(history, scaled, nothing, nothing, nothing > 0)
    own = np.asarray(history.response)[:9]
    np.testing.assert_allclose(script.on_its_scale(own, predicted), np.asarray(scaled)[:9], atol=1e-6)
    middle, above, further = script.on_its_scale(np.array([0.5 * (own[3] + own[4]), 1.1, 1.2]), predicted)
    assert middle == pytest.approx(float(scaled[3] + scaled[4]) / 2.0, abs=1e-6)
    assert float(scaled[8]) < above < further


@pytest.mark.parametrize("too_sure", [1.0, 2.0])
def test_measures_are_those_of_a_gaussian(too_sure, script, tried):
    history, scaled = tried
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.0, 1.0, ROWS)
    spread = 0.05
    predicted = script.Predicted(history, scaled, jnp.zeros(ROWS), jnp.zeros(ROWS), jnp.ones(ROWS, bool))
    where_it_is = script.on_its_scale(truth, predicted)
    mean = where_it_is + rng.normal(0.0, spread, ROWS)
    predicted = predicted._replace(mean=jnp.asarray(mean), deviation=jnp.full(ROWS, spread / too_sure))
    half, most, deviation, expected, found = script.measures(predicted, truth, next_row=int(mean.argmax()))
    assert deviation == pytest.approx(too_sure, rel=0.03)
    if too_sure == 1.0:
        assert (half, most) == (pytest.approx(0.5, abs=0.02), pytest.approx(0.9, abs=0.02))
    else:
        assert (half, most) == (pytest.approx(0.264, abs=0.02), pytest.approx(0.589, abs=0.02))  # of |z| / 2
    assert 0.0 < expected < 1.0
    assert found == 0.0  # the best trial is as good as any truth here


def test_a_row_better_than_all_trials_is_an_improvement(script, tried):
    history, scaled = tried
    ones = jnp.ones(3)
    predicted = script.Predicted(history, scaled, ones, ones, ones > 0)
    assert script.measures(predicted, np.array([0.2, 1.3, 0.4]), next_row=1)[-1] == 1.0


def test_errors_are_over_the_tasks_of_each_space(script):
    rng = np.random.default_rng(0)
    spaces = [rng.normal(size=(n, 1, 5)) for n in (4, 9)]
    cell = script.table(spaces, [7]).splitlines()[-1].split(" | ")[1]
    mean = np.mean([one[:, 0, 0].mean() for one in spaces])
    error = np.sqrt(sum(one[:, 0, 0].var(ddof=1) / len(one) for one in spaces)) / 2.0
    assert cell == f"{mean:.2f} ± {error:.2f}"
