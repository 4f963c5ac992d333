"""Figures of a study, and what it predicts."""

import math
import re
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.search.history import Components, make_history
from dre_jax.search.layout import unit_cube
from dre_jax.search.method import Capabilities
from dre_jax.tuning import Categorical, Evaluated, Float, Int, Optimizer, Space, Surrogate, Trial, past_of
from dre_jax.tuning.figures.slices import ObjectiveFigures
from dre_jax.tuning.figures.study import write_study_page
from dre_jax.tuning.figures.trials import plot_history
from dre_jax.tuning.predicted_responses import predict_responses

SPACE = Space(
    {
        "x": Float(1e-3, 1.0, log=True),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "y": Float(-1.0, 1.0),
    }
)


def loss(params):
    return math.log10(params["x"]) ** 2 + params["y"] ** 2 + 0.1 * params.get("degree", 0)


CONFIGURATIONS = [SPACE.params(point) for point in np.random.default_rng(0).random((16, len(SPACE)))]


@pytest.fixture(scope="module")
def optimizer():
    optimizer = Optimizer(SPACE, seed=0)
    for params in CONFIGURATIONS:
        optimizer.add(params, loss(params))
    return optimizer


def trials_of(values):
    states = {None: "failed", "running": "running"}
    return [Trial(i, {}, states.get(v, "complete"), v if isinstance(v, float) else None) for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("direction", "best"), [("minimize", [3.0, 1.0, 1.0, 1.0]), ("maximize", [3.0, 3.0, 4.0, 4.0])]
)
def test_history(direction, best):
    (axes,) = plot_history(trials_of([3.0, None, 1.0, "running", 4.0]), direction).axes
    assert axes.lines[0].get_ydata().tolist() == best
    trials, failed = (points.get_offsets().tolist() for points in axes.collections)
    assert trials == [[0.0, 3.0], [2.0, 1.0], [4.0, 4.0]]
    assert [number for number, _ in failed] == [1.0]


@pytest.mark.parametrize(
    ("values", "reports"),
    [
        ([1.0, None, 2.0, math.inf, "running"], {1: 3.0, 2: math.inf, 3: 2.0}),
        ([], {1: math.inf, 2: math.inf}),
        ([None], {}),
        ([5.0], {}),
    ],
)
def test_a_page_of_few_trials(tmp_path, values, reports):
    stopped = Trial(len(values), {"x": 0.2}, "stopped", 3.0, _reports=reports)
    study = Optimizer(Space({"x": Float(0.0, 1.0)}), direction="maximize")
    study._trials = [*trials_of(values), stopped]
    write_study_page(tmp_path / "page.html", "study", study)
    page = (tmp_path / "page.html").read_text()
    assert re.findall("<h2>(.*?)</h2>", page) == ["History", *["Learning curves"] * bool(reports), "Slices", "Trials"]
    assert page.count("data:image/png;base64,") == page.count("<h2>") - 1


def test_slices_follow_the_loss_around_the_best_trial(optimizer):
    x, kernel, _, y = optimizer.figures()["Slices"].axes
    best = optimizer.best.params
    for axes, expected in ((x, lambda v: math.log10(v) ** 2 + best["y"] ** 2), (y, lambda v: v**2)):
        line = axes.lines[0]
        values = [expected(v) for v in line.get_xdata()]
        assert np.corrcoef(line.get_ydata(), values)[0, 1] > 0.95
        low, high = axes.collections[0].get_datalim(axes.transData).get_points()[:, 1]
        assert low < min(line.get_ydata()) < max(line.get_ydata()) < high
    assert kernel.containers[0].lines[0].get_xdata().tolist() == [0.0, 1.0]


def test_figures_of_several_objectives():
    optimizer = Optimizer(SPACE, directions={"loss": "minimize", "size": "maximize"}, seed=0)
    for params in CONFIGURATIONS:
        optimizer.add(params, {"loss": loss(params), "size": params["y"]})
    kinds = ("History", "Slices", "Contours", "Importance")
    assert [*optimizer.figures()] == ["Front", *(f"{kind} of {name}" for name in ("loss", "size") for kind in kinds)]
    high, low = optimizer.predict([{"x": 0.1, "kernel": "rbf", "y": y} for y in (0.9, -0.9)], objective="size").mean
    assert high > low + 1.0
    with pytest.raises(ConfigError, match="objectives of this study are 'loss', 'size', but got objective=None"):
        optimizer.predict([])


def test_predictions(optimizer):
    """Near the trials' values at the trials, mirrored for the other direction, and uncertain far from all trials."""
    values = np.array([trial.value for trial in optimizer.trials])
    mean, deviation = optimizer.predict([trial.params for trial in optimizer.trials])
    np.testing.assert_allclose(mean[values < 5], values[values < 5], atol=0.01)  # far worse ones are clipped
    mirrored = Optimizer(SPACE, direction="maximize", seed=0)
    for trial in optimizer.trials:
        mirrored.add(trial.params, -trial.value)
    np.testing.assert_allclose(mirrored.predict([trial.params for trial in optimizer.trials]), [-mean, deviation])
    assert optimizer.predict([{"x": 1e-3, "kernel": "poly", "degree": 2, "y": 1.0}]).deviation > 2 * deviation.max()


def test_predictions_need_a_model_and_trials():
    space = Space({"x": Float(0.0, 1.0)})
    optimizer = Optimizer(space, seed=0)
    for _ in range(2):
        with pytest.raises(DataError, match="predictions need trials with different values"):
            optimizer.predict([{"x": 0.5}])
        optimizer.add({"x": 0.1}, 1.0)
    studies = {str(t): [Evaluated({"x": i / 9}, abs(i / 9 - t / 3)) for i in range(10)] for t in range(3)}
    past = past_of(space, studies, direction="minimize")
    surrogate = Surrogate.fit(past, method="dre", settings={"training.steps": 1})
    with pytest.raises(ConfigError, match=r"predictions need hedged-prior, or gp .*, but the method is dre"):
        Optimizer(space, surrogate).predict([{"x": 0.5}])
    assert [*Optimizer(space, surrogate).figures()] == ["History", "Slices"]


@dataclass(frozen=True)
class TwoComponents:
    """Predicts x - 1 and 2 x, standardised."""

    capabilities = Capabilities(fits_history=True, predicts_components=True)

    def fit_history(self, params, history, key):
        return params

    def predict_components(self, fitted_params, history, candidates):
        x = candidates.x
        means = jnp.concatenate([x - 1.0, 2.0 * x], axis=1)
        return Components(fitted_params, means, jnp.broadcast_to(jnp.array([0.5, 0.25]), means.shape))


def test_the_moments_are_those_of_samples():
    weight, y = np.array([0.3, 0.7]), np.array([1.0, 5.0, 2.0, 9.0])
    history = make_history(np.zeros((4, 1)), y, capacity=6)
    points = jnp.array([[0.2], [0.8]], jnp.float32)
    log_weight = jnp.log(jnp.asarray(weight, jnp.float32))
    moments = predict_responses(TwoComponents(), unit_cube(1), log_weight, history, points, jax.random.key(0))
    rng, unit = np.random.default_rng(0), (y - y.min()) / np.ptp(y)
    for x, mean, deviation in zip((0.2, 0.8), *np.asarray(moments), strict=True):
        second = rng.random(200_000) < weight[1]
        standardised = np.where(second, 2 * x, x - 1) + np.where(second, 0.25, 0.5) * rng.standard_normal(200_000)
        samples = unit.mean() + unit.std() * standardised
        np.testing.assert_allclose([mean, deviation], [samples.mean(), samples.std()], rtol=0.01, atol=0.005)


@pytest.mark.parametrize("diverged", [1e12, 1e200, math.inf])
def test_one_diverged_trial_does_not_decide_the_importance(diverged):
    """The trial is where the hyperparameter without effect is largest, which alone would then explain it."""
    pytest.importorskip("sklearn")
    pytest.importorskip("optuna")
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "nothing": Float(0.0, 1.0)})
    points = np.random.default_rng(0).random((30, 3))
    worst = int(np.argmax(points[:, 2] - np.abs(points[:, 0] - 0.3)))
    values = [diverged if i == worst else (x - 0.3) ** 2 + 0.5 * (y - 0.6) ** 2 for i, (x, y, _) in enumerate(points)]
    trials = [
        Trial(i, space.params(point), "complete", value)
        for i, (point, value) in enumerate(zip(points, values, strict=True))
    ]
    shares = ObjectiveFigures(space, trials, "minimize", None).importances()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["nothing"] < 0.25 < shares["x"]
