"""HPO-B's protocol on one method: every task and initial design of a split; each run is added to a result file."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dre_jax.data import Results, SearchSpace, add_trace, load_space, read_results, write_results
from dre_jax.data.files import check_target, existing_json, location, make_folder, remove_left_over, stamp
from dre_jax.data.hpob import Outline, files_of
from dre_jax.errors import ConfigError, DataError, MethodError, import_extra
from dre_jax.hpob.compiled_runs import CompiledRunner, ContinuousRunner
from dre_jax.hpob.continuous import XGBOOST
from dre_jax.hpob.host_runs import HostRunner, surrogate_runs
from dre_jax.hpob.plan import FailedRun, FinishedRun, PendingRuns, Plan, check
from dre_jax.methods.dre.backends.provenance import with_backend
from dre_jax.methods.foreign import is_foreign
from dre_jax.methods.registry import host_of
from dre_jax.methods.storage.provenance import versions, warn_of_backends
from dre_jax.runtime import processes
from dre_jax.runtime.locks import folder_lock
from dre_jax.search.batch import run_id
from dre_jax.search.host import HostMethod
from dre_jax.search.method import Method
from dre_jax.summaries import summary


class Evaluation:
    """Iterates over the runs that are missing from the result file, and writes each to the file before it yields it.

    One search space is in memory at a time, with only the split that is evaluated, unless the method is fitted. On an
    accelerator, all search spaces are in memory if the method reads its parameters from checkpoints, because one
    program may compute their runs. Several processes compute the same runs together, and the first reads and writes the
    file. Independent evaluations of one method may write the same file: each adds its runs to those in the file.

    Args:
      plan: the plan of the evaluation.
      out: the result file.

    Raises:
      DataError, ConfigError, CheckpointError: before the first run, for anything that is missing or does not fit. For a
        defect of a table, when its search space is read.
    """

    def __init__(self, plan: Plan, out: str | os.PathLike[str]) -> None:
        self.plan = plan
        self.out = Path(out)
        self._spaces, self._planned_runs = check(plan)
        self._runner = _runner(plan, self._spaces)
        self._stamp: tuple[int, ...] | None = None
        self._results = self._begin()
        self.failed: list[FailedRun] = []
        self.total = sum(len(seeds) for datasets in self._planned_runs.values() for seeds in datasets.values())
        if self.done < self.total:
            warn_of_backends(self._results.meta["backends"], self.out)

    def __repr__(self) -> str:
        return summary(self, method=self.plan.method, out=str(self.out), done=self.done, total=self.total)

    @property
    def done(self) -> int:
        """Runs of this plan that are in the file."""
        return self.total - sum(len(seeds) for name in self._planned_runs for seeds in self._missing(name).values())

    def __iter__(self) -> Iterator[FinishedRun]:
        todo = [name for name in self._spaces if self._missing(name)]
        n_columns = [self._spaces[name].n_columns for name in todo]
        at_once = len(todo) if self._runner.together else 1
        try:
            for first in range(0, len(todo), at_once or 1):
                end = first + at_once
                yield from self._run(todo[first:end])
                if n_columns[end:] and not set(n_columns[:end]) & set(n_columns[end:]):
                    # Programs are compiled for a space's columns and table sizes. No space to come can use these, and
                    # those of 16 spaces are gigabytes, more than the data.
                    jax.clear_caches()
        finally:
            self._runner.close()

    def summary(self) -> str:
        """Returns a line with the mean regret over the runs."""
        regret = np.array([1.0 - trace for *_, trace in self._results.runs()])
        at = sorted({t for t in (5, 10, 25, 50, 100) if t <= self.plan.trials} | {self.plan.trials})
        means = ", ".join(f"{regret[:, t].mean():.4f} at {t}" for t in at) if len(regret) else "unknown after all"
        return f"{self.plan.label}: {len(regret)} runs, mean regret {means} trials, saved in {self.out}"

    def failures(self) -> str:
        """Returns a line on the runs that failed."""
        count = f"{len(self.failed)} of {self.total} runs failed and are not in {self.out}"
        return f"{count}; the same evaluation tries them again; the first: {self.failed[0]}"

    def _run(self, names: Sequence[str]) -> Iterator[FinishedRun]:
        for run in self._runner.run([self._pending(name) for name in names]):
            if isinstance(run, FailedRun):  # a rerun repeats it
                self.failed.append(run)
                meta = {**self._results.meta, "failed": [failure._asdict() for failure in self.failed]}
                self._results = replace(self._results, meta=meta)
                self._save()
                continue
            self._results = _add_run(self._results, *run)
            if processes.is_first():
                self._save()
            yield run

    def _pending(self, name: str) -> PendingRuns:
        space = self._load(name)
        designs = {
            dataset: {s: space.designs[dataset][s] for s in seeds} for dataset, seeds in self._missing(name).items()
        }
        # Search spaces may share names of datasets and seeds, but their runs must be independent.
        return PendingRuns(space, designs, jax.random.fold_in(jax.random.key(self.plan.seed), run_id(name)))

    def _load(self, name: str) -> SearchSpace:
        splits = {self.plan.split}
        if self._runner.learns:
            validation = files_of(self.plan.mode).get("validation", ())  # a method may do without
            has_validation = all(existing_json(self.plan.data, stem) for stem in validation)
            splits |= {"train", "validation"} if has_validation else {"train"}
        return load_space(self.plan.data, name, self.plan.mode, splits=sorted(splits), columns=self.plan.columns)

    def _missing(self, name: str) -> dict[str, list[str]]:
        finished_runs = self._results.traces.get(name, {})
        missing = {
            dataset: [seed for seed in seeds if seed not in finished_runs.get(dataset, {})]
            for dataset, seeds in self._planned_runs[name].items()
        }
        return {dataset: seeds for dataset, seeds in missing.items() if seeds}

    def _save(self) -> None:
        """Writes the runs, merged with runs that another evaluation has added to the file since it was read."""
        with folder_lock(self.out.parent):
            if stamp(self.out) != self._stamp:
                results = self._open()
                for run in self._results.runs():
                    results = _add_run(results, *run)
                self._results = replace(results, meta={**self._results.meta, **results.meta})
            write_results(self.out, self._results)
            self._stamp = stamp(self.out)

    def _begin(self) -> Results:
        """Returns the file's content as the first process reads it: disks and moments of reading may differ."""

        def read() -> dict[str, Any]:
            make_folder(self.out.parent)
            check_target(self.out, streams=False)
            with folder_lock(self.out.parent):
                results = self._open()
                self._stamp = stamp(self.out)
                remove_left_over(self.out)
            return {"meta": results.meta, "runs": [(*names, trace.tolist()) for *names, trace in results.runs()]}

        content = processes.from_first(read)
        results = Results({}, content["meta"])
        for run in content["runs"]:
            results = add_trace(results, *run)
        return results

    def _open(self) -> Results:
        """Returns the results in the file of the same evaluation, or empty results if there is no file."""
        meta = self._describe()
        if not self.out.exists():
            return Results({}, meta)
        results = read_results(self.out)
        meta_saved = {name: value for name, value in results.meta.items() if name != "failed"}
        here, there = meta["checkpoints"], meta_saved.get("checkpoints")
        if here and there and isinstance(there, dict) and here | there == there | here:
            # A file may gain search spaces: their checkpoints are added to those in the file.
            meta["checkpoints"] = meta_saved["checkpoints"] = there | here
        changes = [n for n in meta if n not in ("versions", "backends") and meta_saved.get(n) != meta[n]]
        if changes:
            differences = "; ".join(f"{n}: {meta[n]} here, {results.meta.get(n)} in the file" for n in changes)
            raise DataError(f"{self.out} holds another evaluation ({differences}); give another file or remove it")
        for space, dataset, seed, trace in results.runs():
            if len(trace) != self.plan.trials + 1:
                run = f"{location(self.out, space, dataset)}, seed {seed!r}"
                raise DataError(f"{run}: a run must have {self.plan.trials} trials, but has {len(trace) - 1}")
        return replace(results, meta={**meta_saved, "backends": with_backend(meta_saved.get("backends", []))})

    def _describe(self) -> dict[str, Any]:
        plan = self.plan
        configurations = {name: self._runner.configuration(name) for name in self._spaces}
        first = next(iter(configurations.values()))
        facts: dict[str, Any] = {
            "method": plan.label,
            "protocol": _protocol(plan),
            "configuration": first if all(c == first for c in configurations.values()) else configurations,
            "seed": plan.seed,
            "versions": versions(),
            "backends": with_backend([]),
        }
        if plan.continuous is not None:
            facts["versions"]["xgboost"] = import_extra(*XGBOOST).__version__
        for name, value in self._runner.facts().items():
            facts[name] = {**facts[name], **value} if name in facts else value
        # As it will be read back: tuples become lists.
        return json.loads(json.dumps(facts))


def _add_run(results: Results, space: str, dataset: str, seed: str, trace: np.ndarray) -> Results:
    """Returns the results with a run, unless another evaluation has added it already."""
    is_present = seed in results.traces.get(space, {}).get(dataset, {})
    return results if is_present else add_trace(results, space, dataset, seed, trace)


def _protocol(plan: Plan) -> dict[str, Any]:
    kind = "discrete" if plan.continuous is None else "continuous"
    facts = {"benchmark": f"HPO-B v3, {kind}", "mode": plan.mode, "split": plan.split, "trials": plan.trials}
    if plan.columns != "published":
        facts["columns"] = plan.columns
    if plan.continuous is not None:
        facts["continuous"] = plan.continuous
    if host_of(plan.method) is not None:
        facts["method"] = "host method, observe_and_suggest"
    return facts


def _runner(plan: Plan, spaces: Mapping[str, Outline]) -> CompiledRunner | HostRunner:
    host = host_of(plan.method) is not None
    if processes.count() > 1 and (plan.continuous is not None or host):
        rule = "several processes share out the runs of compiled methods on the tables only"
        kind = "a host method" if plan.continuous is None else "a continuous search"
        raise ConfigError(f"{rule}, but {plan.label} is {kind}: one process does it")
    if plan.continuous is not None:
        if host and isinstance(plan.method, str) and not is_foreign(plan.method):
            raise ConfigError(f"the method {plan.label} does not support --continuous: it chooses among a table's rows")
        runs = surrogate_runs(plan, spaces)
        return HostRunner(plan, runs) if host else ContinuousRunner(plan, spaces, runs)
    if host:
        return HostRunner(plan)
    if not isinstance(plan.method, str) and not callable(getattr(plan.method, "acquire", None)):
        raise ConfigError(f"a method must be a name, a class, or have fit and acquire, but got {plan.method!r}")
    return CompiledRunner(plan, spaces)


def run_hpob(
    method: str | Method | type[HostMethod],
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    checkpoints: str | os.PathLike[str] | None = None,
    spaces: Sequence[str] | None = None,
    trials: int = 100,
    seeds: Sequence[str] | None = None,
    report: Callable[[FinishedRun], None] | None = None,
    **options: Any,
) -> Results:
    """Evaluates a method on HPO-B: 16 search spaces, 86 tasks from 5 designs each, 430 runs of 100 trials.

    Each run is in the file when it is finished, so calling it again resumes an interrupted one. One search
    space is in memory at a time.

    Args:
      method: a name, "module:Class" or "file.py:Class"; or a method, or the class of a host method.
      data: HPO-B's folder.
      out: the result file, HPO-B's format.
      checkpoints: their root, for methods that read them.
      spaces: search spaces; all by default.
      trials: T, after the initial design.
      seeds: initial designs by name; all by default.
      report: called with every run.
      options: other fields of `Plan`, such as `settings={"epochs": 10}`.

    Raises:
      DataError, ConfigError, CheckpointError: as `Evaluation`.
      MethodError: at the end, for runs that a fault of a host method ended; the other runs are in the file.

    Example:
      >>> import tempfile
      >>> from dre_jax.data import bundled
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     results = run_hpob("random", bundled.path(), f"{folder}/random.json", trials=1, seeds=["test0"])
      >>> len(list(results.runs()))
      40
    """
    plan = Plan(
        data=Path(data),
        method=method,
        spaces=None if spaces is None else tuple(spaces),
        checkpoints=None if checkpoints is None else Path(checkpoints),
        trials=trials,
        seeds=None if seeds is None else tuple(seeds),
        **options,
    )
    evaluation = Evaluation(plan, Path(out))
    for run in evaluation:
        if report is not None:
            report(run)
    if evaluation.failed:
        raise MethodError(evaluation.failures())
    return read_results(out)
