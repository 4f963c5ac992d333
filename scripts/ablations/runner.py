"""Meta-trains and evaluates variants, a file a variant, search space and seed; what is there is not done again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pool import in_pools

from dre_jax.data import Results, SearchSpace, add_trace, bundled, list_spaces, load_space, read_results, write_results
from dre_jax.methods import DRE
from dre_jax.methods.committee import Committee
from dre_jax.search.method import Method

BUNDLED = "bundled"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One variant on one search space, meta-trained with one seed."""

    method: Method
    data: str
    """A folder in HPO-B's layout, or "bundled"."""
    space: str
    seed: int
    designs: tuple[str, ...]
    split: str
    """Whose tasks are optimised."""
    trials: int
    out: Path

    def path(self) -> Path:
        """The result file: named by what it depends on, so that studies share their common variants."""
        facts = [
            dataclasses.asdict(self.method) if isinstance(self.method, DRE) else repr(self.method),
            self.designs,
            self.trials,
            *([] if self.split == "validation" else [self.split]),
        ]
        return self.out / "runs" / _digest(facts) / f"{_label(self.data)}-{self.space}-{self.seed}.json"

    def checkpoint(self) -> Path | None:
        """The meta-trained parameters: shared by variants that differ only in what happens at a trial."""
        if not isinstance(self.method, DRE) or not self.method.transfer:
            return None
        facts = [dataclasses.asdict(self.method.model), dataclasses.asdict(self.method.training)]
        return self.out / "checkpoints" / _digest(facts) / f"{_label(self.data)}-{self.space}-{self.seed}"


def _digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _label(data: str) -> str:
    return data if data == BUNDLED else Path(data).name


def folder(data: str) -> Path:
    return bundled.path() if data == BUNDLED else Path(data)


@cache
def _space(data: str, name: str) -> SearchSpace:
    return load_space(folder(data), name)


def run(job: Job) -> Path:
    """Does a job, unless its file is there."""
    path = job.path()
    if path.exists():
        return path
    import jax

    from dre_jax.search.batch import run_id, run_tasks

    space = _space(job.data, job.space)
    params = _learned(job, space)
    tasks = space.split(job.split)
    designs = {name: {seed: space.designs[name][seed] for seed in job.designs} for name in tasks}
    key = jax.random.fold_in(jax.random.key(job.seed), run_id(job.space))
    results = Results({}, {"configuration": json.loads(json.dumps(dataclasses.asdict(job.method)))})
    for dataset, seed, trace in run_tasks(job.method, params, tasks, designs, n_trials=job.trials, key=key):
        # A run of another meta-training is another run: its name says which.
        results = add_trace(results, f"{_label(job.data)}/{job.space}", dataset, f"{job.seed}:{seed}", trace)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_results(path, results)
    return path


def _learned(job: Job, space: SearchSpace) -> Any:
    import jax

    from dre_jax.training.trainer import meta_train

    if not isinstance(job.method, DRE):
        return _fitted(job.method, job.data, job.space, job.seed)
    folder = job.checkpoint()
    if folder is None:
        return None
    return meta_train(space, job.method.model, job.method.training, key=jax.random.key(job.seed), folder=folder).params


@cache
def _fitted(method: Method, data: str, space: str, seed: int) -> Any:
    """What a method learns; who votes in several committees learns once."""
    import jax

    if isinstance(method, Committee):
        return tuple(_fitted(member, data, space, seed) for member in method.members)
    return method.fit(_space(data, space), jax.random.key(seed))


def jobs(
    methods: Sequence[Method],
    data: Sequence[str],
    seeds: Sequence[int],
    designs: tuple[str, ...],
    out: Path,
    split: str,
    trials: int,
) -> list[Job]:
    """All jobs, seed by seed: a table of what is finished so far is a fair one."""
    return [
        Job(method=method, data=source, space=space, seed=seed, designs=designs, split=split, trials=trials, out=out)
        for seed in seeds
        for method in dict.fromkeys(methods)
        for source in data
        for space in list_spaces(folder(source))
    ]


def run_all(todo: Sequence[Job], workers: int) -> Iterator[tuple[int, int]]:
    """Does the jobs on so many processes; yields how many are done, of how many."""
    missing = [job for job in todo if not job.path().exists()]
    # Variants that share a meta-training would do it twice if they came at the same time: the first does it for all.
    done = len(todo) - len(missing)
    yield done, len(todo)
    for finished in in_pools(_groups(missing), _run_group, workers):
        done += finished
        yield done, len(todo)


def _groups(missing: Sequence[Job]) -> list[list[Job]]:
    """Jobs that share a meta-training, together; other methods may share parts of what they learn."""
    found: dict[object, list[Job]] = {}
    for job in missing:
        alone = job.path() if isinstance(job.method, DRE) else (job.data, job.space, job.seed)
        found.setdefault(job.checkpoint() or alone, []).append(job)
    return list(found.values())


def _run_group(group: Sequence[Job]) -> int:
    for job in group:
        run(job)
    return len(group)


def collect(method: Method, todo: Sequence[Job]) -> Results:
    """A variant's runs of all search spaces and seeds that are finished."""
    results = Results()
    for job in todo:
        if job.method == method and job.path().exists():
            for one in read_results(job.path()).runs():
                results = add_trace(results, *one)
    return results
