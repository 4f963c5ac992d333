"""Reports after each epoch, and whether the training ends there."""

import contextlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.tuning.trials.trial import Trial, objective_value


def report_epoch(trial: Trial, value: Any, epoch: float) -> bool:
    """Reports the value after an epoch; returns whether the training ends there.

    In a study with a fidelity, the training ends at the trial's budget, of which the epoch is the unit. In any other
    study, it ends if the trial is unlikely to become the best (`Trial.should_stop`).

    Args:
      trial: as `Optimizer.ask` or `Optimizer.optimize` gave it.
      value: a number, as `Trial.report` takes it.
      epoch: number of epochs, or steps of another unit, that the model has trained for.

    Raises:
      DataError: as `Trial.report`.

    Example:
      >>> from dre_jax.tuning import Fidelity, Float, Optimizer
      >>> optimizer = Optimizer({"lr": Float(0.0, 1.0)}, fidelity=Fidelity("epochs", 2, 8))
      >>> trial = optimizer.ask()
      >>> trial.budget, report_epoch(trial, 0.9, 1), report_epoch(trial, 0.7, 2)
      (2, False, True)
    """
    trial.report(value, epoch)
    return trial.should_stop() if trial.budget is None else epoch >= trial.budget


class EpochReport:
    """Reports a metric of a trainer after each epoch: the part of all callbacks that knows the trial."""

    value: float | None = None
    """The metric at the latest report; None before."""

    def __init__(self, trial: Trial, metric: str) -> None:
        """Creates the callback of one training.

        Args:
          trial: as `Optimizer.ask` or `Optimizer.optimize` gave it.
          metric: the name that the trainer gives it.

        Raises:
          ConfigError: for another kind of trial, such as Optuna's.
        """
        super().__init__()
        if not isinstance(trial, Trial):
            raise ConfigError(f"the trial must be of an Optimizer, but got {trial!r}: optuna-integration has Optuna's")
        self.trial = trial
        self.metric = metric
        self._names: set[str] = set()

    def _report(self, metrics: Mapping[str, Any], epoch: float) -> bool:
        """Reports the metric after an epoch; returns whether the training ends there.

        Metrics without this one, as of an epoch that the trainer does not validate, report nothing.
        """
        self._names.update(metrics)
        if self.metric not in metrics:
            return False
        self.value = objective_value(metrics[self.metric], f"the metric {self.metric!r}")
        return report_epoch(self.trial, self.value, epoch)

    def _check(self) -> None:
        """Raises `ConfigError` if the trainer has had no such metric so far."""
        if self.value is None:
            names = ", ".join(map(repr, sorted(self._names))) or "none"
            raise ConfigError(f"the metric must be one of the trainer's, which are {names}, but got {self.metric!r}")


def require_one_process(world_size: int) -> None:
    """Raises `ConfigError` for a training in several processes, of which each has a copy of the study."""
    if world_size > 1:
        rule = "a trial is trained in the process of its study"
        raise ConfigError(f"{rule}, but got {world_size} processes: start them by dre-jax tune")


def callback_class(name: str, *modules: str) -> Any:
    """Returns the class of callbacks in the first module that is installed.

    Without any, it is `object`: the site documents a callback without its trainer.
    """
    for module in modules:
        with contextlib.suppress(ModuleNotFoundError):
            return getattr(import_module(module), name)
    return object
