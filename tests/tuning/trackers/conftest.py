"""Studies to track."""

import re
from pathlib import Path

import pytest

from dre_jax.tuning import Categorical, Float, Optimizer
from dre_jax.tuning.figures.values import plot_history

SPACE = {
    "x": Float(-1.0, 1.0),
    "kind": Categorical(["a", "b"]),
    "deep": Categorical([True, False], when={"kind": "a"}),
    "no name [0]": Categorical([None, 1]),
}


@pytest.fixture
def optimizer(even_points, monkeypatch):
    """A study with one figure: those of Optuna take seconds."""
    figures = lambda self: {"History": plot_history(self.trials, self.direction)}  # noqa: E731
    monkeypatch.setattr(Optimizer, "figures", figures)
    return Optimizer(SPACE, seed=0)


@pytest.fixture
def run_trials():
    """Runs trials of a study: each reports a curve, and every third one fails."""

    def objective(trial):
        for step in (1, 2, 3):
            trial.report(trial["x"] ** 2 + 1 / step, step)
        return float("nan") if trial.number % 3 == 1 else trial["x"] ** 2

    return lambda optimizer, n, tracker: optimizer.optimize(objective, n, callbacks=tracker)


@pytest.fixture
def run_example(even_points, tmp_path, monkeypatch):
    """Runs the example of a section of the page, after the first one of the page, in a folder of its own."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "trackers.md").read_text()
    monkeypatch.chdir(tmp_path)

    def run(heading):
        names = {}
        section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        for text in (page, section):
            exec(re.search(r"```py(?:thon)?\n(.*?)```", text, re.DOTALL)[1], names)
        return names["optimizer"]

    return run


@pytest.fixture
def resumed(study):
    """Returns a study as another process reads it from its file."""

    def save_and_load(optimizer):
        optimizer.save(study)
        return Optimizer.load(study)

    return save_and_load


@pytest.fixture
def check_trials():
    """Checks what a tracker has of the trials of a study."""

    def check(optimizer, runs):
        """``runs`` are pairs of a number and what there is: parameters, value, whether it failed, and the curve."""
        assert [number for number, *_ in sorted(runs, key=lambda run: run[0])] == list(range(len(optimizer.trials)))
        for number, params, value, is_failed, curve in runs:
            trial = optimizer.trials[number]
            assert params == {name: str(value) for name, value in trial.params.items()}
            assert value == (None if trial.value is None else pytest.approx(trial.value))
            assert is_failed == (trial.state == "failed")
            assert curve == pytest.approx(trial.reports)

    return check
