"""Curves: what is drawn, from the averages of a comparison; axes that a zero does not break; legends outside."""

import numpy as np
import pytest

from dre_jax.report.curves import curves_data, draw_curves, grid_data


@pytest.mark.parametrize("quantity", ["rank", "regret"])
def test_values_and_bands(make_comparison, quantity):
    given = make_comparison()
    data = curves_data(given, quantity, "Title")
    average = given.average_rank() if quantity == "rank" else given.average_regret()
    error = given.rank_error() if quantity == "rank" else given.standard_error()
    for i, curve in enumerate(data.curves):
        assert (curve.method, curve.position) == (f"method {i}", i)
        np.testing.assert_allclose(curve.value, average[i])
        np.testing.assert_allclose(curve.high, average[i] + error[i])
        foot = -np.inf if data.foot is None else data.foot
        np.testing.assert_allclose(curve.low, np.maximum(average[i] - error[i], foot))
    assert data.notes == ("Band: ±1 standard error over 4 tasks",)
    assert not data.lifted


def test_no_bands_without_a_second_task_or_for_many_methods(make_comparison):
    one = curves_data(make_comparison(n_runs=2, spaces=("s",)), "rank", "Title")
    many = curves_data(make_comparison(n_methods=9), "rank", "Title")
    for data, said in ((one, "one task"), (many, "more than 8")):
        assert all(curve.low is None and curve.high is None for curve in data.curves)
        assert said in data.notes[0]


def test_the_foot_of_the_logarithmic_axis(make_comparison):
    regret = np.full((3, 8, 21), 0.5)
    regret[0, :, 10:] = 0.0
    regret[1, :, 10:] = 1e-7  # far below: four decades are all there is
    data = curves_data(make_comparison(regret=regret), "regret", "Title")
    assert data.foot == pytest.approx(0.5e-4)
    assert data.lifted
    assert "drawn at the foot" in data.notes[1]
    assert all((curve.value >= data.foot).all() for curve in data.curves)
    assert data.curves[0].value[-1] == data.foot
    regret[0, :, 10:], regret[1] = 1e-16, 0.5  # rounding noise counts as zero
    data = curves_data(make_comparison(regret=regret), "regret", "Title")
    assert (data.foot, data.lifted) == (pytest.approx(0.5 / 1.1), True)


def test_no_regret_at_all_has_a_linear_axis(make_comparison, tmp_path):
    data = curves_data(make_comparison(regret=np.zeros((3, 8, 21))), "regret", "Title")
    assert data.foot is None
    draw_curves(data, tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").stat().st_size > 1000


def test_panels_are_the_search_spaces(make_comparison):
    given = make_comparison(n_runs=12, spaces=("b", "a", "c"))
    panels = grid_data(given, "regret")
    assert [panel.title for panel in panels] == [f"{name} (2 tasks)" for name in "bac"]
    for panel, start in zip(panels, (0, 4, 8), strict=True):
        for i, curve in enumerate(panel.curves):
            expected = given.regret[i, start : start + 4].mean(axis=0)
            np.testing.assert_allclose(curve.value, np.maximum(expected, panel.foot))
            assert curve.low is None
