"""All figures of a study."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dre_jax.tuning.engine import Engine
from dre_jax.tuning.figures.slices import ObjectiveFigures, plot_importances
from dre_jax.tuning.figures.trials import plot_curves, plot_front, plot_history
from dre_jax.tuning.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dre_jax.tuning.command.shared_study import SharedStudy
    from dre_jax.tuning.study_record import StudyRecord

_FRONT = "The first two objectives. No trial equals or beats one of the front in all, and beats it in one."
_HISTORY = "Values far worse than the others are drawn at the edge."
_CURVES = "A stopped trial ends with a cross, the best is dark; the worst reports are cut off."
_SLICES = "Values by hyperparameter, where it is active; later trials are darker."
_PREDICTED = (
    "In orange the prediction and two standard deviations, with the other hyperparameters of the best such trial."
)
_CONTOURS = (
    "The two numbers that change the prediction most, with the other hyperparameters of the best trial, a star: the "
    "predicted value, and what the model does not know."
)
_IMPORTANCE = "Share of the variance that a hyperparameter explains (fANOVA), without conditional ones."


class StudyFigure(NamedTuple):
    """A figure of a study, and what it shows."""

    figure: Figure
    caption: str


def study_figures(study: StudyRecord | SharedStudy, best: Sequence[Trial]) -> dict[str, StudyFigure]:
    """Returns the figures of a study by heading: front or history, learning curves, slices, contours, importance.

    Args:
      study: its trials. A surrogate whose method does not predict values has no predictions.
      best: the best trial, or the front.
    """
    space, trials, directions = study.space, study.trials, study.named_directions
    figures, numbers = dict[str, StudyFigure](), {trial.number for trial in best}
    if len(directions) > 1:
        figures["Front"] = StudyFigure(plot_front(trials, numbers, directions), _FRONT)
    for name, direction in directions.items():
        of = f" of {name}" if name else ""
        own = [trial.with_objective(name) for trial in trials] if name else trials
        figures[f"History{of}"] = StudyFigure(plot_history(own, direction), _HISTORY)
        if any(len(trial.reports) > 1 for trial in own):
            figures["Learning curves"] = StudyFigure(plot_curves(own, numbers, direction), _CURVES)
        predict = partial(Engine(space, study.named_surrogates[name]).predict, own, direction)
        plots = ObjectiveFigures(space, own, direction, predict)
        caption = f"{_SLICES} {_PREDICTED}" if plots.slices else _SLICES
        figures[f"Slices{of}"] = StudyFigure(plots.plot_slices(), caption)
        if (contours := plots.plot_contours()) is not None:
            figures[f"Contours{of}"] = StudyFigure(contours, _CONTOURS)
        if shares := plots.importances():
            figures[f"Importance{of}"] = StudyFigure(plot_importances(shares), _IMPORTANCE)
    return figures
