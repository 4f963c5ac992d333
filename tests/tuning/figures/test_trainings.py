"""The figure of trainings that pause."""

import math

import pytest

from dre_jax.tuning import Trial
from dre_jax.tuning.figures.trainings import plot_trainings

pytest.importorskip("matplotlib")
TRIALS = (
    Trial(0, {"x": 0.5}, "paused", 3.0, budget=1),
    Trial(1, {"x": 0.2}, "paused", 2.0, budget=1),
    Trial(2, {"x": 0.2}, "complete", 1.0, budget=16, resumes=1),
    Trial(3, {"x": 0.7}, "failed", budget=1),
    Trial(4, {"x": 0.9}, "paused", math.inf, budget=1),
    Trial(5, {"x": 0.5}, budget=16, resumes=0),
)


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
