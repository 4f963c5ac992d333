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
from typing import Any

from dre_jax.checks import check_counts, check_positive
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.tuning.trials.trial import Trial

Callback = Callable[[Any, Trial], object]
"""What `Optimizer.optimize` calls after each trial, with the optimizer and the trial."""


def evaluate_trials(
    optimizer: Any,
    f: Callable[[Trial], Any],
    n_trials: int | None,
    timeout: float | None,
    stop_when_gain_below: float | None,
    callbacks: Callback | Iterable[Callback],
    catch: type[Exception] | Iterable[type[Exception]],
    n_jobs: int,
) -> None:
    """Evaluates an objective until a number of trials, a time or an expected gain is reached; see `Optimizer.optimize`.

    Raises the exceptions of callbacks, and those of the objective unless they are caught.
    """
    if not callable(f):
        raise ConfigError(f"the objective must be a function of a trial, but got {f!r}")
    if n_trials is None and timeout is None:
        raise ConfigError("optimize needs n_trials, timeout or both, but got none")
    if n_trials is not None:
        check_counts(1, n_trials=n_trials)
    n_threads = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
    check_counts(1, n_jobs=n_threads)
    check_positive(timeout=timeout)
    if stop_when_gain_below is not None:
        optimizer.gain_is_below(stop_when_gain_below)  # checks the number and the method
    functions = (callbacks,) if callable(callbacks) else _items(callbacks)
    for function in functions:
        if not callable(function):
            raise ConfigError(f"callbacks must be functions of the optimizer and a trial, but got {function!r}")
    exception_types = (catch,) if isinstance(catch, type) else _items(catch)
    for kind in exception_types:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise ConfigError(f"catch must be classes of exceptions, such as ValueError, but got {kind!r}")
    starts = itertools.count() if n_trials is None else iter(range(n_trials))
    deadline, stop = math.inf if timeout is None else time.monotonic() + timeout, threading.Event()

    def is_late() -> bool:
        return stop.is_set() or time.monotonic() >= deadline

    def is_over() -> bool:
        if is_late():
            return True
        return stop_when_gain_below is not None and bool(optimizer.gain_is_below(stop_when_gain_below))

    def evaluate(trial: Trial) -> Trial:
        try:
            return optimizer.tell(trial, f(trial))
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
