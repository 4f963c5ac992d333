"""Jobs in worker processes, one thread each; after an interruption, finished jobs are not done again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dre_jax.hpob.jobs import Job, run_job
from dre_jax.hpob.workers import Pool, WorkerDeath
from dre_jax.runtime.progress import Bar

__all__ = ["Failure", "run_jobs", "run_jobs_with_progress"]

# Hundreds of compiled programs in one process end in a crash inside XLA, sooner or later.
_GROUPS_A_PROCESS = 10


class Failure(NamedTuple):
    """A job with an error in the job or in some of its runs; running the same grid again repeats it."""

    job: Job
    error: str

    def __str__(self) -> str:
        """A line about it."""
        method = self.job.method if isinstance(self.job.method, str) else type(self.job.method).__name__
        return f"{method} on {self.job.label}, seed {self.job.seed}: {self.error}"


def run_jobs(jobs: Sequence[Job], workers: int) -> Iterator[tuple[int, list[Failure]]]:
    """Does the jobs that are not done, on `workers` processes; yields how many are done, and the failures so far.

    The first item comes before any work: it counts what was done before.

    Raises:
      MethodError: where processes cannot be started.
    """
    missing = [job for job in jobs if not job.done]
    past, failures = len(jobs) - len(missing), list[Failure]()
    yield past, []
    groups = _groups(missing)
    groups_per_pool = workers * _GROUPS_A_PROCESS
    for first in range(0, len(groups), groups_per_pool):
        pool = Pool(_worker, workers)
        try:
            for group, errors in pool.run((group, group) for group in groups[first : first + groups_per_pool]):
                if isinstance(errors, WorkerDeath):
                    errors = {job: f"its process {errors.how}" for job in group if not job.done}
                failures += [Failure(job, error) for job, error in errors.items()]
                past += len(group)
                yield past, failures
        finally:
            pool.close()


def run_jobs_with_progress(jobs: Sequence[Job], workers: int, label: str, *, quiet: bool = False) -> list[Failure]:
    """Runs the jobs that are not done; prints progress and a line for each failure on standard error."""
    progress = run_jobs(jobs, workers)
    n_done, failures = next(progress)
    with Bar(label, len(jobs), quiet=quiet, start=n_done, unit="jobs") as bar:
        for n_done, failures in progress:  # noqa: B007 (the last failures are all of them)
            bar.advance_to(n_done)
    for failure in failures:
        print(f"dre-jax: failed: {failure}", file=sys.stderr)
    return failures


def _groups(jobs: Sequence[Job]) -> list[tuple[Job, ...]]:
    """Returns groups of jobs that share a checkpoint, so that only one process trains it."""
    groups: dict[object, list[Job]] = {}
    for job in jobs:
        root = job.checkpoints()
        groups.setdefault(job if root is None else (root, job.space), []).append(job)
    return [tuple(group) for group in groups.values()]


def _worker() -> Callable[[Sequence[Job]], dict[Job, str]]:
    """Returns the function that does a group of jobs in a process and returns the errors of failed jobs."""
    from dre_jax.runtime import cache

    cache.keep_programs()
    return _run_group


def _run_group(group: Sequence[Job]) -> dict[Job, str]:
    errors = {job: _error_of(job) for job in group if not job.done}
    return {job: error for job, error in errors.items() if error}


def _error_of(job: Job) -> str:
    try:
        failed = run_job(job).failed
    except Exception as error:  # a job's fault must not end the others
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return f"{len(failed)} runs failed, the first: {failed[0]}" if failed else ""
