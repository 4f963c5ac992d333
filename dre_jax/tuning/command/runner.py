"""Trials of a study as commands that run side by side, with the study file up to date at every moment."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from dre_jax.data.files import make_folder, remove_left_over, stamp
from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.command.commands import Command, Outcome, end
from dre_jax.tuning.command.printed_value import METRIC
from dre_jax.tuning.command.process_guard import ProcessGroupGuard
from dre_jax.tuning.command.templates import Template
from dre_jax.tuning.optimizer import Optimizer
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.surrogate import Surrogate
from dre_jax.tuning.trial import Trial

_LOOK = 0.05
"""Seconds between two looks at the commands."""


class Progress(NamedTuple):
    """Progress of a run."""

    running: tuple[tuple[Trial, float], ...]
    """Trials that run, and for how many seconds."""
    ended: tuple[tuple[Trial, Outcome], ...]
    """Trials that have ended since the last look."""


class StudyFile:
    """A study's file, locked against other writers."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """A file that may be there already; what a writer left that was killed is removed."""
        self.path = Path(path)
        remove_left_over(self.path)
        self._known = stamp(self.path)

    def open(
        self,
        space: Space,
        surrogate: Surrogate | None = None,
        *,
        direction: str | None = None,
        seed: int | None = None,
    ) -> Optimizer:
        """The study in the file, or a new one where there is no file.

        Args:
          space: the study's.
          surrogate: what is known of past tasks.
          direction: "minimize" or "maximize"; None takes the study's, "minimize" for a new one.
          seed: None takes the study's, 0 for a new one.

        Raises:
          DataError: for a file that is no whole study, or one of another space, direction or seed.
        """
        if self._known is None:
            return Optimizer(space, surrogate, direction=direction or "minimize", seed=seed or 0)
        found = Optimizer.load(self.path, surrogate, space=space)
        for what, given, own in (("direction", direction, found.direction), ("seed", seed, found.seed)):
            if given is not None and given != own:
                raise DataError(f"{self.path} must hold a study of the {what} given, {given}, but its own is {own}")
        return found

    def save(self, optimizer: Optimizer) -> None:
        """Writes the study. Raises `DataError` where somebody else has written the file, or it cannot be written."""
        if stamp(self.path) != self._known:
            raise DataError(f"{self.path} must be written by one command at a time, but another one has written it")
        optimizer.save(self.path)
        self._known = stamp(self.path)


def run_trials(
    optimizer: Optimizer,
    template: Template,
    file: StudyFile,
    *,
    trials: int,
    workers: int = 1,
    timeout: float | None = None,
    metric: str = METRIC,
    logs: Path | None = None,
) -> Generator[Progress]:
    """Runs a command a trial until the study has so many; whatever ends the loop, or this process, ends the commands.

    Trials that a study says still run, of a run that was interrupted, are run again first: nothing is known of them.

    Args:
      optimizer: the study.
      template: the command.
      file: written before a command starts, and after it has ended.
      trials: of the study, those that it has already among them.
      workers: commands side by side.
      timeout: seconds until a command is ended; the trial has failed then.
      metric: see `read_value`.
      logs: a folder in which what a command prints is kept, `NUMBER.out` and `NUMBER.err`.

    Returns:
      Where it stands, some twenty times a second.

    Raises:
      ConfigError: for numbers that are not positive, or a command that cannot be started.
      DataError: where the study cannot be written.
    """
    if min(trials, workers) < 1 or (timeout is not None and not timeout > 0):
        given = f"{trials=}, {workers=}, {timeout=}"
        raise ConfigError(f"trials, workers and the time-out must be positive, but got {given}")
    if logs is not None:
        make_folder(logs)

    def start(trial: Trial) -> Command:
        arguments = template.fill(trial.params, trial.number)
        return Command(arguments, timeout=timeout, metric=metric, logs=logs and logs / str(trial.number))

    return _run(optimizer, file, start, trials, workers)


def _run(
    optimizer: Optimizer, file: StudyFile, start: Callable[[Trial], Command], trials: int, workers: int
) -> Generator[Progress]:
    again = [trial for trial in optimizer.trials if trial.state == "running"]
    commands: dict[int, Command] = {}
    next_one: Future[Trial] | None = None
    # Suggestions are made beside: a program that is being compiled must not hold up a time-out.
    with ProcessGroupGuard() as guard, ThreadPoolExecutor(1) as beside, contextlib.ExitStack() as at_end:
        at_end.callback(lambda: end(list(commands.values())))
        while True:
            ended = tuple(_tell(optimizer, commands))
            if next_one is not None and next_one.done():
                trial, next_one = next_one.result(), None
                file.save(optimizer)
                commands[trial.number] = start(trial)
            elif ended:
                file.save(optimizer)
            guard.set_groups(command.group for command in commands.values())
            if next_one is None and len(commands) < workers and (again or len(optimizer.trials) < trials):
                next_one = beside.submit(again.pop, 0) if again else beside.submit(optimizer.ask)
            yield Progress(tuple((optimizer.trials[n], command.seconds) for n, command in commands.items()), ended)
            if not commands and next_one is None:
                return
            time.sleep(_LOOK)


def _tell(optimizer: Optimizer, commands: dict[int, Command]) -> Iterator[tuple[Trial, Outcome]]:
    """Tells what has ended, and takes it out of the commands that run."""
    for number, command in list(commands.items()):
        command.look()
        if command.outcome is not None:
            del commands[number]
            value = command.outcome.value
            told = optimizer.tell_failed(number) if value is None else optimizer.tell(number, value)
            yield told, command.outcome
