"""Trials of a study as parallel commands, with a study file that is always up to date."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, NamedTuple, Self

from dre_jax.data.files import make_folder, remove_left_over
from dre_jax.errors import ConfigError, DataError
from dre_jax.runtime.locks import file_in_use
from dre_jax.tuning.command.commands import Command, Outcome, terminate
from dre_jax.tuning.command.printed_value import curve_pattern
from dre_jax.tuning.command.process_guard import ProcessGroupGuard
from dre_jax.tuning.command.templates import Template
from dre_jax.tuning.engine_config import EngineConfig
from dre_jax.tuning.optimizer import Optimizer
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.surrogate import Surrogate
from dre_jax.tuning.trial import Trial

if TYPE_CHECKING:
    from dre_jax.tuning.command.shared_study import SharedStudy

_POLL_INTERVAL = 0.05
"""Seconds between two polls of the commands."""


class Progress(NamedTuple):
    """Progress of a run."""

    running: tuple[tuple[Trial, float], ...]
    """Running trials, with their run time in seconds."""
    ended: tuple[tuple[Trial, Outcome], ...]
    """Trials that have ended since the last poll."""


class StudyFile:
    """A study's file, which this process alone uses until the context ends."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens a new or an existing file; removes temporary files of writers that were killed.

        Raises:
          DataError: if another process uses the file.
        """
        self.path = Path(path)
        with contextlib.ExitStack() as stack:
            stack.enter_context(file_in_use(self.path))
            remove_left_over(self.path)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def open(
        self,
        space: Space,
        surrogate: Surrogate | EllipsisType | None = ...,
        *,
        direction: str | None = None,
        seed: int | None = None,
        config: EngineConfig | None = None,
    ) -> Optimizer:
        """Returns the study in the file, or a new one if there is no file.

        Args:
          space: the study's.
          surrogate: knowledge of past tasks; see `Optimizer.load`.
          direction: "minimize" or "maximize"; None takes the study's, "minimize" for a new one.
          seed: None takes the study's, 0 for a new one.
          config: treatment of pending and failed trials; None takes the study's.

        Raises:
          DataError: if the file is not a complete study, or is of another space, direction or seed.
        """
        if not self.path.exists():
            surrogate = None if surrogate is ... else surrogate
            return Optimizer(space, surrogate, direction=direction or "minimize", seed=seed or 0, config=config)
        study = Optimizer.load(self.path, surrogate, space=space, config=config)
        if study.directions:
            raise DataError(f"{self.path} must hold a study of one objective, but has {len(study.directions)}")
        for what, value, own in (("direction", direction, study.direction), ("seed", seed, study.seed)):
            if value is not None and value != own:
                raise DataError(f"{self.path} must hold a study of the {what} given, {value}, but its own is {own}")
        return study


def run_trials(
    optimizer: Optimizer | SharedStudy,
    template: Template,
    file: StudyFile | None,
    *,
    trials: int,
    workers: int = 1,
    timeout: float | None = None,
    total_timeout: float | None = None,
    stop_when_gain_below: float | None = None,
    metric: str | None = None,
    logs: Path | None = None,
    curve: str | None = None,
) -> Generator[Progress]:
    """Runs one command per trial until the study has enough trials; the end of the loop or process ends the commands.

    Running trials of an interrupted study are run again first.

    Args:
      optimizer: the study.
      template: the command.
      file: is written before a command starts, and after it has ended; None for a study that processes share.
      trials: number of trials of the study, existing ones included.
      workers: number of parallel commands.
      timeout: time limit in seconds; a trial that exceeds it fails.
      total_timeout: seconds after which no command starts; those that run are completed.
      stop_when_gain_below: no command starts once `Optimizer.gain_is_below` is true of this number.
      metric: see `read_value`.
      logs: folder for the output of each command, `NUMBER.out` and `NUMBER.err`.
      curve: regular expression of the lines that report a step and a value (`curve_pattern`); a command is ended if
        `Optimizer.should_stop` is true of its trial.

    Returns:
      The progress, some twenty times a second.

    Raises:
      ConfigError: if a number is not positive, a command cannot be started, or its output is ambiguous and no trial of
        the study has a value yet; the trial stays running.
      DataError: if the study cannot be written.
    """
    limits = [limit for limit in (timeout, total_timeout) if limit is not None]
    if min(trials, workers) < 1 or not all(limit > 0 for limit in limits):
        settings = f"{trials=}, {workers=}, {timeout=}, {total_timeout=}"
        raise ConfigError(f"trials, workers and time-outs must be positive, but got {settings}")
    if stop_when_gain_below is not None:
        optimizer.gain_is_below(stop_when_gain_below)  # checks the number and the method
    if curve is not None and not isinstance(optimizer, Optimizer):
        raise ConfigError("a study that processes share stops no command by its curve: pass a study file")
    pattern = None if curve is None else curve_pattern(curve)
    deadline = math.inf if total_timeout is None else time.monotonic() + total_timeout
    if logs is not None:
        make_folder(logs)

    def start(trial: Trial, worker: int) -> Command:
        arguments = template.fill(trial.params, trial.number, worker)
        logs_of_trial = logs and logs / str(trial.number)
        return Command(arguments, timeout=timeout, metric=metric, logs=logs_of_trial, curve=pattern)

    def is_over() -> bool:
        started = len(optimizer.trials) if isinstance(optimizer, Optimizer) else optimizer.n_started
        is_late = started >= trials or time.monotonic() >= deadline
        return is_late or (stop_when_gain_below is not None and optimizer.gain_is_below(stop_when_gain_below))

    def save() -> None:
        if isinstance(optimizer, Optimizer) and file is not None:
            optimizer.save(file.path)

    return _run(optimizer, save, start, is_over, workers)


class _Job(NamedTuple):
    """A trial that runs."""

    trial: Trial
    command: Command
    worker: int


def _run(
    optimizer: Optimizer | SharedStudy,
    save: Callable[[], None],
    start: Callable[[Trial, int], Command],
    is_over: Callable[[], bool],
    workers: int,
) -> Generator[Progress]:
    # Running trials of a study that processes share are those of others.
    is_shared = not isinstance(optimizer, Optimizer)
    resumed = [] if is_shared else [trial for trial in optimizer.trials if trial.state == "running"]
    jobs: list[_Job] = []
    next_trial: Future[Trial] | None = None
    # A thread computes suggestions: compilation must not delay a time-out.
    with ProcessGroupGuard() as guard, ThreadPoolExecutor(1) as executor, contextlib.ExitStack() as at_end:
        at_end.callback(lambda: terminate([job.command for job in jobs]))
        while True:
            ended = tuple(_tell(optimizer, jobs))
            if next_trial is not None and next_trial.done():
                trial, next_trial = next_trial.result(), None
                save()
                worker = min(set(range(workers)) - {job.worker for job in jobs})
                jobs.append(_Job(trial, start(trial, worker), worker))
            elif ended:
                save()
            guard.set_groups(job.command.group for job in jobs)
            if next_trial is None and len(jobs) < workers and (resumed or not is_over()):
                next_trial = executor.submit(resumed.pop, 0) if resumed else executor.submit(optimizer.ask)
            yield Progress(tuple((job.trial, job.command.seconds) for job in jobs), ended)
            if not jobs and next_trial is None:
                return
            time.sleep(_POLL_INTERVAL)


def _tell(optimizer: Optimizer | SharedStudy, jobs: list[_Job]) -> Iterator[tuple[Trial, Outcome]]:
    """Tells the outcomes of commands that have ended, and removes their jobs."""
    for job in list(jobs):
        if isinstance(optimizer, Optimizer) and not job.command.is_stopped:
            _report(optimizer, job)
        job.command.poll()
        outcome, number = job.command.outcome, job.trial.number
        if outcome is not None:
            if outcome.ambiguous and all(trial.value is None for trial in optimizer.trials):
                raise ConfigError(f"trial {number}: {outcome.reason}")
            jobs.remove(job)
            value = outcome.value
            if job.command.is_stopped:
                value = 0.0  # `tell` replaces it by the forecast
            trial = optimizer.tell_failed(number) if value is None else optimizer.tell(number, value)
            yield trial, outcome


def _report(optimizer: Optimizer, job: _Job) -> None:
    """Reports what a command has printed, and stops the command if its trial will hardly become the best."""
    reports = job.command.read_reports()
    for step, value in reports:
        optimizer.report(job.trial.number, value, step)
    if reports and optimizer.should_stop(job.trial.number):
        job.command.stop()
