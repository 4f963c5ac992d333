"""Weights & Biases: a group of runs for the study, one for each trial."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre_jax.errors import import_extra
from dre_jax.report.style import write_to
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.trackers.tracker import Tracker, curve_of, metrics_of, tags_of
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class WandbTracker(Tracker):
    """Writes a study to Weights & Biases: a group of runs, one for each trial, and one for the figures.

    The run of a failed trial has failed. The metric "report" is the learning curve. Other active runs of the process
    stay as they are.
    """

    def __init__(self, project: str | None = None, *, folder: str | os.PathLike[str] = ".", **options: Any) -> None:
        """Creates the tracker, which connects to Weights & Biases at the first trial.

        Args:
          project: name of the project; by default that of ``wandb``.
          folder: in which ``wandb`` keeps its files. A resumed study continues where its tracker was if the folder is
            the same; in another one it writes its trials again, into the same runs.
          options: further arguments of ``wandb.init``, such as ``entity`` and ``mode="offline"``.

        Raises:
          MissingExtraError: without wandb or Optuna.
        """
        super().__init__()
        self._wandb = import_extra("wandb", "wandb", "wandb")
        settings = self._wandb.Settings(silent=True, console="off")  # what a trial prints is not of its run
        defaults = {"project": project, "dir": str(Path(folder).resolve()), "settings": settings}
        self._options = {**defaults, "reinit": "create_new", "resume": "allow", **options}
        self._list = Path(folder) / "wandb"
        self._study_id = ""

    def _open(self, optimizer: Optimizer) -> set[int]:
        self._study_id = optimizer.study_id
        self._list.mkdir(parents=True, exist_ok=True)
        self._list /= f"dre_jax-{optimizer.study_id}.txt"
        return set(map(int, self._list.read_text().split())) if self._list.exists() else set()

    def _start(self, name: str, **options: Any) -> Any:
        """Starts a run of the study, or resumes it."""
        identifier = f"{self._study_id}-{name.replace(' ', '-')}"
        group = f"study {self._study_id[:6]}"
        return self._wandb.init(id=identifier, name=name, group=group, **self._options, **options)

    def _write(self, trial: Trial) -> None:
        run = self._start(f"trial {trial.number}", config=trial.params, job_type="trial", tags=[trial.state])
        for step, value in curve_of(trial):
            run.log({"report": value}, step=step)
        run.summary.update(metrics_of(trial) | tags_of(trial))
        run.finish(exit_code=int(trial.state == "failed"))
        with self._list.open("a") as file:
            file.write(f"{trial.number}\n")

    def _finish(self, figures: Mapping[str, Figure], *, failed: bool) -> None:
        if figures:
            run = self._start("study", job_type="study")
            run.log({heading: self._wandb.Image(_picture(figure)) for heading, figure in figures.items()})
            run.finish()


def _picture(figure: Figure) -> Any:
    """Returns a figure as a picture, for which wandb needs no pyplot."""
    from PIL.Image import open as open_picture

    data = io.BytesIO()
    write_to(data, figure)
    return open_picture(data)
