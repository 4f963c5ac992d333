"""Importance of hyperparameters, which Optuna computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dre_jax.errors import DataError, import_extra
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.space.space import Space
from dre_jax.tuning.figures.values import complete_in_space, drawn_values
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from optuna.study import Study


def importance_of(space: Space, trials: Sequence[Trial], direction: str) -> dict[str, float]:
    """Returns the shares of the hyperparameters, as `dre_jax.tuning.Optimizer.importance`, with its errors."""
    study = drawn_study(space, trials, direction)
    if study is None:
        raise DataError("the importance of hyperparameters needs complete trials with different values")
    return shares_of(study)


def shares_of(study: Study) -> dict[str, float]:
    """Returns the importance of hyperparameters in a study of Optuna, the largest first."""
    from optuna.importance import get_param_importances

    with optuna_logs_at("ERROR"):
        return {name: float(share) for name, share in get_param_importances(study).items()}


def drawn_study(space: Space, trials: Sequence[Trial], direction: str) -> Study | None:
    """Returns the complete trials in the space as a study of Optuna, far worse values at the edge of a figure.

    None for fewer than two different values. Raises `MissingExtraError` without Optuna.
    """
    import_extra("optuna", "optuna", "optuna")
    complete = complete_in_space(trials)
    values = drawn_values(complete, direction)
    if len({*values.tolist()}) < 2:
        return None
    from dre_jax.tuning.optuna.frozen_trials import study_of_trials

    drawn = [trial.with_fields(value=float(value)) for trial, value in zip(complete, values, strict=True)]
    with optuna_logs_at("ERROR"):
        return study_of_trials(space, drawn, [direction])
