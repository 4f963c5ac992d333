"""Trials of this library as trials of a study of Optuna."""

import math
from collections.abc import Collection, Iterable
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from dre_jax.space.space import Space
from dre_jax.tuning.optuna.distributions import Translation, translation_of
from dre_jax.tuning.optuna.trials import STATES
from dre_jax.tuning.past.trial_attributes import BUDGET, COST, RESTARTS, RESUMES, STDERR
from dre_jax.tuning.trials.trial import Trial

_MAX_DIGITS = 6
"""Decimals of steps that are kept."""
_STATES = {state: of_optuna for of_optuna, state in STATES.items()} | {"paused": TrialState.PRUNED}


def study_of_trials(
    space: Space,
    trials: Iterable[Trial],
    directions: Iterable[Any],
    *,
    storage: str | BaseStorage | None = None,
    name: str | None = None,
) -> Study:
    """Returns a new study of Optuna with trials of a search space; see `dre_jax.tuning.optuna.to_study`."""
    study = optuna.create_study(study_name=name, storage=storage, directions=[*directions])
    translation, trials = translation_of(space), list(trials)
    step_factor = _step_factor({step for trial in trials for step in trial.reports})
    numbers = {trial.number: i for i, trial in enumerate(trials)}
    for trial in trials:
        resumes = None if trial.resumes is None else numbers[trial.resumes]
        study.add_trial(to_frozen_trial(trial.with_fields(resumes=resumes), translation, step_factor))
    return study


def _step_factor(steps: Collection[float]) -> int:
    """Returns the least power of ten, up to a million, that makes all steps whole numbers, as Optuna requires."""
    for exponent in range(_MAX_DIGITS):
        if all(math.isclose(step * 10**exponent, round(step * 10**exponent), rel_tol=1e-9) for step in steps):
            return 10**exponent
    return 10**_MAX_DIGITS


def to_frozen_trial(trial: Trial, translation: Translation, step_factor: int = 1) -> FrozenTrial:
    """Returns a trial of a search space as one of Optuna. A paused trial is pruned, with a value.

    Steps of reports are multiplied by a factor.
    """
    attributes = {STDERR: trial.stderr, COST: trial.cost, BUDGET: trial.budget, RESUMES: trial.resumes}
    attributes[RESTARTS] = trial.restarts or None
    values = list(trial.values.values()) or ([] if trial.value is None else [trial.value])
    # Optuna has no NaN: a trial with an unknown constraint is not feasible.
    constraints = {name: math.inf if math.isnan(value) else value for name, value in trial.constraints.items()}
    return create_trial(
        state=_STATES[trial.state],
        values=values or None,
        params=translation.to_optuna_values(trial.params),
        distributions={name: translation.distributions[name] for name in trial.params},
        user_attrs={name: value for name, value in attributes.items() if value is not None},
        constraints=constraints or None,
        intermediate_values={round(step * step_factor): value for step, value in trial.reports.items()},
    )
