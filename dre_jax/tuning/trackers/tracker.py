"""What all trackers of experiments do: each ended trial is written once, also after a kill."""

from __future__ import annotations

import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dre_jax.errors import ConfigError, DataWarning, import_extra
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Tracker(ABC):
    """Writes the trials of a study to a tracker of experiments, and its figures at the end.

    A tracker is a callback of `Optimizer.optimize` and a context, whose end writes the figures. Every ended trial is
    written once. A study that `Optimizer.load` read continues where its tracker was, also after a kill. Trials that
    cannot be written are written with the next one.
    """

    def __init__(self) -> None:
        """Creates a tracker of a study that its first call names. Raises `MissingExtraError` without Optuna."""
        import_extra("optuna", "optuna", "optuna")  # for figures: before the trials rather than after them
        self._lock = threading.Lock()
        self._optimizer: Optimizer | None = None
        self._written: set[int] = set()

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        """Writes the trials that have ended, as a callback of `Optimizer.optimize`.

        Raises:
          ConfigError: for another study than before.

        Warns:
          DataWarning: if the tracker takes no trials at present.
        """
        if self._optimizer is None:
            self.track(optimizer)
            return
        try:
            self.track(optimizer)
        except ConfigError:
            raise
        except Exception as error:  # of a server that is away, say: no reason to end the search
            fault = f"trial {trial.number} is not tracked yet: {type(error).__name__}: {error}"
            warnings.warn(fault, DataWarning, stacklevel=2)

    def track(self, optimizer: Optimizer) -> None:
        """Writes the trials of a study that have ended and are not written yet.

        Raises:
          ConfigError: for another study than before.
          Exception: of the tracker.
        """
        with self._lock:
            if self._optimizer is None:
                self._written = self._open(optimizer)
                self._optimizer = optimizer
            if optimizer.study_id != self._optimizer.study_id:
                raise ConfigError("a tracker is of one study, but got another one: create a tracker for each")
            for trial in optimizer.trials:
                if trial.state != "running" and trial.number not in self._written:
                    self._write(trial)
                    self._written.add(trial.number)

    def finish(self, *, failed: bool = False) -> None:
        """Writes the remaining trials and the figures, and ends the tracking.

        Args:
          failed: whether the search was interrupted; then without figures.

        Raises:
          Exception: of the tracker.
        """
        if self._optimizer is not None:
            self.track(self._optimizer)
            self._finish({} if failed else self._optimizer.figures(), failed=failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.finish(failed=kind is not None)

    @abstractmethod
    def _open(self, optimizer: Optimizer) -> set[int]:
        """Finds the study, or creates it; returns the numbers of the trials that were written before."""

    @abstractmethod
    def _write(self, trial: Trial) -> None:
        """Writes a trial that has ended, in place of what a kill may have left of it."""

    @abstractmethod
    def _finish(self, figures: Mapping[str, Figure], *, failed: bool) -> None:
        """Writes the figures by heading, and closes the tracker."""


def metrics_of(trial: Trial) -> dict[str, float]:
    """Returns the numbers of an ended trial by name: values, standard error, cost, budget and constraints.

    Example:
      >>> metrics_of(Trial(0, {"x": 0.5}, "complete", 2.0, constraints={"memory": -1.0}, cost=60.0))
      {'value': 2.0, 'cost': 60.0, 'constraint/memory': -1.0}
    """
    fields = {name: getattr(trial, name) for name in ("value", "stderr", "cost", "budget")}
    constraints = {f"constraint/{name}": value for name, value in trial.constraints.items()}
    return {name: float(value) for name, value in fields.items() if value is not None} | trial.values | constraints


def curve_of(trial: Trial) -> list[tuple[int, float]]:
    """Returns the reports of a trial by whole steps, which trackers require: thousandths if some are not whole.

    Example:
      >>> curve_of(Trial(0, {}, reports={1.0: 0.9, 2.0: 0.7})), curve_of(Trial(0, {}, reports={0.5: 0.9, 1.0: 0.7}))
      ([(1, 0.9), (2, 0.7)], [(500, 0.9), (1000, 0.7)])
    """
    factor = 1 if all(float(step).is_integer() for step in trial.reports) else 1000
    return [(round(factor * step), value) for step, value in sorted(trial.reports.items())]


def tags_of(trial: Trial) -> dict[str, str]:
    """Returns the texts of a trial by name: its number, its state, and the trial that it resumes.

    Example:
      >>> tags_of(Trial(3, {"x": 0.5}, "paused", 2.0, budget=4, resumes=1))
      {'trial': '3', 'state': 'paused', 'resumes': '1'}
    """
    resumes = {} if trial.resumes is None else {"resumes": str(trial.resumes)}
    return {"trial": str(trial.number), "state": trial.state} | resumes
