"""The loop of a sweep: asks for a batch of trials, has a launcher of Hydra run it, and tells the values."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dre_jax.checks import check_counts
from dre_jax.data.files import make_folder
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.space import Space
from dre_jax.tuning.command.runner import FileOptimizer, study_in_file
from dre_jax.tuning.hydra.overrides import SweepOverrides
from dre_jax.tuning.study.past_files import surrogate_from_files
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import best_trials
from dre_jax.tuning.trials.trial import VALUE, Trial

STUDY, PAST, RESULTS = "study.json", "past.npz", "optimization_results.yaml"
"""Files in the folder of a sweep: the study, the surrogate that has learned from past studies, and the results."""
log = logging.getLogger(__name__)


class Job(Protocol):
    """A job that has ended, as the launchers of Hydra return it."""

    @property
    def return_value(self) -> Any:
        """What the function of the job returned; raises what it raised."""
        ...


Launch = Callable[[Sequence[Sequence[str]], int], Sequence[Job]]
"""Runs jobs with these overrides, whose numbers are from the second argument on."""


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """What the configuration of the sweeper says; see `hydra_plugins.hydra_dre_sweeper`."""

    direction: str | Sequence[str] | Mapping[str, str] = "minimize"
    n_trials: int = 30
    n_jobs: int = 1
    past: str | Sequence[str] | None = None
    seed: int | None = None
    max_failure_rate: float = 1.0

    def __post_init__(self) -> None:
        """Raises `ConfigError` for numbers that are no counts, no share, or past studies of several objectives."""
        check_counts(1, n_trials=self.n_trials, n_jobs=self.n_jobs)
        if not 0 <= self.max_failure_rate <= 1:
            raise ConfigError(f"max_failure_rate must be a share between 0 and 1, but got {self.max_failure_rate!r}")
        if self.past and len(self.directions) > 1:
            raise ConfigError(f"past studies need a sweep of one objective, but got {len(self.directions)} directions")

    @property
    def directions(self) -> dict[str, str | None]:
        """Directions by objective, which are named by their position in a list."""
        if isinstance(self.direction, str):
            return {VALUE: self.direction}
        if isinstance(self.direction, Mapping):
            return dict(self.direction)
        return {f"objective_{i}": direction for i, direction in enumerate(self.direction)}


def run_sweep(folder: Path, overrides: SweepOverrides, config: SweepConfig, launch: Launch) -> None:
    """Runs the trials of a sweep, or those that an interrupted sweep in the folder lacks, and writes the results.

    A trial fails if its job raises an exception, or returns no value. Trials that were running when the sweep was
    interrupted run again first, in jobs of the same numbers.

    Raises:
      ConfigError: if the launcher returns another number of jobs.
      DataError: for a study of another search space, objectives or seed in the folder, if another process uses it, and
        as `surrogate_from_files`; without a trial that has a value.
      Exception: of the last job that failed in a batch of which more than `max_failure_rate` did.
    """
    make_folder(folder)
    options: dict[str, Any] = {"directions": config.directions, "seed": config.seed}
    with _jax_warns_only():
        surrogate = _surrogate(folder, overrides.space, config)
        with study_in_file(folder / STUDY, overrides.space, surrogate, **options) as study:
            _run_trials(study, overrides, config, launch)
            _write_results(folder / RESULTS, study)


def _run_trials(study: FileOptimizer, overrides: SweepOverrides, config: SweepConfig, launch: Launch) -> None:
    waiting = study.interrupted_trials
    while waiting or study.n_started < config.n_trials:
        n_new = 0 if waiting else min(config.n_jobs, config.n_trials - study.n_started)
        batch = waiting[: config.n_jobs] or [study.ask() for _ in range(n_new)]
        del waiting[: config.n_jobs]
        study.write()
        jobs = launch([overrides.job(trial.params) for trial in batch], batch[0].number)
        if len(jobs) != len(batch):
            raise ConfigError(f"a launcher must return a job for each trial, but {len(batch)} got {len(jobs)}")
        failures = [error for trial, job in zip(batch, jobs, strict=True) if (error := _tell(study, trial, job))]
        study.write()
        if len(failures) > config.max_failure_rate * len(batch):
            raise failures[-1]


@contextlib.contextmanager
def _jax_warns_only() -> Iterator[None]:
    """Keeps JAX's lines about its backends and caches out of the log of a sweep, where Hydra shows them."""
    logger = logging.getLogger("jax")
    level = logger.level
    logger.setLevel(level or logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _surrogate(folder: Path, space: Space, config: SweepConfig) -> Surrogate | None:
    """Returns the surrogate of the past studies, which learns once a sweep."""
    if not config.past:
        return None
    if (folder / PAST).exists():
        return Surrogate.load(folder / PAST, space=space)
    names = [config.past] if isinstance(config.past, str) else list(config.past)
    (direction,) = config.directions.values()
    paths = {name: Path(name) for name in names}
    return surrogate_from_files(paths, space, direction or "minimize", folder / PAST)


def _tell(study: FileOptimizer, trial: Trial, job: Job) -> Exception | None:
    """Tells the value of a job; returns the error of a trial that failed."""
    try:
        ended = study.tell(trial, job.return_value)
    except Exception as error:  # of the user's function, or a value that is none
        study.tell_failed(trial)
        log.warning(f"trial {trial.number} failed: {type(error).__name__}: {error}")
        return error
    if ended.state == "failed":
        log.warning(f"trial {trial.number} failed: it returned NaN")
        return DataError(f"the value of a trial must be a number, but trial {trial.number} returned NaN")
    log.info(f"trial {trial.number}: {ended.values or ended.value}")
    return None


def _write_results(path: Path, study: FileOptimizer) -> None:
    """Writes the best trial, or the front of several objectives, as Hydra's sweeper of Optuna does."""
    from omegaconf import OmegaConf

    best = best_trials(study.trials, study.objectives)
    if not best:
        raise DataError(f"all {len(study.trials)} trials of the sweep failed: the log has their errors")
    results: dict[str, Any] = {"name": "dre"}
    if len(study.objectives) > 1:
        results["solutions"] = [{"params": trial.params, "values": list(trial.values.values())} for trial in best]
        log.info(f"Pareto-optimal trials: {', '.join(str(trial.number) for trial in best)}")
    else:
        results |= {"best_params": best[0].params, "best_value": best[0].value}
        log.info(f"best of {len(study.trials)} trials: {best[0].value} (trial {best[0].number}): {best[0].params}")
    OmegaConf.save(OmegaConf.create(results), path)
