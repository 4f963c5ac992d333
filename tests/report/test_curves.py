"""Curves: what is drawn, from the averages of a comparison, and where a logarithmic axis ends."""

import numpy as np
import pytest

from dre_jax.report.curves import curves_data, grid_data


@pytest.mark.parametrize("quantity", ["rank", "regret"])
def test_values_and_bands(make_comparison, quantity):
    comparison = make_comparison()
    data = curves_data(comparison, quantity)
    average = comparison.average_rank() if quantity == "rank" else comparison.average_regret()
    error = comparison.rank_error() if quantity == "rank" else comparison.standard_error()
    foot = -np.inf if data.foot is None else data.foot
    np.testing.assert_allclose(data.value, average)
    np.testing.assert_allclose(data.band, [np.maximum(average - error, foot), average + error])
    assert data.notes == ("Band: ±1 standard error over 4 tasks",)


def test_panels_are_the_search_spaces(make_comparison):
    comparison = make_comparison(n_runs=12, spaces=("b", "a", "c"))
    panels = grid_data(comparison, "regret")
    assert [panel.title for panel in panels] == [f"{name} (2 tasks)" for name in "bac"]
    for panel, start in zip(panels, (0, 4, 8), strict=True):
        expected = comparison.regret[:, start : start + 4].mean(axis=1)
        np.testing.assert_allclose(panel.value, np.maximum(expected, panel.foot))
        assert panel.band is None
