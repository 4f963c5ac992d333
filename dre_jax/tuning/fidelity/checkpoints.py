"""Folders of the checkpoints of trainings."""

import warnings
from pathlib import Path
from typing import Protocol

from dre_jax.data.files import make_folder
from dre_jax.errors import DataWarning
from dre_jax.tuning.trials.trial import Trial


class _Study(Protocol):
    """The part of a study that starts a training over."""

    def restart(self, trial: Trial) -> Trial: ...


def with_checkpoint(trial: Trial, training: int, checkpoints: Path) -> Trial:
    """Returns a trial with the folder of its training, named by the number of the training; it exists.

    Raises `DataError` if the folder cannot be made.
    """
    folder = checkpoints / str(training)
    make_folder(folder)
    return trial.with_fields(checkpoint=folder)


def restart_if_lost(study: _Study, trial: Trial) -> Trial:
    """Returns a running trial, which starts over, with a warning, if it is to resume but its folder is empty."""
    is_empty = trial.checkpoint is not None and not any(trial.checkpoint.iterdir())
    if trial.resumes is None or trial.restarts or not is_empty:
        return trial
    fault = f"{trial.checkpoint} is empty, so that trial {trial.number} starts over"
    warnings.warn(f"{fault}: it was to resume trial {trial.resumes}", DataWarning, stacklevel=3)
    return study.restart(trial).with_fields(checkpoint=trial.checkpoint)
