"""A study as a picture."""

import math
import re

import pytest

from dre_jax.tuning import Float, Space, Trial
from dre_jax.tuning.command.study_page import write_study_page
from dre_jax.tuning.command.study_plot import plot_study, study_plot_data


def trials_of(values):
    states = {None: "failed", "running": "running"}
    return [Trial(i, {}, states.get(v, "complete"), v if isinstance(v, float) else None) for i, v in enumerate(values)]


def test_what_is_drawn():
    data = study_plot_data(trials_of([3.0, None, 1.0, "running", 2.0]), "minimize")
    assert data.numbers.tolist() == [0, 2, 4]
    assert data.values.tolist() == [3.0, 1.0, 2.0]
    assert data.best.tolist() == [3.0, 1.0, 1.0]
    assert data.failed.tolist() == [1]
    assert not data.clipped.any()
    assert study_plot_data(trials_of([3.0, None, 1.0, "running", 4.0]), "maximize").best.tolist() == [3.0, 3.0, 4.0]


@pytest.mark.parametrize("values", [[1.0, None, 2.0, math.inf, "running"], [], [None], [5.0]])
def test_pictures(tmp_path, values):
    plot_study(study_plot_data(trials_of(values), "maximize"), tmp_path / "study.png")
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("reports", [{}, {1: math.inf, 2: math.inf}, {1: 3.0, 2: math.inf, 3: 2.0}])
def test_a_page_has_the_learning_curves_of_a_study_with_reports(tmp_path, reports):
    trials = [Trial(0, {"x": 0.5}, "complete", 2.0, _reports=reports), Trial(1, {"x": 0.2}, "stopped", 3.0)]
    write_study_page(
        tmp_path / "page.html", "study", Space({"x": Float(0.0, 1.0)}), trials, trials[:1], {"": "minimize"}
    )
    headings = re.findall("<h2>(.*?)</h2>", (tmp_path / "page.html").read_text())
    assert headings == ["History", *["Learning curves"] * bool(reports), "Slices", "Trials"]
