"""Trials of an `Optimizer` as a study of Optuna, for its plots, importance of hyperparameters, and dashboard."""

import math
import warnings
from collections.abc import Collection, Iterable
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, create_trial

from dre_jax.tuning.optuna.distributions import Translation, translation_of
from dre_jax.tuning.optuna.trials import STATES
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.study.study_record import StudyRecord
from dre_jax.tuning.study.trial import Trial

_MAX_DIGITS = 6
"""Decimals of steps that are kept."""
_STATES = {state: of_optuna for of_optuna, state in STATES.items()}


def to_study(optimizer: StudyRecord, *, storage: str | BaseStorage | None = None, name: str | None = None) -> Study:
    """Returns a new study of Optuna with the trials of an optimizer.

    Its functions then apply: `optuna.visualization.matplotlib.plot_slice`, `plot_contour`, `plot_pareto_front` and
    others, and `optuna.importance.get_param_importances`.

    Args:
      optimizer: the trials, with their reports, constraints and several objectives; standard errors and costs are
        attributes of the user. A trial that was stopped counts as pruned. What is enqueued waits in the study too.
        Optuna's steps are whole numbers: shares such as 0.05 are multiplied by a power of ten, up to a million.
      storage: of the study; by default its memory. A dashboard reads a database.
      name: of the study.

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
    directions = optimizer.named_directions.values()
    study = study_of_trials(optimizer.space, optimizer.trials, directions, storage=storage, name=name)
    for values in optimizer.enqueued:
        study.enqueue_trial(translation_of(optimizer.space).to_optuna_values(values))
    if optimizer.directions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names(list(optimizer.directions))
    return study


def study_of_trials(
    space: Space,
    trials: Iterable[Trial],
    directions: Iterable[Any],
    *,
    storage: str | BaseStorage | None = None,
    name: str | None = None,
) -> Study:
    """Returns a new study of Optuna with trials of a search space; see `to_study`."""
    study = optuna.create_study(study_name=name, storage=storage, directions=[*directions])
    translation, trials = translation_of(space), list(trials)
    step_factor = _step_factor({step for trial in trials for step in trial.reports})
    for trial in trials:
        study.add_trial(_to_frozen_trial(trial, translation, step_factor))
    return study


def _step_factor(steps: Collection[float]) -> int:
    """Returns the least power of ten, up to a million, that makes all steps whole numbers, which Optuna's are."""
    for exponent in range(_MAX_DIGITS):
        if all(math.isclose(step * 10**exponent, round(step * 10**exponent), rel_tol=1e-9) for step in steps):
            return 10**exponent
    return 10**_MAX_DIGITS


def _to_frozen_trial(trial: Trial, translation: Translation, step_factor: int) -> FrozenTrial:
    values = list(trial.values.values()) or ([] if trial.value is None else [trial.value])
    return create_trial(
        state=_STATES[trial.state],
        values=values or None,
        params=translation.to_optuna_values(trial.params),
        distributions={name: translation.distributions[name] for name in trial.params},
        user_attrs={
            name: value for name, value in (("stderr", trial.stderr), ("cost", trial.cost)) if value is not None
        },
        constraints=trial.constraints or None,
        intermediate_values={round(step * step_factor): value for step, value in trial.reports.items()},
    )
