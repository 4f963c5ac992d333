"""A study as one self-contained HTML page: history or front, slices, importance of hyperparameters, trials."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dre_jax.data.files import write_text
from dre_jax.report.figures import data_uri
from dre_jax.report.page import render
from dre_jax.report.style import COLOURS, save
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.tuning.command.study_plot import (
    StudyPlotData,
    front_plot_data,
    plot_front,
    plot_study,
    study_plot_data,
)
from dre_jax.tuning.space.parameters import Categorical
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 4  # of panels
_FEWEST = 4
"""Complete trials that the importance of hyperparameters needs."""


def write_study_page(
    path: Path, title: str, space: Space, trials: Sequence[Trial], best: Sequence[Trial], directions: Mapping[str, str]
) -> None:
    """Writes the page of a study.

    Args:
      path: of the page.
      title: of the page.
      space: the search space.
      trials: the study's.
      best: its best trial, or its front.
      directions: of the objectives by name; "" is the name of a single value.

    Raises:
      DataError: if the page cannot be written.
    """
    by_objective = {name: [one.with_objective(name) if name else one for one in trials] for name in directions}
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        figures: list[tuple[str, str, str]] = []

        def add(heading: str, caption: str) -> None:
            figures.append((heading, data_uri(picture), caption))

        if len(directions) > 1:
            plot_front(front_plot_data(trials, best, directions), picture)
            add(
                "Front",
                "The first two objectives. No trial equals or beats one of the front in all, and beats it in one.",
            )
        for name, own in by_objective.items():
            of = f" of {name}" if name else ""
            data = study_plot_data(own, directions[name])
            plot_study(data, picture)
            add(f"History{of}", "Values far worse than the others are drawn at the edge.")
            if any(len(trial.reports) > 1 for trial in own):
                _plot_curves(own, {trial.number for trial in best}, directions[name], picture)
                add(
                    "Learning curves",
                    "A stopped trial ends with a cross, the best is dark; the worst reports are cut off.",
                )
            _plot_slices(space, own, data, picture)
            add(f"Slices{of}", "Values by hyperparameter, where it is active; later trials are darker.")
            shares = importances(space, own, directions[name])
            if shares:
                _plot_importances(shares, picture)
                add(
                    f"Importance{of}",
                    "Share of the variance that a hyperparameter explains (fANOVA), without conditional ones.",
                )
    n_complete = sum(trial.state == "complete" for trial in trials)
    names = [name or "value" for name in directions]
    numbers = {trial.number for trial in best}
    others = [trial for trial in trials if trial.number not in numbers]
    purpose = " and ".join(f"{direction} {name or 'the value'}" for name, direction in directions.items())
    page = {
        "title": title,
        "summary": f"{len(trials)} trials, of which {n_complete} are complete; to {purpose}.",
        "figures": figures,
        "columns": ("trial", "state", *names, *space),
        "rows": [_row(trial, trial.number in numbers, directions, space) for trial in [*best, *others]],
    }
    write_text(path, render("study.html.jinja", page))


def importances(space: Space, trials: Sequence[Trial], direction: str) -> dict[str, float]:
    """Returns the share of the variance that each hyperparameter explains, by Optuna; empty where it has none."""
    complete = [trial for trial in trials if trial.state == "complete"]
    shares: dict[str, float] = {}
    if len(complete) < _FEWEST:
        return shares
    with contextlib.suppress(Exception):  # without Optuna or scikit-learn, or for values that they do not take
        import optuna

        from dre_jax.tuning.optuna.export import study_of_trials

        with optuna_logs_at("WARNING"):
            study = study_of_trials(space, complete, [direction])
            evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
            shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return shares


def _row(trial: Trial, is_best: bool, directions: Mapping[str, str], space: Space) -> list[str]:
    values = [trial.values.get(name) if name else trial.value for name in directions]
    cells = [f"{trial.number}{' (best)' if is_best else ''}", trial.state]
    return [*cells, *("" if one is None else f"{one:.6g}" for one in values), *map(_cell, map(trial.params.get, space))]


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _plot_slices(space: Space, trials: Sequence[Trial], data: StudyPlotData, path: Path) -> None:
    complete = [trial for trial in trials if trial.state == "complete"]
    n_columns = min(_COLUMNS, len(space))
    n_rows = -(-len(space) // n_columns)

    def paint(figure: Figure) -> None:
        for i, (name, parameter) in enumerate(space.items()):
            axes = figure.add_subplot(n_rows, n_columns, i + 1)
            active = [n for n, trial in enumerate(complete) if name in trial.params]
            shades: dict[str, Any] = {
                "c": [complete[n].number for n in active],
                "cmap": "Blues",
                "vmin": -len(trials) / 2,
            }
            if isinstance(parameter, Categorical):
                places = [parameter.index(complete[n].params[name]) for n in active]
                axes.set_xticks(range(len(parameter.choices)), [str(one)[:12] for one in parameter.choices])
            else:
                places = [complete[n].params[name] for n in active]  # type: ignore[misc]
                axes.set_xscale("log" if parameter.log else "linear")
                axes.xaxis.set_major_formatter("{x:g}")
                axes.xaxis.set_minor_formatter("")
            axes.scatter(places, data.values[active], s=16, **shades)
            axes.set_xlabel(name)
            axes.spines[["top", "right"]].set_visible(False)

    save((2.4 * n_columns, 2.1 * n_rows), paint, path)


def _plot_curves(trials: Sequence[Trial], best: Container[int], direction: str, path: Path) -> None:
    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        for trial in sorted(trials, key=lambda one: (one.number in best, one.state == "complete")):
            steps, values = list(trial.reports), list(trial.reports.values())
            number = 6 if trial.number in best else 0 if trial.state == "complete" else 1
            marker = "x" if trial.state == "stopped" else ""
            axes.plot(steps, values, marker=marker, markevery=[-1], color=COLOURS[number], lw=1.0 + number / 6)
        reports = np.concatenate([list(trial.reports.values()) for trial in trials])
        if np.isfinite(reports).any():
            side, share = ("top", 95) if direction == "minimize" else ("bottom", 5)
            axes.set_ylim(**{side: np.percentile(reports[np.isfinite(reports)], share)})
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)

    save((6.4, 3.6), paint, path)


def _plot_importances(shares: Mapping[str, float], path: Path) -> None:
    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.barh(list(shares)[::-1], list(shares.values())[::-1], color=COLOURS[0])
        axes.set_xlabel("share of the variance")
        axes.spines[["top", "right"]].set_visible(False)

    save((6.4, 0.6 + 0.32 * len(shares)), paint, path)
