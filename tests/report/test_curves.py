"""Curves: what is drawn, from the averages of a comparison, and where a logarithmic axis ends."""

import numpy as np
import pytest

from dre_jax.report.curves import curves_data, grid_data


@pytest.mark.parametrize("quantity", ["rank", "regret"])
def test_values_and_bands(make_comparison, quantity):
    given = make_comparison()
    data = curves_data(given, quantity)
    average = given.average_rank() if quantity == "rank" else given.average_regret()
    error = given.rank_error() if quantity == "rank" else given.standard_error()
    foot = -np.inf if data.foot is None else data.foot
    np.testing.assert_allclose(data.value, average)
    np.testing.assert_allclose(data.band, [np.maximum(average - error, foot), average + error])
    assert data.notes == ("Band: ±1 standard error over 4 tasks",)


@pytest.mark.parametrize(
    ("shape", "said"), [({"n_runs": 2, "spaces": ("s",)}, "one task"), ({"n_methods": 9}, "more than 8")]
)
def test_no_bands_without_a_second_task_or_for_many_methods(make_comparison, shape, said):
    data = curves_data(make_comparison(**shape), "rank")
    assert data.band is None
    assert said in data.notes[0]


def test_the_foot_of_the_logarithmic_axis(make_comparison):
    regret = np.full((3, 8, 21), 0.5)
    regret[0, :, 10:] = 0.0
    regret[1, :, 10:] = 1e-7  # far below: four decades are all there is
    data = curves_data(make_comparison(regret=regret), "regret")
    assert data.foot == pytest.approx(0.5e-4)
    assert "drawn at the foot" in data.notes[1]
    assert data.value.min() == data.value[0, -1] == data.foot
    regret[0, :, 10:], regret[1] = 1e-16, 0.5  # rounding noise counts as zero
    data = curves_data(make_comparison(regret=regret), "regret")
    assert (data.foot, len(data.notes)) == (pytest.approx(0.5 / 1.1), 2)
    assert curves_data(make_comparison(regret=np.zeros((3, 8, 21))), "regret").foot is None


def test_panels_are_the_search_spaces(make_comparison):
    given = make_comparison(n_runs=12, spaces=("b", "a", "c"))
    panels = grid_data(given, "regret")
    assert [panel.title for panel in panels] == [f"{name} (2 tasks)" for name in "bac"]
    for panel, start in zip(panels, (0, 4, 8), strict=True):
        expected = given.regret[:, start : start + 4].mean(axis=1)
        np.testing.assert_allclose(panel.value, np.maximum(expected, panel.foot))
        assert panel.band is None
