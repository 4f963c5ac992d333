"""MLflow: a run for the study, and one inside of it for each trial."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dre_jax.errors import import_extra
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.trackers.tracker import Tracker, curve_of, metrics_of, tags_of
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STUDY, _PARENT = "dre_jax.study", "mlflow.parentRunId"
_MAX_ENTITIES = 100  # parameters or tags of one request; MLflow takes more metrics
_MAX_TEXT = 500  # of a parameter, in the oldest servers


class MLflowTracker(Tracker):
    """Writes a study to MLflow: a run for the study with its figures, and one inside of it for each trial.

    The run of a failed trial has the status FAILED. The metric "report" is the learning curve. The tracker has a client
    of its own, and changes neither MLflow's address nor the active run of the process.
    """

    def __init__(self, experiment: str, address: str | None = None) -> None:
        """Connects to MLflow.

        Args:
          experiment: name of the experiment, which is created if there is none.
          address: of the server or the database, such as ``"sqlite:///mlflow.db"``; by default MLflow's, of the
            environment variable ``MLFLOW_TRACKING_URI``, for example.

        Raises:
          MissingExtraError: without MLflow or Optuna.
          Exception: of MLflow, if the address does not answer.
        """
        super().__init__()
        self._entities = import_extra("mlflow.entities", "mlflow", "mlflow")
        self._client = import_extra("mlflow", "mlflow", "mlflow").MlflowClient(address)
        known = self._client.get_experiment_by_name(experiment)
        self._experiment = known.experiment_id if known else self._client.create_experiment(experiment)
        self._run = ""
        self._unfinished: dict[int, str] = {}  # runs by trial that a kill or an error has left

    def _open(self, optimizer: Optimizer) -> set[int]:
        runs = list(self._search(_STUDY, optimizer.study_id))
        if not runs:
            directions = ", ".join(f"{direction} {name}" for name, direction in optimizer.objectives)
            tags = {_STUDY: optimizer.study_id, "objective": directions, "seed": str(optimizer.seed)}
            runs = [self._client.create_run(self._experiment, tags=tags, run_name=f"study {optimizer.study_id[:6]}")]
        self._run = runs[0].info.run_id
        self._client.update_run(self._run, status="RUNNING")
        runs = [run for run in self._search(_PARENT, self._run) if "trial" in run.data.tags]
        children = [(int(run.data.tags["trial"]), run.info) for run in runs]
        self._unfinished = {number: info.run_id for number, info in children if info.status == "RUNNING"}
        return {number for number, info in children if info.status != "RUNNING"}

    def _search(self, tag: str, value: str) -> Iterator[Any]:
        """Yields the runs of the experiment with a tag."""
        token = None
        while True:
            page = self._client.search_runs([self._experiment], f"tags.`{tag}` = '{value}'", page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def _write(self, trial: Trial) -> None:
        if trial.number in self._unfinished:
            self._client.delete_run(self._unfinished.pop(trial.number))
        tags = {_PARENT: self._run} | tags_of(trial)
        run = self._client.create_run(self._experiment, tags=tags, run_name=f"trial {trial.number}").info.run_id
        self._unfinished[trial.number] = run
        now, new = int(time.time() * 1000), self._entities
        params = [new.Param(_name(name), str(value)[:_MAX_TEXT]) for name, value in trial.params.items()]
        metrics = [new.Metric(_name(name), value, now, 0) for name, value in metrics_of(trial).items()]
        metrics += [new.Metric("report", value, now, step) for step, value in curve_of(trial)]
        for part in _parts(params):
            self._client.log_batch(run, params=part)
        for part in _parts(metrics):
            self._client.log_batch(run, metrics=part)
        self._client.set_terminated(run, "FAILED" if trial.state == "failed" else "FINISHED")
        del self._unfinished[trial.number]

    def _finish(self, figures: Mapping[str, Figure], *, failed: bool) -> None:
        for heading, figure in figures.items():
            self._client.log_figure(self._run, figure, f"figures/{_name(heading)}.png")
        self._client.set_terminated(self._run, "KILLED" if failed else "FINISHED")


def _name(text: str) -> str:
    """Returns a text with "_" for the characters that MLflow has in no name."""
    return re.sub(r"[^\w\-. :/]", "_", text)


def _parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yields items in parts of one request."""
    for start in range(0, len(items), _MAX_ENTITIES):
        yield items[start : start + _MAX_ENTITIES]
