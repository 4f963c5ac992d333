"""The loop of `Optimizer.optimize`: asks, evaluates and tells, in one thread or several."""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.tuning.trial import Trial

Callback = Callable[[Any, Trial], object]
"""What `Optimizer.optimize` calls after each trial, with the optimizer and the trial."""


class TrialLoop:
    """Evaluates an objective until a number of trials, a time or an expected gain is reached."""

    def __init__(
        self,
        optimizer: Any,
        f: Callable[[Trial], Any],
        n_trials: int | None,
        timeout: float | None,
        stop_when_gain_below: float | None,
        callbacks: Callback | Iterable[Callback],
        catch: type[Exception] | Iterable[type[Exception]],
    ) -> None:
        """Creates a loop. Arguments and `ConfigError` as in `Optimizer.optimize`; the time starts here."""
        if not callable(f):
            raise ConfigError(f"the objective must be a function of a trial, but got {f!r}")
        if n_trials is None and timeout is None:
            raise ConfigError("optimize needs n_trials, timeout or both, but got none")
        _require_positive(n_trials=n_trials, timeout=timeout)
        if stop_when_gain_below is not None:
            optimizer.gain_is_below(stop_when_gain_below)  # checks the number and the method
        self._optimizer, self._f, self._threshold = optimizer, f, stop_when_gain_below
        self._starts = itertools.count() if n_trials is None else iter(range(n_trials))
        self._deadline = math.inf if timeout is None else time.monotonic() + timeout
        self._stop = threading.Event()
        self._callbacks = (callbacks,) if callable(callbacks) else _items(callbacks)
        for function in self._callbacks:
            if not callable(function):
                raise ConfigError(f"callbacks must be functions of the optimizer and a trial, but got {function!r}")
        self._caught = (catch,) if isinstance(catch, type) else _items(catch)
        for kind in self._caught:
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise ConfigError(f"catch must be classes of exceptions, such as ValueError, but got {kind!r}")

    def run(self, n_jobs: int) -> None:
        """Runs the loop in threads. Raises what a callback raises, and the objective, unless it is caught."""
        _require_positive(n_jobs=n_jobs)
        if n_jobs == 1:
            self._work()
            return
        with ThreadPoolExecutor(n_jobs) as executor:
            try:
                for job in [executor.submit(self._work) for _ in range(n_jobs)]:
                    job.result()
            finally:
                self._stop.set()

    def _work(self) -> None:
        while not self._is_over() and next(self._starts, None) is not None:
            trial = self._optimizer.ask()
            try:
                trial = self._evaluate(trial)
                for callback in self._callbacks:
                    callback(self._optimizer, trial)
            except BaseException:
                self._stop.set()
                with contextlib.suppress(DataError):  # the objective may have told it
                    self._optimizer.tell_failed(trial)
                raise

    def _evaluate(self, trial: Trial) -> Trial:
        try:
            return self._optimizer.tell(trial, self._f(trial))
        except self._caught as error:
            if self._optimizer.trials[trial.number].state != "running":
                raise
            message = f"trial {trial.number} failed: {type(error).__name__}: {error}"
            warnings.warn(message, DataWarning, stacklevel=2)
            return self._optimizer.tell_failed(trial)

    def _is_over(self) -> bool:
        if self._stop.is_set() or time.monotonic() >= self._deadline:
            return True
        return self._threshold is not None and self._optimizer.gain_is_below(self._threshold)


def _require_positive(**numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is not None and not value > 0:
            raise ConfigError(f"{name} must be positive, but got {value!r}")


def _items(value: Any) -> tuple[Any, ...]:
    """Returns the items of an iterable; a single item for anything else."""
    return tuple(value) if isinstance(value, Iterable) else (value,)
