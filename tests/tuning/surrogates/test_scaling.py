"""How the best configuration moves with features: sentences, and the figure."""

import math

import numpy as np
import pytest

from dre_jax import Categorical, Evaluated, Float, Int, Space, Surrogate, past_of
from dre_jax.data.features import FeatureColumn
from dre_jax.tuning.surrogates.scaling import Scaling, Slope
from dre_jax.tuning.surrogates.scaling_figure import best_values, scaling_panels
from tests.known_methods import BestLine, TaskMeans

SPACE = Space(
    {
        "rate": Float(1e-4, 1.0, log=True),
        "width": Int(0, 200),
        "kind": Categorical(["a", "b"]),
        "degree": Int(2, 6, when={"kind": "b"}),
    }
)
TASKS = {
    f"{rows} rows at {heat}": {"rows": rows, "heat": heat}
    for rows in (100, 1000, 10000)
    for heat in (90.0, 100.0, 120.0)
}


def best(rows, heat):
    """The rate falls by half a decade per decade of rows; the width rises by two per degree."""
    return {"rate": 10.0 ** (-1.0 - 0.5 * (math.log10(rows) - 2.0)), "width": round(2 * (heat - 80)), "kind": "a"}


def study(rows, heat, noise=0.0):
    """The best configuration, and eight worse ones; with noise, their order is drawn."""
    rng = np.random.default_rng(int(rows + heat))
    configurations = [best(rows, heat)] + [
        {"rate": 10.0 ** rng.uniform(-4, 0), "width": int(rng.integers(0, 201)), "kind": "b", "degree": 3}
        for _ in range(7)
    ]
    return [Evaluated(params, i + noise * rng.normal()) for i, params in enumerate(configurations)]


@pytest.fixture(scope="module")
def past():
    studies = {name: study(**features) for name, features in TASKS.items()}
    return past_of(SPACE, studies, direction="minimize", features=TASKS)


@pytest.fixture(scope="module")
def surrogate(past):
    return Surrogate.fit(past, method=BestLine(), quiet=True)


@pytest.mark.slow
def test_slopes_are_in_the_units_of_the_hyperparameters(surrogate):
    slopes = {(one.hyperparameter, one.feature.name): one for one in surrogate.scaling.slopes}
    assert list(slopes) == [(name, feature) for name in ("rate", "width", "degree") for feature in ("rows", "heat")]
    assert slopes["rate", "rows"].slope == pytest.approx(-0.5, abs=1e-4)
    assert slopes["width", "heat"].slope == pytest.approx(2.0, abs=1e-3)
    assert slopes["rate", "heat"].slope == pytest.approx(0.0, abs=1e-4)
    assert surrogate.for_task({"rows": 1e6, "heat": 100.0}).scaling.slopes == surrogate.scaling.slopes


def test_sentences():
    rows, heat, gpu = FeatureColumn("rows"), FeatureColumn("heat"), FeatureColumn("gpu", "h100")
    slopes = (
        Slope("rate", rows, -0.712, 0.0961, True, True),
        Slope("rate", heat, 0.00213, 0.0005, True, False),
        Slope("rate", gpu, -0.3, 0.1, True, False),
        Slope("width", rows, 1234.5, 60.0, False, True),
        Slope("width", heat, 3.0, 1.6, False, False),
        Slope("width", gpu, math.nan, math.inf, False, False),
        Slope("drop", heat, 1e-9, 1e-9, False, False),
    )
    assert Scaling(slopes).lines() == [
        "rate falls by 0.712 decades (±0.096) per decade of rows",
        "rate rises by 0.00213 decades (±0.00050) per unit of heat",
        "rate is lower by 0.30 decades (±0.10) where gpu is h100",
        "width rises by 1234 (±60) per decade of rows",
        "no clear trend: width with heat, gpu=h100; drop with heat",
    ]
    assert Scaling(()).lines() == []


def test_methods_without_features_have_no_scaling(past):
    with pytest.warns(UserWarning, match="TaskMeans does not use any: rows, heat"):
        surrogate = Surrogate.fit(past, method=TaskMeans(), quiet=True)
    assert surrogate.scaling is None
    assert surrogate.figures() == {}


def test_best_values_by_hand(surrogate):
    logarithms = best_values(SPACE, surrogate.studies, "rate")
    ranked = {name: [one.params["rate"] for one in study(**features)] for name, features in TASKS.items()}
    expected = [np.log10(rates[:2]).mean() for rates in ranked.values()]  # two of eight
    np.testing.assert_allclose(logarithms, expected, rtol=1e-4)
    assert best_values(SPACE, surrogate.studies, "degree").tolist() == pytest.approx([3.0] * len(TASKS))


def test_a_panel_leaves_out_the_effects_of_other_features():
    """The best width is 2 per degree, plus 30 per decade of rows; without the latter, only the degrees are left."""
    space = Space({"width": Float(0.0, 200.0)})

    def width(rows, heat):
        return 2.0 * (heat - 80.0) + 30.0 * (math.log10(rows) - 2.0)

    tasks = {name: [Evaluated({"width": width(**one) + d}, d) for d in (0.0, 1.0, 2.0)] for name, one in TASKS.items()}
    past = past_of(space, tasks, direction="minimize", features=TASKS)
    surrogate = Surrogate.fit(past, method=BestLine(), quiet=True).for_task({"rows": 1e6, "heat": None})
    parts = surrogate.scaling, space, surrogate.features, surrogate.studies, surrogate.task_features
    by_rows, by_heat = scaling_panels(*parts)
    heats = np.array([one["heat"] for one in TASKS.values()])
    np.testing.assert_allclose(by_heat.best, 2.0 * (heats - 80.0) + 30.0, rtol=1e-4)
    places = np.array([90.0, 120.0])
    np.testing.assert_allclose(by_heat.trend(places), [2.0 * (places - 80.0) + 30.0] * 3, rtol=1e-3)
    np.testing.assert_allclose(by_heat.trend(np.array([0.0, 1e3]))[1], [0.0, 200.0], atol=1e-9)  # the bounds
    assert (by_rows.task, by_heat.task) == (6.0, None)


def test_the_figure_has_a_panel_for_each_hyperparameter_and_feature(surrogate, tmp_path):
    figure = surrogate.for_task({"rows": 1e5, "heat": 100.0}).figures()["Scaling"]
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()] == [
        "best rate",
        "best width",
        "best degree",
    ]
    assert [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel()] == ["rows", "heat"]
    scales = [(axes.get_xscale(), axes.get_yscale()) for axes in figure.axes[:4]]
    assert scales == [("log", "log"), ("linear", "log"), ("log", "linear"), ("linear", "linear")]
    assert figure.axes[0].get_title().startswith("−0.5")
    figure.savefig(tmp_path / "scaling.png")
