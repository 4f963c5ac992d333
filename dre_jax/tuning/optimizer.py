"""Ask and tell: tunes a live model, with sequential or parallel trials."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, overload

import numpy as np

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.engine import Engine, EngineConfig, Observation
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.study_file import read_study, write_study
from dre_jax.tuning.surrogate import Surrogate
from dre_jax.tuning.trial import State, Trial, validate_study


class Optimizer:
    """Suggests configurations and learns from their values.

    Several threads may ask and tell: they ask one after the other, and tell at any time. The same seed and the same
    answers give the same suggestions.

    Example:
      >>> from dre_jax.tuning import Float
      >>> optimizer = Optimizer(Space({"x": Float(-1.0, 1.0)}), direction="minimize", seed=0)
      >>> for _ in range(3):
      ...     trial = optimizer.ask()
      ...     _ = optimizer.tell(trial, trial.params["x"] ** 2)
      >>> optimizer.best.value <= optimizer.trials[0].value
      True
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        surrogate: Surrogate | None = None,
        *,
        direction: str = "minimize",
        seed: int = 0,
        config: EngineConfig | None = None,
    ) -> None:
        """Creates a study without trials.

        Args:
          space: the search space.
          surrogate: knowledge of past tasks; without one, the best method that needs none is used.
          direction: "minimize" or "maximize".
          seed: seed of all suggestions.
          config: treatment of pending and failed trials.

        Raises:
          ConfigError: for an unknown direction, a seed that is no whole number from 0, or an empty space.
          DataError: for a surrogate of another space.
        """
        validate_study(direction, seed)
        self.space = space if isinstance(space, Space) else Space(space)
        self.direction = direction
        self.seed = int(seed)
        self._engine = Engine(self.space, surrogate, seed=self.seed, config=config)
        self._trials: list[Trial] = []
        self._lock = threading.RLock()  # of the trials
        self._turn = threading.RLock()  # to ask, which takes its time: others may tell meanwhile

    @property
    def surrogate(self) -> Surrogate | None:
        """Knowledge of past tasks; None without."""
        return self._engine.surrogate

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in the order of their numbers."""
        with self._lock:
            return tuple(self._trials)

    @property
    def best(self) -> Trial:
        """The complete trial with the best value, the first of equal ones. Raises `DataError` if none is complete."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        if not complete:
            raise DataError("there is a best trial once one is complete, but none is")
        return max(complete, key=lambda trial: (self._response(trial), -trial.number))

    @overload
    def ask(self, n: None = None) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """Returns the next trial, or a list of `n` different trials, none of which is still running.

        Raises:
          ConfigError: for a number below 1.
        """
        if n is None:
            return self._ask()
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ConfigError(f"the number of trials to ask for must be at least 1, but got {n!r}")
        with self._turn:
            return [self._ask() for _ in range(n)]

    def tell(self, trial: Trial | int, value: float) -> Trial:
        """Reports the value of a trial.

        Args:
          trial: as `ask` returned it, or its number.
          value: a number; infinity is worse, or better, than all others. NaN makes the trial one that failed.

        Returns:
          The trial as it is now.

        Raises:
          DataError: if the trial is of another study or has ended already, or the value is not a number.
        """
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise DataError(f"the value of a trial must be a number, but got {value!r}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        if math.isnan(number):
            return self.tell_failed(trial)
        with self._lock:
            return self._finish(trial, "complete", number)

    def tell_failed(self, trial: Trial | int) -> Trial:
        """Reports that a trial failed: its configuration is not proposed again, and nothing else is concluded from it.

        Returns:
          The trial as it is now.

        Raises:
          DataError: as `tell`.
        """
        with self._lock:
            return self._finish(trial, "failed", None)

    def add(self, params: Mapping[str, Any], value: float | None) -> Trial:
        """Adds an external evaluation; the value is None if it failed.

        Raises:
          DataError: for a configuration of another space, or a value that is no number.
        """
        with self._lock:
            trial = Trial(len(self._trials), self.space.check(params))
            self._trials.append(trial)
            try:
                return self.tell_failed(trial) if value is None else self.tell(trial, value)
            except DataError:
                self._trials.pop()
                raise

    def add_running(self, params: Mapping[str, Any]) -> Trial:
        """Adds an external evaluation that is running, to be told later.

        Raises:
          DataError: for a configuration of another space.
        """
        with self._lock:
            self._trials.append(Trial(len(self._trials), self.space.check(params)))
            return self._trials[-1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the study to a file, completely or not at all. Raises `DataError` if it cannot be written."""
        with self._lock:
            write_study(Path(path), self.space, self.direction, self.seed, self._trials)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        surrogate: Surrogate | None = None,
        *,
        space: Space | None = None,
        config: EngineConfig | None = None,
    ) -> Optimizer:
        """Reads a study that `save` wrote. Running trials stay running: tell their values, or that they failed.

        Args:
          path: the file.
          surrogate: knowledge of past tasks, which is not in the file.
          space: the expected space; by default any.
          config: treatment of pending and failed trials.

        Raises:
          DataError: if the file is truncated, of another version, or not a study; it stays unchanged.
        """
        study = read_study(Path(path))
        if space is not None and space != study.space:
            raise DataError(f"{path} must hold a study of the space given, but holds one of {study.space!r}")
        optimizer = cls(study.space, surrogate, direction=study.direction, seed=study.seed, config=config)
        optimizer._trials = study.trials
        return optimizer

    def _ask(self) -> Trial:
        with self._turn:
            trials = self.trials
            params = self._engine.suggest(
                [Observation(t.params, self._response(t)) for t in trials if t.state == "complete"],
                number=len(trials),
                pending=[t.params for t in trials if t.state == "running"],
                failed=[t.params for t in trials if t.state == "failed"],
            )
            return self.add_running(params)

    def _response(self, trial: Trial) -> float:
        assert trial.value is not None
        return trial.value if self.direction == "maximize" else -trial.value

    def _finish(self, trial: Trial | int, state: State, value: float | None) -> Trial:
        own = self._trial_of(trial)
        if own.state != "running":
            outcome = "failed" if own.state == "failed" else f"gave {own.value!r}"
            raise DataError(f"a trial is told once, but trial {own.number} {outcome} already")
        self._trials[own.number] = own._replace(state=state, value=value)
        return self._trials[own.number]

    def _trial_of(self, trial: Trial | int) -> Trial:
        number = trial.number if isinstance(trial, Trial) else trial
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise DataError(f"a trial must be as `ask` returned it, or its number, but got {trial!r}")
        if not 0 <= number < len(self._trials):
            raise DataError(f"a trial must be one of the {len(self._trials)} of this study, but got number {number}")
        own = self._trials[number]
        if isinstance(trial, Trial) and trial.params != own.params:
            mismatch = f"trial {number} is {own.params!r}, not {trial.params!r}"
            raise DataError(f"a trial must be of this study, but {mismatch}")
        return own
