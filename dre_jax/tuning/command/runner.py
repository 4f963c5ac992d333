"""Trials of a study as parallel commands, with a study file that is always up to date."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import EllipsisType, MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from dre_jax.checks import check_positive
from dre_jax.data.files import check_target, make_folder, remove_left_over
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.runtime.locks import file_in_use
from dre_jax.space.space import Space
from dre_jax.tuning.command.commands import Command, Outcome, terminate
from dre_jax.tuning.command.printed_value import ONE_VALUE, PrintedNames, curve_pattern
from dre_jax.tuning.command.process_guard import ProcessGroupGuard
from dre_jax.tuning.command.templates import Template
from dre_jax.tuning.fidelity.checkpoints import restart_if_lost
from dre_jax.tuning.fidelity.fidelity import Fidelity, require_fidelity
from dre_jax.tuning.fidelity.trainings import first_number
from dre_jax.tuning.objectives.criterion import Surrogates, surrogates_by_objective
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.study.trial_loop import Limits
from dre_jax.tuning.trials.objectives import (
    direction_arguments,
    objectives_by_name,
    require_objectives,
    value_or_mapping,
)
from dre_jax.tuning.trials.trial import VALUE, Trial

if TYPE_CHECKING:
    from dre_jax.tuning.command.shared_study import SharedStudy

_POLL_INTERVAL = 0.05
"""Seconds between two polls of the commands."""


class Progress(NamedTuple):
    """Progress of a run."""

    running: tuple[tuple[Trial, float], ...]
    """Running trials, with their run time in seconds."""
    ended_trials: tuple[tuple[Trial, Outcome], ...]
    """Trials that have ended since the last poll."""
    awaited: str = ""
    """What the run waits for before it ends; see `SharedStudy.awaited`."""


class FileOptimizer(Optimizer):
    """A study in a file whose trials are commands, with the interface of a `SharedStudy`."""

    path: Path

    @property
    def n_started(self) -> int:
        """Number of trials."""
        return len(self.trials)

    @property
    def awaited(self) -> str:
        """Nothing, as no other process runs trials."""
        return ""

    @property
    def interrupted_trials(self) -> list[Trial]:
        """The running trials, without those outside of the space."""
        return [trial for trial in self.trials if trial.state == "running" and trial.in_space]

    def keep_alive(self) -> None:
        """Does nothing, as no other process uses the file."""

    def give_back(self) -> None:
        """Does nothing, as running trials run again when the study is opened."""

    def prepare_checkpoint(self, trial: Trial, checkpoints: Path) -> Trial:
        """Returns a running trial with the folder of its training; it starts over if its checkpoint is lost."""
        return restart_if_lost(self, self.with_checkpoint(trial, checkpoints))

    def training_number(self, trial: Trial) -> int:
        """Returns the number of a trial's training, which names the folder of its checkpoint."""
        return first_number(trial, self.trials)

    def is_lost(self, trial: Trial) -> bool:
        """Returns False, as no other process runs trials."""
        return False

    def write(self) -> None:
        """Saves the study in its file."""
        self.save(self.path)


@contextlib.contextmanager
def study_in_file(
    path: Path,
    space: Space,
    surrogate: Surrogates | EllipsisType = ...,
    *,
    directions: Mapping[str, str | None] = MappingProxyType({VALUE: None}),
    seed: int | None = None,
    features: Mapping[str, Any] | None = None,
    fidelity: Fidelity | None = None,
    change_space: bool = False,
) -> Iterator[FileOptimizer]:
    """Yields the study in a file, or a new study; no other process can use the file meanwhile.

    Temporary files of writers that were killed are removed. Directions are by metric, "value" for a single one; None
    takes the study's direction, or "minimize" for a new study. Without a seed, the study's is used, or 0 for a new
    study. For the surrogate, the features of the task and a change of the space see `Optimizer.load`; trials that are
    then outside of the space do not run again, and have failed.

    Raises `DataError` if another process uses the file, if it cannot be written, is not a complete study, or is of
    another space, metrics, directions, seed or fidelity.
    """

    def new_study() -> FileOptimizer:
        objectives = objectives_by_name(directions)
        surrogates = surrogates_by_objective(None if surrogate is ... else surrogate, objectives)
        options: dict[str, Any] = {**direction_arguments(objectives), "seed": seed or 0, "features": features}
        options["fidelity"] = fidelity
        return FileOptimizer(space, value_or_mapping(surrogates), **options)

    if not path.exists():
        new_study()  # raises before a folder is made
        make_folder(path.parent)
    check_target(path, streams=False)
    with file_in_use(path):
        remove_left_over(path)
        if path.exists():
            study = FileOptimizer.load(path, surrogate, space=space, change_space=change_space, features=features)
            require_objectives(str(path), study.objectives, directions)
            if seed not in (None, study.seed):
                raise DataError(f"{path} must hold a study of seed {seed}, but its seed is {study.seed}")
            require_fidelity(str(path), study.fidelity, fidelity)
        else:
            study = new_study()
        study.path = path
        if change_space:
            _write_change(study)
        yield study


def _write_change(study: FileOptimizer) -> None:
    """Saves a study whose space may have changed; running trials outside of it fail, as no command runs them."""
    for trial in study.trials:
        if trial.state == "running" and not trial.in_space:
            study.tell_failed(trial)
            message = f"trial {trial.number}, which was interrupted, is outside of the space and counts as failed"
            warnings.warn(message, DataWarning, stacklevel=2)
    study.write()


def run_trials(
    study: FileOptimizer | SharedStudy,
    template: Template,
    *,
    trials: int | None,
    workers: int = 1,
    timeout: float | None = None,
    total_timeout: float | None = None,
    stop_when_gain_below: float | None = None,
    total_budget: float | None = None,
    names: PrintedNames = ONE_VALUE,
    logs: Path | None = None,
    curve: str | None = None,
    checkpoints: Path | None = None,
) -> Generator[Progress]:
    """Runs one command per trial until the study has enough trials; the end of the loop or process ends the commands.

    Running trials of an interrupted study run again first, in the folder of their training. If that folder is empty
    although the trial resumes another one, its checkpoint was lost, and it starts over (`Optimizer.restart`). If the
    loop is interrupted, a shared study gives its running trials back to all processes. The run does not end while the
    process of a running trial may be lost, as the trial would run again.

    Args:
      study: is written before a command starts, and after it has ended.
      template: the command.
      trials: number of trials of the study, existing ones included; None for any number within a total budget.
      workers: number of parallel commands.
      timeout: time limit in seconds; a trial that exceeds it fails.
      total_timeout: seconds after which no command starts; those that run are completed.
      stop_when_gain_below: no command starts once `Optimizer.gain_is_below` is true of this number.
      total_budget: of a study with a fidelity, in its units: no command starts once the trials have trained for as
        much (`Optimizer.total_budget`).
      names: of the values that a command prints, of the cost and of the standard error.
      logs: folder for the output of each command, `NUMBER.out` and `NUMBER.err`.
      curve: regular expression of the lines that report a step and a value (`curve_pattern`); a command is ended if
        `Optimizer.should_stop` is true of its trial. In a study with a fidelity, no command is ended.
      checkpoints: folder of the checkpoints, in which each training has a folder of its own, for a command that names
        it.

    Returns:
      The progress, some twenty times a second.

    Raises:
      ConfigError: if a number is not positive, the study takes no standard errors, a command cannot be started, or its
        output is ambiguous and no trial of the study has a value yet; the trial stays running.
      DataError: if the study cannot be written.
    """
    check_positive(trials=trials, workers=workers, timeout=timeout, total_timeout=total_timeout)
    limits = Limits(trials, total_timeout, stop_when_gain_below, total_budget)
    limits.check(study)
    if names.stderr is not None:
        study.require_standard_errors()
    if curve is not None and not isinstance(study, FileOptimizer):
        raise ConfigError("a study that processes share cannot stop a trial by its curve: pass a study file")
    pattern = None if curve is None else curve_pattern(curve)
    deadline = math.inf if total_timeout is None else time.monotonic() + total_timeout
    if logs is not None:
        make_folder(logs)

    def start(trial: Trial, worker: int) -> _Job:
        if checkpoints is not None:
            trial = study.prepare_checkpoint(trial, checkpoints)
        study.write()
        arguments = template.fill(trial, worker)
        logs_of_trial = logs and logs / str(trial.number)
        command = Command(arguments, timeout=timeout, names=names, logs=logs_of_trial, curve=pattern)
        return _Job(trial, command, worker)

    def is_late() -> bool:
        return time.monotonic() >= deadline

    def is_over() -> bool:
        has_all = trials is not None and study.n_started >= trials
        return has_all or is_late() or limits.are_reached(study)

    return _run(study, start, is_over, is_late, workers)


class _Job(NamedTuple):
    """A trial that runs."""

    trial: Trial
    command: Command
    worker: int


def _run(
    study: FileOptimizer | SharedStudy,
    start: Callable[[Trial, int], _Job],
    is_over: Callable[[], bool],
    is_late: Callable[[], bool],
    workers: int,
) -> Generator[Progress]:
    resumed_trials = study.interrupted_trials
    jobs: list[_Job] = []
    next_trial: Future[Trial | None] | None = None
    has_repeated = False
    # A thread computes suggestions: compilation must not delay a time-out.
    with (
        ProcessGroupGuard() as guard,
        contextlib.ExitStack() as after_suggestions,
        ThreadPoolExecutor(1) as executor,
        contextlib.ExitStack() as at_end,
    ):
        after_suggestions.callback(study.give_back)
        at_end.callback(lambda: terminate([job.command for job in jobs]))
        while True:
            study.keep_alive()
            ended_trials = tuple(_tell(study, jobs))
            trial = None
            if next_trial is not None and next_trial.done():
                trial, next_trial = next_trial.result(), None
            if trial is not None:
                known_params = (
                    other.params for other in study.trials if other.number != trial.number and other.state != "failed"
                )
                if not has_repeated and trial.resumes is None and trial.params in known_params:
                    has_repeated = True
                    fault = f"trial {trial.number} repeats a configuration, because the space has no other"
                    warnings.warn(fault, DataWarning, stacklevel=2)
                jobs.append(start(trial, min(set(range(workers)) - {job.worker for job in jobs})))
            elif ended_trials:
                study.write()
            guard.set_groups(job.command.group for job in jobs)
            if next_trial is None and len(jobs) < workers and (resumed_trials or not is_over()):
                if resumed_trials:
                    next_trial = executor.submit(resumed_trials.pop, 0)
                else:
                    next_trial = executor.submit(study.ask_unless, is_late)
            is_idle = not jobs and next_trial is None
            awaited = study.awaited if is_idle and not is_late() else ""
            yield Progress(tuple((job.trial, job.command.seconds) for job in jobs), ended_trials, awaited)
            if is_idle and not awaited:
                return
            time.sleep(_POLL_INTERVAL)


def _tell(study: FileOptimizer | SharedStudy, jobs: list[_Job]) -> Iterator[tuple[Trial, Outcome]]:
    """Tells the outcomes of commands that have ended, and removes their jobs."""
    for job in list(jobs):
        command, number = job.command, job.trial.number
        if study.is_lost(job.trial):
            command.stop()
        reports = [] if command.is_stopped else command.read_reports()
        command.poll()  # right after, as the last reports may be those of the end
        outcome = command.outcome
        if reports and isinstance(study, FileOptimizer):
            for step, reported_value in reports:
                study.report(number, reported_value, step)
            if outcome is None and study.fidelity is None and study.should_stop(number):
                command.stop()
        if outcome is not None:
            is_first = not any(trial.state in ("complete", "paused") for trial in study.trials)
            if outcome.ambiguous and is_first:
                raise ConfigError(f"trial {number}: {outcome.reason}")
            if (
                command.curve is not None
                and outcome.value is not None
                and is_first
                and not study.trials[number].reports
            ):
                fault = f"trial {number} printed no line that matches the curve's pattern"
                effect = "stops no trial early" if study.fidelity is None else "knows no curves"
                warnings.warn(f"{fault}: the study {effect}", DataWarning, stacklevel=2)
            if outcome.value is not None and is_first:
                _warn_of_missing(command.names, outcome, number)
            jobs.remove(job)
            value = 0.0 if command.is_stopped else outcome.value  # `tell` replaces 0 by the forecast
            if value is None:
                yield study.tell_failed(number, cost=outcome.cost), outcome
            else:
                yield study.tell(number, value, stderr=outcome.stderr, cost=outcome.cost), outcome


def _warn_of_missing(names: PrintedNames, outcome: Outcome, number: int) -> None:
    """Warns of a cost or a standard error that the first trial with a value has not printed."""
    for name, value, option in ((names.cost, outcome.cost, "cost"), (names.stderr, outcome.stderr, "stderr")):
        if name is not None and value is None:
            kind = "positive number" if option == "cost" else "number from 0"
            message = f"trial {number} printed no {kind} with the name {name!r} (--{option}): it counts as unknown"
            warnings.warn(message, DataWarning, stacklevel=3)
