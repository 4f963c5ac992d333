"""All figures of a study, and the page that shows them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dre_jax.data.files import write_text
from dre_jax.report.figures import data_uri
from dre_jax.report.page import render
from dre_jax.report.style import write_to
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.space.space import Space
from dre_jax.tuning.fidelity.fidelity import budget_text
from dre_jax.tuning.figures.by_optuna import optuna_figures
from dre_jax.tuning.figures.trainings import plot_trainings
from dre_jax.tuning.figures.values import plot_curves, plot_front, plot_history
from dre_jax.tuning.trials.objectives import Objectives, best_trials
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FRONT = "The first two objectives, and the Pareto-optimal trials."
_PAUSED = " Paused trials are hollow."
_HISTORY = "Values far worse than the others are drawn at the edge."
_CURVES = "A stopped trial ends with a cross, the best is dark; the worst reports are cut off."
_TRAININGS = (
    "A line for each configuration, with a dot at each budget where it paused; the best is dark, and those that "
    "reached the highest budget are blue. The worst values are cut off."
)
_BY_OPTUNA = {
    "Slices": f"Values by hyperparameter where it is active; later trials are darker, infeasible ones grey. {_HISTORY}",
    "Contours": f"Values over the two hyperparameters of most importance, interpolated between the trials. {_HISTORY}",
    "Importance": "How far a hyperparameter decides which trials are the best (PED-ANOVA).",
}


class StudyFigure(NamedTuple):
    """A figure of a study, and its caption."""

    figure: Figure
    caption: str


@with_default_float_errors
def study_figures(space: Space, trials: Sequence[Trial], objectives: Objectives) -> dict[str, StudyFigure]:
    """Returns the figures of a study by heading: front or history, curves, trainings, slices, contours, importance.

    Raises `MissingExtraError` without Optuna, which draws slices, contours and importance.
    """
    figures, numbers = dict[str, StudyFigure](), {trial.number for trial in best_trials(trials, objectives)}
    if len(objectives) > 1:
        has_paused = any(trial.state == "paused" for trial in trials)
        figures["Front"] = StudyFigure(plot_front(trials, numbers, objectives), _FRONT + _PAUSED * has_paused)
    for name, direction in objectives:
        of = f" of {name}" if len(objectives) > 1 else ""
        objective_trials = [trial.with_objective(name) for trial in trials]
        figures[f"History{of}"] = StudyFigure(plot_history(objective_trials, direction), _HISTORY)
        if any(len(trial.reports) > 1 for trial in objective_trials):
            figures["Learning curves"] = StudyFigure(plot_curves(objective_trials, numbers, direction), _CURVES)
        if any(trial.budget is not None and trial.value is not None for trial in objective_trials):
            figures[f"Trainings{of}"] = StudyFigure(plot_trainings(objective_trials, numbers, direction), _TRAININGS)
        for heading, figure in optuna_figures(space, objective_trials, direction):
            figures[f"{heading}{of}"] = StudyFigure(figure, _BY_OPTUNA[heading.split()[0]])
    return figures


def write_study_page(path: Path, title: str, space: Space, trials: Sequence[Trial], objectives: Objectives) -> None:
    """Writes the page of a study.

    Raises `DataError` if the page cannot be written, and `MissingExtraError` as `study_figures`.
    """
    best = best_trials(trials, objectives)
    n_complete, n_paused = (sum(trial.state == state for trial in trials) for state in ("complete", "paused"))
    paused = f" and {n_paused} paused" if n_paused else ""
    has_budgets = any(trial.budget is not None for trial in trials)
    names = [objective.name for objective in objectives]
    numbers, n_outside = {trial.number for trial in best}, sum(not trial.in_space for trial in trials)
    outside = f", and {n_outside} {'is' if n_outside == 1 else 'are'} outside of the space" if n_outside else ""
    other_trials = [trial for trial in trials if trial.number not in numbers]
    purpose = " and ".join(
        f"{objective.direction} {objective.name if len(objectives) > 1 else 'the value'}" for objective in objectives
    )
    figures = study_figures(space, trials, objectives)
    page = {
        "title": title,
        "summary": f"{len(trials)} trials, of which {n_complete} are complete{paused}{outside}; to {purpose}.",
        "figures": [
            (heading, _source(study_figure), study_figure.caption) for heading, study_figure in figures.items()
        ],
        "columns": ("trial", "state", *(("budget", "resumes") if has_budgets else ()), *names, *space),
        "rows": [
            _row(trial, trial.number in numbers, objectives, space, has_budgets) for trial in [*best, *other_trials]
        ],
    }
    write_text(path, render("study.html.jinja", page))


def _source(study_figure: StudyFigure) -> str:
    with io.BytesIO() as file:
        write_to(file, study_figure.figure)
        return data_uri(file.getvalue(), "png")


def _row(trial: Trial, is_best: bool, objectives: Objectives, space: Space, has_budgets: bool) -> list[str]:
    values = [trial.values.get(objective.name) if len(objectives) > 1 else trial.value for objective in objectives]
    cells = [f"{trial.number}{' (best)' if is_best else ''}", f"{trial.state}{'' if trial.in_space else ', outside'}"]
    budgets = ["" if trial.budget is None else budget_text(trial.budget), _cell(trial.resumes)]
    return [
        *cells,
        *(budgets if has_budgets else ()),
        *("" if value is None else f"{value:.6g}" for value in values),
        *map(_cell, map(trial.params.get, space)),
    ]


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
