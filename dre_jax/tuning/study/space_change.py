"""Studies whose search space changes: their trials and enqueued values in the new space.

All trials stay. A trial has the values of the new hyperparameters, and keeps those of the ones that are gone
(`Trial.former`) in case they return. A configuration that is not in the new space stays as it is, `Trial.in_space` is
then False: suggestions learn from it, but it is not the best.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dre_jax.errors import DataError, DataWarning
from dre_jax.space.space import Params, Space
from dre_jax.space.widening import widened_space
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.past.overlap import SpaceChanges
from dre_jax.tuning.study.study_file import Study
from dre_jax.tuning.trials.trial import Trial

_MAX_NUMBERS = 10
"""Maximum number of trials that a message lists."""


def changed_study(
    study: Study, space: Space, *, absent: Mapping[str, Any] | None = None, renamed: Mapping[str, str] | None = None
) -> Study:
    """Returns a study in another space.

    Args:
      study: with any trials.
      space: the new one.
      absent: values that the trials had for hyperparameters that are new, None for none. The values of other new
        hyperparameters are their defaults.
      renamed: new names of hyperparameters by their old ones.

    Raises:
      ConfigError: as `SpaceChanges`.
      DataError: as `SpaceChanges`, and if the value of a new hyperparameter is unknown.

    Warns:
      DataWarning: of hyperparameters that are gone, and of new ones for which the trials get defaults, so that a new
        name without ``renamed`` does not pass unnoticed.
    """
    changes = SpaceChanges(space, {**space.defaults, **(absent or {})}, renamed or {})
    all_values = [_all_values(changes, trial) for trial in study.trials]
    wider = widened_space(space, map(changes.complete, all_values))
    trials = [
        _changed_trial(changes, wider, trial, values) for trial, values in zip(study.trials, all_values, strict=True)
    ]
    if phrases := _name_changes(study, changes, trials, absent or {}):
        warnings.warn("; ".join(phrases), DataWarning, stacklevel=3)
    parts = [{name: part[name] for name in part if name in space} for part in map(changes.rename, study.enqueued)]
    return study._replace(space=space, trials=trials, enqueued=[part for part in parts if part])


def _name_changes(old: Study, changes: SpaceChanges, trials: Sequence[Trial], absent: Mapping[str, Any]) -> list[str]:
    """Returns phrases about hyperparameters that are gone, and about new ones that are not in ``absent``."""
    gone = [name for name in changes.unknown(old.space) if any(name in trial._params for trial in old.trials)]
    pairs = list(zip(trials, (_all_values(changes, trial) for trial in old.trials), strict=True))
    added = {name: sum(name in now._params and name not in before for now, before in pairs) for name in changes.space}
    are = "are" if len(gone) > 1 else "is"
    names = ", ".join(map(repr, gone))
    phrases = [f"{names} of the trials {are} not in the search space and {are} not used"] if gone else []
    return phrases + [
        f"{n} of {len(trials)} trials have no {name!r} and get its default, {changes.absent[name]!r}"
        for name, n in added.items()
        if n and name not in absent
    ]


def _all_values(changes: SpaceChanges, trial: Trial) -> dict[str, Any]:
    """Returns the values of a trial by their new names, also those that only earlier spaces had."""
    return changes.rename(trial._former) | changes.rename(trial._params)


def _changed_trial(changes: SpaceChanges, wider: Space, trial: Trial, values: Mapping[str, Any]) -> Trial:
    """Returns a trial in the new space, with values of `_all_values`; ``wider`` has those outside of the space."""
    params = wider.active_part(changes.complete(values))
    params = {name: params[name] for name in wider if name in params}
    for name in wider.sequence:
        if name not in params and name not in changes.absent and wider.is_active(name, params):
            rule = f"the trials of a study need values of new hyperparameters, but trial {trial.number} has no {name!r}"
            remedy = f"pass absent={{{name!r}: ...}}, None if there was no such value, or give {name!r} a default"
            raise DataError(f"{rule}: {remedy}")
    in_space = _fault(changes.space, params) is None
    params = changes.space.check(params) if in_space else params
    former = {name: value for name, value in values.items() if name not in params}
    return trial.with_fields(params=params, in_space=in_space, former=former)


def _fault(space: Space, params: Params) -> str | None:
    """Returns why a configuration is not in a space; None if it is."""
    try:
        space.check(params)
    except DataError as error:
        return str(error)
    return None


def warn_of_outside(engine: Engine, trials: Sequence[Trial]) -> None:
    """Warns of the trials outside of the space of an engine, if there are any."""
    outside = [trial for trial in trials if not trial.in_space]
    if not outside:
        return
    are = "s are" if len(outside) > 1 else " is"
    message = f"{len(outside)} trial{are} outside of the space, and cannot be the best: {_numbers(outside)}"
    message = f"{message} ({_fault(engine.space, outside[0].params)})"
    if unread := engine.unread_trials(outside):
        message += f"; suggestions do not learn from {_numbers(unread)} ({_fault(engine.space, unread[0].params)})"
    warnings.warn(message, DataWarning, stacklevel=3)


def _numbers(trials: Iterable[Trial]) -> str:
    numbers = [str(trial.number) for trial in trials]
    ellipsis = ", ..." if len(numbers) > _MAX_NUMBERS else ""
    return f"trial{'s' * (len(numbers) > 1)} {', '.join(numbers[:_MAX_NUMBERS])}{ellipsis}"
