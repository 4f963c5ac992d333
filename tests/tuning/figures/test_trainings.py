"""The figure of trainings that pause."""

import math
import re

import pytest

from dre_jax.tuning import Float, Space, Trial
from dre_jax.tuning.figures.study import write_study_page
from dre_jax.tuning.figures.trainings import plot_trainings
from dre_jax.tuning.trials.objectives import objectives_of

pytest.importorskip("matplotlib")
TRIALS = (
    Trial(0, {"x": 0.5}, "paused", 3.0, budget=1),
    Trial(1, {"x": 0.2}, "paused", 2.0, budget=1),
    Trial(2, {"x": 0.2}, "complete", 1.0, budget=16, resumes=1),
    Trial(3, {"x": 0.7}, "failed", budget=1),
    Trial(4, {"x": 0.9}, "paused", math.inf, budget=1),
    Trial(5, {"x": 0.5}, budget=16, resumes=0),
)


def test_the_page_has_budgets(tmp_path):
    pytest.importorskip("optuna")
    write_study_page(tmp_path / "page.html", "study", Space({"x": Float(0.0, 1.0)}), TRIALS, objectives_of())
    page = (tmp_path / "page.html").read_text()
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)]
    assert rows[:2] == [
        ["trial", "state", "budget", "resumes", "value", "x"],
        ["2 (best)", "complete", "16", "1", "1", "0.2"],
    ]
    assert rows[2] == ["0", "paused", "1", "", "3", "0.5"]
    assert "6 trials, of which 1 are complete and 3 paused; to minimize the value." in page


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_each_training_is_a_line_from_budget_to_budget(direction):
    axes = plot_trainings(TRIALS, {2}, direction).axes[0]
    lines = {
        tuple(line.get_xdata()): tuple(line.get_ydata()) for line in axes.lines if math.inf not in line.get_ydata()
    }
    assert lines == {(1,): (3.0,), (1, 16): (2.0, 1.0)}
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "16"]
    widths = {len(line.get_xdata()): line.get_linewidth() for line in axes.lines}
    assert widths[2] > widths[1]
