"""One method on one search space: its runs in a result file that grows, its time in a file beside it."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pool import in_pools

from dre_jax.data import Results, add_trace, bundled, list_spaces, read_results
from dre_jax.data.files import make_folder, write_json

BUNDLED = "bundled"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One method on one search space."""

    method: str
    data: str
    """A folder in HPO-B's layout, or "bundled"."""
    space: str
    split: str
    designs: tuple[str, ...]
    trials: int
    seed: int
    out: Path

    def label(self) -> str:
        """The search space, with the data that it is of: spaces of several folders may share a name."""
        return f"{self.data if self.data == BUNDLED else Path(self.data).name}/{self.space}"

    def path(self) -> Path:
        """The result file."""
        return self.out / "runs" / self.method / f"{self.label().replace('/', '-')}.json"

    def costs(self) -> Path:
        """What it took; there once the runs of all these designs are. More designs are added to the same runs."""
        return self.path().with_suffix(f".{'-'.join(self.designs)}.seconds.json")


class Cost(NamedTuple):
    """What a job took."""

    seconds: float | None
    """In all: fitting, compiling and running; None where some runs were there before."""
    failed: list[str]
    """Runs that ended with an error."""


def folder(data: str) -> Path:
    """Where the tables are."""
    return bundled.path() if data == BUNDLED else Path(data)


def jobs(
    methods: Sequence[str],
    data: Sequence[str],
    *,
    split: str,
    designs: tuple[str, ...],
    trials: int,
    seed: int,
    out: Path,
) -> list[Job]:
    """All jobs, method by method."""
    spaces = [(source, space) for source in data for space in list_spaces(folder(source))]
    return [
        Job(method=method, data=source, space=space, split=split, designs=designs, trials=trials, seed=seed, out=out)
        for method in methods
        for source, space in spaces
    ]


def run_all(todo: Sequence[Job], workers: int) -> Iterator[tuple[int, int]]:
    """Does what is missing; yields how many are done, of how many."""
    missing = [job for job in todo if not job.costs().exists()]
    done = len(todo) - len(missing)
    yield done, len(todo)
    for finished in in_pools(missing, run, workers):
        done += finished
        yield done, len(todo)


def run(job: Job) -> int:
    """Does a job, from where it was interrupted; returns 1."""
    from dre_jax.benchmark import Evaluation, Plan

    plan = Plan(
        data=folder(job.data),
        method=job.method,
        spaces=(job.space,),
        split=job.split,
        trials=job.trials,
        seeds=job.designs,
        seed=job.seed,
        workers=1,
    )
    make_folder(job.path().parent)
    started = time.perf_counter()
    evaluation = Evaluation(plan, job.path())
    anew = evaluation.done == 0
    deque(evaluation, maxlen=0)
    cost = Cost(time.perf_counter() - started if anew else None, [str(failed) for failed in evaluation.failed])
    write_json(job.costs(), cost._asdict())
    return 1


def collect(todo: Sequence[Job], method: str) -> Results:
    """A method's runs of all search spaces, as far as they are there; spaces are named with their data."""
    results = Results({}, {"method": method})
    for job in todo:
        if job.method == method and job.path().exists():
            for _, dataset, seed, trace in read_results(job.path()).runs():
                results = add_trace(results, job.label(), dataset, seed, trace)
    return results


def cost_of(todo: Sequence[Job], method: str) -> Cost:
    """A method's cost over all search spaces."""
    own = [job for job in todo if job.method == method and job.costs().exists()]
    found = [Cost(**json.loads(job.costs().read_text())) for job in own]
    seconds = [cost.seconds for cost in found if cost.seconds is not None]
    failed = [line for cost in found for line in cost.failed]
    return Cost(sum(seconds) if len(seconds) == len(found) else None, failed)
