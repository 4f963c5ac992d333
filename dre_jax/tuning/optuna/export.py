"""Trials of an `Optimizer` as a study of Optuna, for its plots, importance of hyperparameters, and dashboard."""

import warnings
from typing import Protocol

import optuna
from optuna.storages import BaseStorage
from optuna.study import Study

from dre_jax.space.space import Params, Space
from dre_jax.tuning.optuna.distributions import translation_of
from dre_jax.tuning.optuna.frozen_trials import study_of_trials
from dre_jax.tuning.trials.objectives import Objectives
from dre_jax.tuning.trials.trial import Trial


class _Optimizer(Protocol):
    """The part of `dre_jax.tuning.Optimizer` that an export reads."""

    @property
    def space(self) -> Space: ...
    @property
    def objectives(self) -> Objectives: ...
    @property
    def trials(self) -> tuple[Trial, ...]: ...
    @property
    def enqueued(self) -> tuple[Params, ...]: ...


def to_study(optimizer: _Optimizer, *, storage: str | BaseStorage | None = None, name: str | None = None) -> Study:
    """Returns a new study of Optuna with the trials of an optimizer.

    Optuna's functions apply to it: `optuna.visualization.matplotlib.plot_slice`, `plot_contour`, `plot_pareto_front`
    and others, and `optuna.importance.get_param_importances`.

    Args:
      optimizer: the trials in its space, with their reports, constraints and several objectives; standard errors,
        costs and budgets are attributes of the user. A trial that was stopped or paused is pruned. Enqueued values wait
        in the study too. Optuna's steps are whole numbers: shares such as 0.05 are multiplied by a power of ten, up to
        a million.
      storage: the storage of the study, such as a database for a dashboard; by default memory.
      name: the name of the study.

    Raises:
      optuna.exceptions.DuplicatedStudyError: if the storage has a study of this name.

    Example:
      >>> from dre_jax.tuning import Float, Optimizer, Space
      >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
      >>> optimizer = Optimizer(Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}))
      >>> optimizer.optimize(lambda trial: trial["x"], n_trials=4)
      >>> to_study(optimizer).best_params == optimizer.best.params
      True
    """
    directions = [objective.direction for objective in optimizer.objectives]
    trials = [trial for trial in optimizer.trials if trial.in_space]  # no distribution of Optuna has the others
    study = study_of_trials(optimizer.space, trials, directions, storage=storage, name=name)
    for values in optimizer.enqueued:
        study.enqueue_trial(translation_of(optimizer.space).to_optuna_values(values))
    if len(optimizer.objectives) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names([objective.name for objective in optimizer.objectives])
    return study
