"""Importance of hyperparameters."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dre_jax.report.style import COLOURS, draw
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.tuning.figures.trials import clear_frame
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEWEST = 4
"""Complete trials that fANOVA needs."""


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


def plot_importances(shares: Mapping[str, float]) -> Figure:
    """Returns a figure of `importances`."""

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.barh(list(shares)[::-1], list(shares.values())[::-1], color=COLOURS[0])
        axes.set_xlabel("share of the variance")
        clear_frame(axes)

    return draw((6.4, 0.6 + 0.32 * len(shares)), paint)
