"""The loop of `Optimizer.optimize`: asks, evaluates and tells, in one thread or several."""

import contextlib
import itertools
import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from dre_jax.checks import check_counts, check_positive
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.tuning.trials.trial import Trial

Callback = Callable[[Any, Trial], object]
"""What `Optimizer.optimize` calls after each trial, with the optimizer and the trial."""


class Limits(NamedTuple):
    """What ends a loop over trials, whichever comes first; None for no limit."""

    n_trials: int | None = None
    timeout: float | None = None
    """Seconds."""
    gain: float | None = None
    """Expected gain below which it ends."""
    total_budget: float | None = None
    """Of the trials of the study, in units of the fidelity."""

    def check(self, optimizer: Any) -> None:
        """Raises `ConfigError` without a limit, for one that is not positive, or one that the study does not have."""
        if self.n_trials is None and self.timeout is None and self.total_budget is None:
            raise ConfigError("optimize needs n_trials, timeout or total_budget, but got none")
        if self.n_trials is not None:
            check_counts(1, n_trials=self.n_trials)
        check_positive(timeout=self.timeout, total_budget=self.total_budget)
        if self.total_budget is not None and optimizer.fidelity is None:
            raise ConfigError("total_budget needs a study with a fidelity, but the study has none")
        if self.gain is not None:
            optimizer.gain_is_below(self.gain)  # checks the number and the method

    def are_reached(self, optimizer: Any) -> bool:
        """Returns whether the study has spent its budget, or expects too little gain."""
        if self.total_budget is not None and optimizer.total_budget >= self.total_budget:
            return True
        return self.gain is not None and bool(optimizer.gain_is_below(self.gain))


def evaluate_trials(
    optimizer: Any,
    f: Callable[[Trial], Any],
    limits: Limits,
    callbacks: Callback | Iterable[Callback],
    catch: type[Exception] | Iterable[type[Exception]],
    n_jobs: int,
    checkpoints: Path | None = None,
) -> None:
    """Evaluates an objective until a limit is reached; see `Optimizer.optimize`.

    Raises the exceptions of callbacks, and those of the objective unless they are caught.
    """
    if not callable(f):
        raise ConfigError(f"the objective must be a function of a trial, but got {f!r}")
    limits.check(optimizer)
    n_threads = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
    check_counts(1, n_jobs=n_threads)
    functions = (callbacks,) if callable(callbacks) else _items(callbacks)
    for function in functions:
        if not callable(function):
            raise ConfigError(f"callbacks must be functions of the optimizer and a trial, but got {function!r}")
    exception_types = (catch,) if isinstance(catch, type) else _items(catch)
    for kind in exception_types:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise ConfigError(f"catch must be classes of exceptions, such as ValueError, but got {kind!r}")
    starts = itertools.count() if limits.n_trials is None else iter(range(limits.n_trials))
    deadline = math.inf if limits.timeout is None else time.monotonic() + limits.timeout
    stop = threading.Event()

    def is_late() -> bool:
        return stop.is_set() or time.monotonic() >= deadline

    def is_over() -> bool:
        return is_late() or limits.are_reached(optimizer)

    def evaluate(trial: Trial) -> Trial:
        try:
            return optimizer.tell(
                trial, f(trial if checkpoints is None else optimizer.with_checkpoint(trial, checkpoints))
            )
        except exception_types as error:
            if optimizer.trials[trial.number].state != "running":
                raise
            message = f"trial {trial.number} failed: {type(error).__name__}: {error}"
            warnings.warn(message, DataWarning, stacklevel=2)
            return optimizer.tell_failed(trial)

    def work() -> None:
        while not is_over() and next(starts, None) is not None:
            trial = optimizer.ask_unless(is_late)  # a suggestion takes time, most of all one that compiles
            if trial is None:
                return
            try:
                trial = evaluate(trial)
                for function in functions:
                    function(optimizer, trial)
            except BaseException:
                stop.set()
                with contextlib.suppress(DataError):  # the objective may have reported the trial's value
                    optimizer.tell_failed(trial)
                raise

    if n_threads == 1:
        work()
        return
    with ThreadPoolExecutor(n_threads) as executor:
        try:
            for job in [executor.submit(work) for _ in range(n_threads)]:
                job.result()
        finally:
            stop.set()


def _items(value: Any) -> tuple[Any, ...]:
    """Returns the items of an iterable; a single item for anything else."""
    return tuple(value) if isinstance(value, Iterable) else (value,)
