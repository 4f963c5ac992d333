"""Predictions are of the values as they are, calibrated, and compile one program for a size of history."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.gp.response_scale import ResponseTransform
from dre_jax.search.history import Components, make_history
from dre_jax.space.layout import unit_cube
from dre_jax.suggest.proposals import condition_on_trials
from dre_jax.tuning import EngineConfig, Float, Optimizer, Space
from dre_jax.tuning.engine import predictions
from dre_jax.tuning.engine.prediction_scale import choose_scale
from dre_jax.tuning.engine.predictions import HistoryFit, ScaledTrials, predict_mixture

SQUARE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def bowl(x):
    return 10.0 * np.sum((x - 0.3) ** 2, axis=1)


def wave(x):
    return np.sin(6 * x[:, 0]) + x[:, 1] ** 2 * np.cos(4 * x[:, 0])


def branin(x):
    a, b = 15 * x[:, 0] - 5, 15 * x[:, 1]
    return (b - 0.1292 * a**2 + 1.5915 * a - 6) ** 2 + 9.602 * np.cos(a) + 10


def study(x, values, **options):
    optimizer = Optimizer(SQUARE, **options)
    for point, value in zip(configurations(x), values, strict=True):
        optimizer.add(point, float(value))
    return optimizer


def configurations(x):
    return [{"x": float(a), "y": float(b)} for a, b in x]


@pytest.mark.parametrize("method", ["gp-mixture", "gp"])
def test_values_over_orders_of_magnitude_are_in_their_intervals(method):
    """The exponential of a bowl, from 1 to 1e7: 20 trials, none of which is capped."""
    x = np.random.default_rng(0).random((20, 2))
    values = np.exp(1.7 * bowl(x))
    assert values.max() > 1e4 * np.median(values)
    optimizer = study(x, values, config=EngineConfig(method=method))
    prediction = optimizer.predict(configurations(x))
    low, median, high = prediction.quantiles
    assert (low < values).all()
    assert (values < high).all()
    assert np.abs(np.log(median / values)).max() < 0.2
    np.testing.assert_allclose(prediction.mean, median, rtol=0.2)
    assert (np.abs(prediction.deviation / ((high - low) / 3.29) - 1.0) < 0.5).all()
    assert optimizer.best_by_prediction().number == int(np.argmin(values))


@pytest.mark.parametrize("diverged", [1e12, 1e300, math.inf])
def test_diverged_trials_are_in_their_intervals(diverged):
    """A region of diverged trials, among values of 0 to 10: they are predicted there, and not elsewhere."""
    x = np.random.default_rng(1).random((24, 2))
    values = np.where(x[:, 0] > 0.75, diverged, bowl(x))
    optimizer = study(x, values)
    low, median, high = optimizer.predict(configurations(x)).quantiles
    bad = values == diverged
    assert 2 < bad.sum() < 12
    assert (low <= values).all()
    assert (values <= high).all()
    assert (median[bad] > 1e3).all()
    assert (median[x[:, 0] < 0.5] < 12.0).all()
    assert not np.isnan(optimizer.predict(configurations(x)).deviation).any()


def test_the_other_direction_is_the_mirror_image():
    x, new = np.random.default_rng(2).random((2, 12, 2))
    values, shares = np.exp(bowl(x)), (0.1, 0.5, 0.8)
    prediction = study(x, values).predict(configurations(new), quantiles=shares)
    options = {"direction": "maximize"}
    mirrored = study(x, -values, **options).predict(configurations(new), quantiles=[1.0 - share for share in shares])
    np.testing.assert_allclose(mirrored.quantiles, -prediction.quantiles, rtol=1e-6)
    np.testing.assert_allclose(mirrored, [-prediction.mean, prediction.deviation], rtol=1e-6)
    assert (np.diff(prediction.quantiles, axis=0) > 0).all()


@pytest.mark.slow
def test_trials_of_a_search_are_in_their_intervals():
    """The trials concentrate where a logarithmic scale varies most."""
    optimizer = Optimizer(SQUARE, seed=1)
    optimizer.optimize(lambda trial: float(np.exp(3.0 * bowl(np.array([list(trial.params.values())]))[0])), 20)
    values = np.array([trial.value for trial in optimizer.trials])
    low, _, high = optimizer.predict([trial.params for trial in optimizer.trials]).quantiles
    assert values.max() > 1e4 * np.median(values)
    assert np.mean((low <= values) & (values <= high)) >= 0.9


@pytest.mark.parametrize("method", ["gp-mixture", "gp"])
def test_noise_is_that_of_new_trials(method):
    """Of 30 trials with noise of a deviation of 0.5, in five places."""
    x = np.tile(np.linspace(0.1, 0.9, 5), 6)[:, None].repeat(2, axis=1)
    values = x[:, 0] + np.random.default_rng(0).normal(0.0, 0.5, 30)
    optimizer = study(x, values, config=EngineConfig(method=method))
    expected, new = (optimizer.predict(configurations(x[:5]), noise=noise) for noise in (False, True))
    np.testing.assert_allclose(new.mean, expected.mean)
    noise = np.sqrt(new.deviation**2 - expected.deviation**2)
    np.testing.assert_allclose(noise, 0.5, atol=0.15)


@pytest.mark.parametrize("quantiles", [0.5, "0.5", [0.0], [0.5, 1.0], [math.nan], ["a"], None])
def test_quantiles_are_between_0_and_1(quantiles):
    with pytest.raises(ConfigError, match=r"quantiles must be a list of numbers between 0 and 1, but got"):
        Optimizer(SQUARE).predict([], quantiles=quantiles)


@dataclass(frozen=True)
class TwoComponents:
    """Predicts x - 1 and 2 x; is fitted to log weights and the scale of these predictions."""

    def predict_components(self, fitted_params, history, candidates):
        x = candidates.x
        means = jnp.concatenate([x - 1.0, 2.0 * x], axis=1)
        return Components(fitted_params[0], means, jnp.broadcast_to(jnp.array([0.5, 0.25]), means.shape))

    def noise_deviations(self, fitted_params, noise_var):
        return jnp.zeros(2)

    def response_transform(self, fitted_params):
        return fitted_params[1]


def test_a_prediction_describes_samples():
    weight, y = np.array([0.3, 0.7]), np.array([1.0, 5.0, 2.0, 9.0])
    history = make_history(np.zeros((4, 1)), y, capacity=6)
    scaled = ScaledTrials(history, y - 9.0, choose_scale(y, np.zeros((4, 1)), may_compress=False))
    standardise = ResponseTransform(*map(jnp.float32, ((y.mean() - 1.0) / 8.0, y.std() / 8.0, 0.0, np.inf)))
    fit = HistoryFit(scaled, (jnp.log(jnp.asarray(weight, jnp.float32)), standardise), 0.0)
    points, shares = np.array([[0.2], [0.8]], np.float32), np.array([0.05, 0.5, 0.95])
    mixture = predict_mixture(TwoComponents(), unit_cube(1), fit, points, noise=False)
    prediction = mixture.prediction(scaled.restore, shares, is_maximised=True)
    rng = np.random.default_rng(0)
    for i, x in enumerate((0.2, 0.8)):
        second = rng.random(200_000) < weight[1]
        standardised = np.where(second, 2 * x, x - 1) + np.where(second, 0.25, 0.5) * rng.standard_normal(200_000)
        samples = y.mean() + y.std() * standardised
        moments = prediction.mean[i], prediction.deviation[i]
        np.testing.assert_allclose(moments, [samples.mean(), samples.std()], rtol=0.01, atol=0.04)
        np.testing.assert_allclose(prediction.quantiles[:, i], np.quantile(samples, shares), atol=0.04)
    minimised = mixture.prediction(scaled.restore, shares, is_maximised=False)
    np.testing.assert_allclose(minimised.mean, -prediction.mean)
    np.testing.assert_allclose(minimised.quantiles, -prediction.quantiles[::-1])


def test_a_size_of_history_has_one_program():
    """Whatever the number of trials up to the capacity, and of configurations."""
    rng, programs = np.random.default_rng(0), (condition_on_trials, predictions._predict_block)
    x = rng.random((32, 2))
    optimizer = study(x[:7], bowl(x[:7]))
    optimizer.predict(configurations(x[:1]))
    before = [program._cache_size() for program in programs]
    for number, point in enumerate(x[7:], 7):
        optimizer.add(*configurations(point[None]), float(bowl(point[None])[0]))
        if number in (8, 19, 31):
            optimizer.predict(configurations(rng.random((number * number, 2))), noise=number == 19)
            optimizer.best_by_prediction()
    assert [program._cache_size() for program in programs] == before


def test_the_fit_of_the_same_trials_is_kept():
    x = np.random.default_rng(0).random((12, 2))
    optimizer = study(x, bowl(x))
    optimizer.predict(configurations(x))
    fit = optimizer._engine._last_fit
    before = optimizer.predict(configurations(x)).mean
    assert optimizer._engine._last_fit is fit
    optimizer.add({"x": 0.5, "y": 0.5}, 9.0)
    assert np.abs(optimizer.predict(configurations(x)).mean - before).max() > 1e-3


NOISY = {
    "noisy bowl": lambda x, rng: bowl(x) + rng.normal(0.0, 1.0, len(x)),
    "noisy wave": lambda x, rng: wave(x) + rng.normal(0.0, 0.3, len(x)),
    "noisy exponential": lambda x, rng: np.exp(bowl(x) + rng.normal(0.0, 0.7, len(x))),
    "noise": lambda x, rng: rng.normal(0.0, 1.0, len(x)),
}
HEAVY = {
    "exponential": lambda x, rng: np.exp(1.7 * bowl(x)),
    "power": lambda x, rng: 10 ** (branin(x) / 40),
    "square of a bowl": lambda x, rng: bowl(x) ** 2,
    "square": lambda x, rng: branin(x) ** 2,
}
SMOOTH = {
    "two waves": lambda x, rng: wave(2 * x),
    "ripples": lambda x, rng: bowl(x) / 3 + np.cos(12 * x).sum(axis=1) / 2,
    "step": lambda x, rng: bowl(x) + 5 * (x[:, 0] > 0.7),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["smooth", "heavy", "noisy"])
def test_intervals_hold_as_many_new_values_as_they_say(kind):
    coverage = []
    for f in {"smooth": SMOOTH, "heavy": HEAVY, "noisy": NOISY}[kind].values():
        for seed in range(8):
            rng = np.random.default_rng(seed)
            x, new = rng.random((30, 2)), rng.random((200, 2))
            low, high = study(x, f(x, rng)).predict(configurations(new), quantiles=(0.05, 0.95)).quantiles
            values = f(new, rng)
            coverage.append(np.mean((low <= values) & (values <= high)))
    assert 0.85 <= np.mean(coverage) <= 0.95, coverage
