"""Figures of a study, and what it predicts."""

import math
import re
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from optuna.importance import get_param_importances

from dre_jax.errors import ConfigError, DataError, MissingExtraError
from dre_jax.tuning import Categorical, Evaluated, Float, Int, Optimizer, Space, Surrogate, Trial, past_of
from dre_jax.tuning.figures.study import write_study_page
from dre_jax.tuning.figures.values import plot_history
from dre_jax.tuning.optuna import to_study
from tests.known_methods import TaskMeans

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
    return [
        Trial(i, {"x": i / 10}, states.get(v, "complete"), v if isinstance(v, float) else None)
        for i, v in enumerate(values)
    ]


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
    stopped = Trial(len(values), {"x": 0.2}, "stopped", 3.0, reports=reports)
    study = Optimizer(Space({"x": Float(0.0, 1.0)}), direction="maximize")
    study._trials = [*trials_of(values), stopped]
    write_study_page(tmp_path / "page.html", "study", study.space, study.trials, study.objectives)
    page = (tmp_path / "page.html").read_text()
    by_optuna = ["Slices", "Importance"] if values[:1] == [1.0] else []
    assert re.findall("<h2>(.*?)</h2>", page) == ["History", *["Learning curves"] * bool(reports), *by_optuna, "Trials"]
    assert page.count("data:image/png;base64,") == page.count("<h2>") - 1


def test_optuna_draws_the_figures_by_hyperparameter(optimizer):
    """Its settings of matplotlib stay its own, and pyplot has no figure left."""
    before = dict(matplotlib.rcParams)
    figures = optimizer.figures()
    assert [*figures] == ["History", "Slices", "Contours", "Importance"]
    degree, kernel, x, y, _ = figures["Slices"].axes
    assert [axes.get_xlabel() for axes in (degree, kernel, x, y)] == sorted(SPACE)
    assert x.get_xscale() == "log"
    drawn = np.sort(y.collections[0].get_offsets()[:, 0])
    np.testing.assert_allclose(drawn, sorted(params["y"] for params in CONFIGURATIONS))
    assert len(degree.collections[0].get_offsets()) == sum("degree" in params for params in CONFIGURATIONS)
    assert dict(matplotlib.rcParams) == before
    assert not plt.get_fignums()


def test_many_slices_are_several_figures():
    optimizer = Optimizer(Space({name: Float(0.0, 1.0) for name in "abcdef"}))
    for values in np.random.default_rng(0).random((8, 6)):
        optimizer.add(dict(zip("abcdef", values, strict=True)), values.sum())
    figures = optimizer.figures()
    assert [*figures] == ["History", "Slices 1", "Slices 2", "Contours", "Importance"]
    assert [axes.get_xlabel() for axes in figures["Slices 2"].axes[:2]] == ["e", "f"]


def test_figures_without_optuna(optimizer, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dre_jax\[optuna\]'"):
        optimizer.figures()


@pytest.mark.slow
def test_figures_of_several_objectives():
    optimizer = Optimizer(SPACE, directions={"loss": "minimize", "size": "maximize"}, seed=0)
    for params in CONFIGURATIONS:
        optimizer.add(params, {"loss": loss(params), "size": params["y"]})
    kinds = ("History", "Slices", "Contours", "Importance")
    assert [*optimizer.figures()] == ["Front", *(f"{kind} of {name}" for name in ("loss", "size") for kind in kinds)]
    high, low = optimizer.predict([{"x": 0.1, "kernel": "rbf", "y": y} for y in (0.9, -0.9)], objective="size").mean
    assert high > low + 1.0
    with pytest.raises(ConfigError, match=r"'loss', 'size', .*objective=None"):
        optimizer.predict([])


def test_predictions(optimizer):
    """Near the trials' values at the trials, mirrored for the other direction, and uncertain far from all trials."""
    values = np.array([trial.value for trial in optimizer.trials])
    mean, deviation = optimizer.predict([trial.params for trial in optimizer.trials])
    np.testing.assert_allclose(mean[values < 5], values[values < 5], atol=0.05)
    mirrored = Optimizer(SPACE, direction="maximize", seed=0)
    for trial in optimizer.trials:
        mirrored.add(trial.params, -trial.value)
    np.testing.assert_allclose(mirrored.predict([trial.params for trial in optimizer.trials]), [-mean, deviation])
    assert optimizer.predict([{"x": 1e-3, "kernel": "poly", "degree": 2, "y": 1.0}]).deviation > 2 * deviation.max()


@pytest.mark.usefixtures("registries")
def test_predictions_need_a_model_and_trials():
    space = Space({"x": Float(0.0, 1.0)})
    optimizer = Optimizer(space, seed=0)
    for _ in range(2):
        with pytest.raises(DataError, match="predictions need trials with different values"):
            optimizer.predict([{"x": 0.5}])
        optimizer.add({"x": 0.1}, 1.0)
    studies = {str(t): [Evaluated({"x": i / 9}, abs(i / 9 - t / 3)) for i in range(10)] for t in range(3)}
    past = past_of(space, studies, direction="minimize")
    surrogate = Surrogate.fit(past, method=TaskMeans())
    with pytest.raises(ConfigError, match=r"gp-mixture .*tests.known_methods:TaskMeans"):
        Optimizer(space, surrogate).predict([{"x": 0.5}])


@pytest.mark.parametrize("diverged", [1e12, 1e200, math.inf])
def test_one_diverged_trial_does_not_decide_the_importance(diverged):
    """The trial is where the hyperparameter without effect is largest, which alone would then explain it."""
    optimizer = Optimizer(Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "nothing": Float(0.0, 1.0)}))
    points = np.random.default_rng(0).random((30, 3))
    worst = int(np.argmax(points[:, 2] - np.abs(points[:, 0] - 0.3)))
    for i, (x, y, nothing) in enumerate(points):
        value = diverged if i == worst else (x - 0.3) ** 2 + 0.5 * (y - 0.6) ** 2
        optimizer.add({"x": x, "y": y, "nothing": nothing}, value)
    axes = optimizer.figures()["Importance"].axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    drawn = dict(zip(names, (bar.get_width() for bar in axes.patches), strict=True))
    for shares in (drawn, get_param_importances(to_study(optimizer))):
        assert sum(shares.values()) == pytest.approx(1.0)
        assert shares["nothing"] < 0.1 < shares["x"]
