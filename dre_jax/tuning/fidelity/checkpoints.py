"""Folders of the checkpoints of trainings."""

from collections.abc import Sequence
from pathlib import Path

from dre_jax.data.files import make_folder
from dre_jax.tuning.fidelity.trainings import first_number
from dre_jax.tuning.trials.trial import Trial


def with_checkpoint(trial: Trial, trials: Sequence[Trial], checkpoints: Path) -> Trial:
    """Returns a trial with the folder of its training, named by the first trial of the training; it exists.

    Raises `DataError` if the folder cannot be made.
    """
    folder = checkpoints / str(first_number(trial, trials))
    make_folder(folder)
    return trial.with_fields(checkpoint=folder)


def is_checkpoint_lost(trial: Trial) -> bool:
    """Returns whether a trial resumes another one, but the folder of its training is empty."""
    return trial.resumes is not None and trial.checkpoint is not None and not any(trial.checkpoint.iterdir())
