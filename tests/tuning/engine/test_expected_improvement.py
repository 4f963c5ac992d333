"""Expected improvement in units of the objective, and searches that end when little is left to gain."""

import math
from functools import partial

import jax
import numpy as np
import pytest
from scipy.stats import norm

from dre_jax import ConfigError, Float, Optimizer, Space, Surrogate
from dre_jax.methods import find
from dre_jax.search import make_history
from dre_jax.search.history import Candidates
from dre_jax.tuning.objectives.single import DEFAULT_METHOD, method_without_past

SPACE = Space({"x": Float(0.0, 1.0)})
OBSERVED = np.array([0.05, 0.3, 0.5, 0.62, 0.95])


def loss(x):
    return 1e4 + 700.0 * (np.sin(9.0 * x) + x)


def predict(method, history, x):
    fitted = method.fit_history(None, history, jax.random.key(0))
    return method.predict_components(fitted, history, Candidates(x, np.ones(len(x), bool)))


@pytest.mark.slow
def test_expected_improvement_equals_a_search_on_a_grid():
    """With the processes that the method fits, and scipy's formula in the units of the values."""
    optimizer = Optimizer(SPACE, direction="minimize", seed=0)
    assert optimizer.expected_improvement() == math.inf
    for x in OBSERVED:
        optimizer.add({"x": float(x)}, float(loss(x)))
    grid, values = np.linspace(0, 1, 2001), -loss(OBSERVED)
    method = method_without_past(DEFAULT_METHOD)
    with jax.enable_x64(True):
        history = make_history(OBSERVED[:, None], values, 32, np.float64)
        log_weight, mean, deviation = map(np.asarray, jax.jit(partial(predict, method))(history, grid[:, None]))
    mean, deviation = values.mean() + mean * values.std(), deviation * values.std()
    z = (mean - values.max()) / deviation
    best = np.max((deviation * (z * norm.cdf(z) + norm.pdf(z))) @ np.exp(log_weight))
    assert optimizer.expected_improvement() == pytest.approx(best, rel=0.01)
    assert len(optimizer.trials) == len(OBSERVED)


def test_a_search_ends_when_little_is_left_to_gain():
    optimizer = Optimizer(SPACE, direction="minimize", seed=0)
    optimizer.optimize(lambda trial: float(loss(trial["x"])), 40, stop_when_gain_below=1.0)
    grid = loss(np.linspace(0, 1, 2001))
    assert 14 <= len(optimizer.trials) < 40
    assert optimizer.best.value - grid.min() < 1.0
    n = len(optimizer.trials)
    optimizer.optimize(lambda trial: float(loss(trial["x"])), 40, stop_when_gain_below=1.0)
    assert len(optimizer.trials) == n
    for threshold in (0.0, math.nan):
        with pytest.raises(ConfigError, match="threshold of the expected gain must be positive"):
            optimizer.optimize(loss, 1, stop_when_gain_below=threshold)
    other = Optimizer(surrogate=Surrogate(SPACE, "gcp", find("gcp").make(), {}))
    with pytest.raises(ConfigError, match="but the method is gcp"):
        other.optimize(loss, 1, stop_when_gain_below=1.0)


@pytest.mark.parametrize("others", [{}, {3: 2.0}])
def test_a_search_of_equal_values_ends(others):
    """After thirty trials, not after the first few; a worse value changes nothing, a better one starts anew."""
    optimizer = Optimizer(SPACE, direction="minimize", seed=0)
    optimizer.optimize(lambda trial: others.get(trial.number, 1.0), 60, stop_when_gain_below=1e-3)
    assert len(optimizer.trials) == 30
    assert optimizer.expected_improvement() == 0.0
    assert optimizer.gain_is_below(1e-3)
    optimizer.add({"x": 0.5}, 0.5)
    assert not optimizer.gain_is_below(1e-3)
    assert optimizer.expected_improvement() > 0.0


def test_a_search_of_infinite_values_ends():
    optimizer = Optimizer(SPACE, direction="minimize", seed=0)
    optimizer.optimize(lambda trial: math.inf, 60, stop_when_gain_below=1e-3)
    assert len(optimizer.trials) == 30
    optimizer.add({"x": 0.5}, 0.5)
    assert not optimizer.gain_is_below(1e-3)


def test_a_search_with_many_ties_at_the_best_ends():
    """More than half of the trials have the best value, which no trial exceeds."""
    optimizer = Optimizer(SPACE, direction="minimize", seed=0)
    optimizer.optimize(lambda trial: max(abs(trial["x"] - 0.6) - 0.2, 0.0), 80, stop_when_gain_below=0.05)
    assert np.mean([trial.value == 0.0 for trial in optimizer.trials]) > 0.5
    assert len(optimizer.trials) < 80
