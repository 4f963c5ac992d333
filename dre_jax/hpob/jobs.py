"""Jobs, each the evaluation of one method on one search space: their result files, costs, and worker processes.

After an interruption, finished jobs are not repeated.
"""

import contextlib
import hashlib
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax

from dre_jax.data import Results, add_trace, bundled, list_spaces, load_space, read_results
from dre_jax.data.files import make_folder, read_json, write_json
from dre_jax.errors import ConfigError
from dre_jax.hpob.evaluation import Evaluation
from dre_jax.hpob.plan import Plan
from dre_jax.hpob.workers import Pool, WorkerDeath
from dre_jax.methods import find
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.trainer import meta_train
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.methods.foreign import is_foreign
from dre_jax.methods.registry import host_of, registered_entry
from dre_jax.runtime import cache
from dre_jax.runtime.progress import Bar

BUNDLED = "bundled"
"""Name of the folder of the bundled data."""


class Cost(NamedTuple):
    """The cost of a job."""

    seconds: float | None
    """Fitting, compiling and running; None if some of the runs were in the file before."""
    failed: list[str]
    """Runs that ended with an error, a line each."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One method on one search space of one folder, meta-trained with one seed."""

    method: str
    """A name, or a class's address."""
    data: str
    """A folder in HPO-B's layout, or `BUNDLED`."""
    space: str
    designs: tuple[str, ...]
    """Initial designs by name. A job with more designs adds to the same result file."""
    out: Path
    """Root of the result files and checkpoints of all jobs."""
    split: str = "test"
    """Tasks that are optimised."""
    trials: int = 50
    """Number of trials after the initial design."""
    seed: int = 0
    """Seed of meta-training and of the picks."""

    def plan(self) -> Plan:
        """Returns the plan of the evaluation."""
        return Plan(
            data=data_folder(self.data),
            method=self.method,
            spaces=(self.space,),
            checkpoints=self.checkpoints(),
            split=self.split,
            trials=self.trials,
            seeds=self.designs,
            seed=self.seed,
        )

    @property
    def label(self) -> str:
        """Name of the data and of the search space: spaces of several folders may share a name."""
        return f"{source_of(self.data)}/{self.space}"

    @property
    def path(self) -> Path:
        """The result file; its name depends on all fields but the designs, so that experiments share jobs."""
        name = self.method if _is_registered(self.method) else _digest(self.method)
        file = f"{source_of(self.data)}-{self.space}-{self.seed}.json"
        return self.out / "runs" / name / f"{self.split}-{self.trials}" / file

    @property
    def _cost_path(self) -> Path:
        return self.path.with_suffix(f".{'-'.join(self.designs)}.cost.json")

    @property
    def cost(self) -> Cost | None:
        """Cost of the job; None before its end."""
        return Cost(**read_json(self._cost_path)) if self._cost_path.exists() else None

    @property
    def done(self) -> bool:
        """True if all runs are in the result file; a job with failed runs is not done, and is run again."""
        cost = self.cost
        return cost is not None and not cost.failed

    def checkpoints(self) -> Path | None:
        """Returns the root of the ensemble's checkpoints, which all jobs with the same meta-training share."""
        if (sizes := self._ensemble()) is None:
            return None
        return self.out / "checkpoints" / _digest(*sizes) / f"{source_of(self.data)}-{self.seed}"

    def _ensemble(self) -> tuple[ModelConfig, MetaTrainConfig] | None:
        """Returns model and meta-training configuration if the method starts from a checkpoint, else None."""
        if not _is_registered(self.method) or not find(self.method).reads_checkpoints:
            return None
        method: Any = find(self.method).make()
        return method.model, method.training

    def meta_train(self) -> None:
        """Meta-trains the checkpoint that the evaluation starts from, or resumes its training."""
        sizes, root = self._ensemble(), self.checkpoints()
        if sizes is not None and root is not None:
            space = load_space(data_folder(self.data), self.space)
            meta_train(space, *sizes, key=jax.random.key(self.seed), folder=root / self.space)


def _is_registered(name: str) -> bool:
    """Returns whether a method's name is the same wherever it is used: files of one name may hold different methods."""
    return not is_foreign(name) and registered_entry(name) is not None


def _digest(*facts: object) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def source_of(data: str) -> str:
    """Returns the name of a folder of data."""
    return data if data == BUNDLED else Path(data).resolve().name


def data_folder(data: str) -> Path:
    """Returns the path of a folder of data, or of the bundled data."""
    return bundled.path() if data == BUNDLED else Path(data)


def make_jobs(
    methods: Iterable[str],
    data: Sequence[str],
    *,
    designs: tuple[str, ...],
    out: Path,
    spaces: Sequence[str] | None = None,
    **options: Any,
) -> list[Job]:
    """Returns a job for each method and search space.

    Args:
      methods: names or addresses; each counts once.
      data: folders in HPO-B's layout, or `BUNDLED`.
      designs: initial designs by name.
      out: root of all result files and checkpoints.
      spaces: search spaces; by default all that a folder has.
      options: other fields of `Job`, such as `trials=100`.

    Raises:
      ConfigError: for two folders of one name, or a search space that no folder has.
    """
    names = [source_of(source) for source in data]
    if len(set(names)) < len(names):
        raise ConfigError(f"folders of data must have different names, but got {', '.join(names)}")
    available = [(source, space) for source in data for space in list_spaces(data_folder(source))]
    names_available = {space for _, space in available}
    if unknown := [name for name in spaces or () if name not in names_available]:
        raise ConfigError(
            f"search spaces must be among {', '.join(sorted(names_available))}, but got {', '.join(unknown)}"
        )
    selected_spaces = [(source, space) for source, space in available if spaces is None or space in spaces]
    return [
        Job(method=method, data=source, space=space, designs=designs, out=out, **options)
        for method in dict.fromkeys(methods)
        for source, space in selected_spaces
    ]


def run_job(job: Job) -> Cost:
    """Does the missing runs of a job and returns its cost. Raises `DreError` if the plan is invalid."""
    start = time.perf_counter()
    job.meta_train()
    make_folder(job.path.parent)
    evaluation = Evaluation(job.plan(), job.path)
    is_new = evaluation.done == 0
    deque(evaluation, maxlen=0)
    seconds = time.perf_counter() - start if is_new else None
    cost = Cost(seconds, [str(run) for run in evaluation.failed])
    write_json(job._cost_path, cost._asdict())
    return cost


def collect(jobs: Iterable[Job], method: str) -> Results:
    """Returns a method's finished runs of `jobs` on all search spaces; spaces are named by `Job.label`."""
    results = Results({}, {"method": method})
    for job in jobs:
        for _, dataset, design, trace in _runs(job) if job.method == method else ():
            results = add_trace(results, job.label, dataset, design, trace)
    return results


def _runs(job: Job) -> Iterator[tuple[str, str, str, Any]]:
    if job.path.exists():
        yield from (run for run in read_results(job.path).runs() if run[2] in job.designs)


def complete_methods(jobs: Sequence[Job]) -> list[str]:
    """Returns the methods whose jobs are all finished with runs; prints a line for each other on standard error."""
    names = []
    for method in dict.fromkeys(job.method for job in jobs):
        has_run = [job.cost is not None and any(_runs(job)) for job in jobs if job.method == method]
        if all(has_run):
            names.append(method)
        else:
            print(f"{method} is left out: finished on {sum(has_run)} of {len(has_run)} search spaces", file=sys.stderr)
    return names


def check_method(method: str) -> None:
    """Raises `ConfigError` if a method is unknown, and `MissingExtraError` if a package that it needs is missing."""
    host = host_of(method)
    if host is None:
        find(method)
    else:
        host()


# Hundreds of compiled programs in one process lead to a crash inside XLA.
_GROUPS_A_PROCESS = 10


def run_jobs(jobs: Sequence[Job], workers: int, label: str = "jobs", *, quiet: bool = False) -> list[str]:
    """Does the jobs that are not done, on `workers` processes, and returns a line for each failed job.

    A job has failed if it, or some of its runs, ended with an error; the same grid does it again. Prints the lines on
    standard error, and before them progress under the heading `label`, unless `quiet`.

    Raises:
      MethodError: where processes cannot be started.
    """
    missing = [job for job in jobs if not job.done]
    n_done, failures = len(jobs) - len(missing), list[str]()
    groups, groups_per_pool = _groups(missing), workers * _GROUPS_A_PROCESS
    with Bar(label, len(jobs), quiet=quiet, start=n_done, unit="jobs") as bar:
        for first in range(0, len(groups), groups_per_pool):
            with contextlib.closing(Pool(_worker, workers)) as pool:
                for group, errors in pool.run((group, group) for group in groups[first : first + groups_per_pool]):
                    if isinstance(errors, WorkerDeath):
                        errors = {job: f"its process {errors.how}" for job in group if not job.done}
                    failures += [
                        f"{job.method} on {job.label}, seed {job.seed}: {error}" for job, error in errors.items()
                    ]
                    n_done += len(group)
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
    cache.keep_programs()
    return _run_group


def _run_group(group: Sequence[Job]) -> dict[Job, str]:
    errors = {}
    for job in group:
        try:
            if not job.done and (failures := run_job(job).failed):
                errors[job] = f"{len(failures)} runs failed, the first: {failures[0]}"
        except Exception as error:  # a job's fault must not end the others
            errors[job] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return errors
