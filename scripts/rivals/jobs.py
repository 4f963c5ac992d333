"""Searches of rivals on families of tasks, in processes of their own, with a file that they resume from."""

import json
import logging
import multiprocessing
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from dre_jax.hpob.workers import end_with_parent
from dre_jax.runtime.setup import prepare
from rivals.problems import Task
from rivals.registry import RIVALS
from rivals.search import Search, search

_Key = TypeVar("_Key", bound=tuple[Any, ...])


class Study(NamedTuple):
    """One rival on one task."""

    rival: str
    family: str
    task: str
    seed: int


class Family(Protocol):
    """Tasks of one search space."""

    @property
    def name(self) -> str:
        """Of the search space."""
        ...

    def tasks(self, group: int, seed: int) -> list[Task]:
        """Returns tasks that share their past, with the design of a seed."""
        ...


class Job(NamedTuple):
    """A rival on tasks that share their past."""

    rival: str
    family: Family
    group: int
    seed: int
    trials: int
    limit: float
    """Seconds of a search, after which it ends."""
    done: frozenset[Study]
    """Studies that are left out."""


def run_jobs(jobs: Sequence[Job], out: Path, workers: int) -> bool:
    """Runs jobs, appends their searches to a file, and returns whether one failed."""
    has_failed = False
    # Hundreds of compiled programs in one process end in a crash inside XLA.
    with multiprocessing.get_context("spawn").Pool(workers, end_with_parent, maxtasksperchild=1) as pool:
        for i, (job, results, error) in enumerate(pool.imap_unordered(work, jobs), start=1):
            append_searches(out, results)
            print(f"{i} of {len(jobs)}: {job.rival}, {job.family.name}", flush=True)
            if error:
                has_failed = True
                print(f"{job.rival} failed on {job.family.name}: {error}", file=sys.stderr, flush=True)
    return has_failed


def work(job: Job) -> tuple[Job, dict[Study, Search], str]:
    """Returns what a rival found, and the error that ended it."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # before PyTorch is there
        os.environ[name] = "1"
    prepare(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # some rivals log each trial
    make, results = RIVALS[job.rival].make(), dict[Study, Search]()
    for task in job.family.tasks(job.group, job.seed):
        study = Study(job.rival, job.family.name, task.name, job.seed)
        if study not in job.done and (task.problem.past or not RIVALS[job.rival].transfer):
            try:
                with redirect_stdout(StringIO()):  # some rivals print what they do
                    results[study] = search(task, make, job.seed, job.trials, job.limit)
            except Exception:  # of another library, whichever it is
                return job, results, traceback.format_exc(limit=-1).replace("\n", " ")
    return job, results, ""


def read_searches(path: Path, trials: int) -> dict[Study, Search]:
    """Returns the searches of a file that have enough trials; a line cut short is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("]]")]
    searches = {Study(*row[:4]): Search(*row[4:]) for row in rows}
    return {study: found for study, found in searches.items() if found.trials >= trials}


def append_searches(path: Path, searches: Mapping[_Key, Iterable[Any]]) -> None:
    """Appends searches to a file, each a line of its own, also after a line that was cut short."""
    with path.open("a+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        is_cut = file.read() not in ("", "\n")
        file.write("\n" * is_cut + "".join(json.dumps([*study, *found]) + "\n" for study, found in searches.items()))
