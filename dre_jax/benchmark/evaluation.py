"""HPO-B's protocol on one method: every task and initial design of a split, into a result file that grows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from dre_jax.data import Results, SearchSpace, add_trace, load_space, read_results, write_results
from dre_jax.data.files import make_folder, remove_left_over
from dre_jax.data.spaces import Designs
from dre_jax.errors import ConfigError, DataError
from dre_jax.methods import Entry, Options, find
from dre_jax.search.acquisition import Kind
from dre_jax.search.batch import run_id, run_tasks
from dre_jax.search.method import Method
from dre_jax.training.trainer import versions


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is evaluated."""

    data: Path
    """Folder in HPO-B's layout."""
    spaces: tuple[str, ...]
    """Search spaces."""
    method: str
    """A name of `dre_jax.methods.METHODS`."""
    mode: str = "v3"
    """HPO-B's mode of reading the folder."""
    checkpoints: Path | None = None
    """Root of the checkpoints; without one, a method that learns from past tasks is fitted first."""
    split: str = "test"
    """"test" or "validation"."""
    trials: int = 100
    """Trials after the initial design."""
    seeds: tuple[str, ...] | None = None
    """Initial designs by name; None for all."""
    epochs: int | None = None
    """Fine-tuning epochs; None for the method's own."""
    learning_rate: float | None = None
    """Fine-tuning's learning rate; None for the method's own."""
    acquisition: Kind | None = None
    """Acquisition function; None for the method's own."""
    seed: int = 0
    """Of the picks."""


class FinishedRun(NamedTuple):
    """One run of an evaluation."""

    space: str
    dataset: str
    seed: str
    trace: np.ndarray
    """f64[T + 1] incumbents."""


class Evaluation:
    """Iterates over the runs that are not in the result file yet; each is in the file when it is handed out.

    Raises:
      DataError, ConfigError, CheckpointError: before the first run, for anything that is missing or does not fit.
    """

    def __init__(self, plan: Plan, out: Path) -> None:
        self.plan = plan
        self.out = out
        self.entry = find(plan.method)
        self._spaces = {name: _load(plan, name) for name in plan.spaces}
        self._methods = {name: _method(self.entry, plan, name) for name in plan.spaces}
        self._results = self._open()
        make_folder(out.parent)
        remove_left_over(out)
        self._params = {
            name: _params(self.entry, plan, method, self._spaces[name])
            for name, method in self._methods.items()
            if self._missing(self._spaces[name])
        }
        self.total = sum(len(seeds) for space in self._spaces.values() for seeds in _designs(plan, space).values())

    @property
    def done(self) -> int:
        """Runs of this plan that are in the file."""
        missing = sum(len(seeds) for space in self._spaces.values() for seeds in self._missing(space).values())
        return self.total - missing

    def __iter__(self) -> Iterator[FinishedRun]:
        for name, params in self._params.items():
            space, method = self._spaces[name], self._methods[name]
            # Search spaces may hold datasets and seeds of one name: their runs are to be independent all the same.
            key = jax.random.fold_in(jax.random.key(self.plan.seed), run_id(name))
            missing = self._missing(space)
            tasks = {dataset: space.split(self.plan.split)[dataset] for dataset in missing}
            for dataset, seed, trace in run_tasks(method, params, tasks, missing, n_trials=self.plan.trials, key=key):
                self._results = add_trace(self._results, name, dataset, seed, trace)
                write_results(self.out, self._results)
                yield FinishedRun(name, dataset, seed, trace)

    def summary(self) -> str:
        """Mean regret over the runs, a line."""
        regret = np.array([1.0 - trace for *_, trace in self._results.runs()])
        at = sorted({t for t in (5, 10, 25, 50, 100) if t <= self.plan.trials} | {self.plan.trials})
        means = ", ".join(f"{regret[:, t].mean():.4f} at {t}" for t in at)
        return f"{self.plan.method}: {len(regret)} runs, mean regret {means} trials, saved in {self.out}"

    def _missing(self, space: SearchSpace) -> Designs:
        there = self._results.traces.get(space.name, {})
        missing = {
            dataset: {seed: rows for seed, rows in seeds.items() if seed not in there.get(dataset, {})}
            for dataset, seeds in _designs(self.plan, space).items()
        }
        return {dataset: seeds for dataset, seeds in missing.items() if seeds}

    def _open(self) -> Results:
        """The file as an interrupted evaluation of the same kind left it, or a new one."""
        meta = self._describe()
        if not self.out.exists():
            return Results({}, meta)
        found = read_results(self.out)
        changed = [name for name in meta if name != "versions" and found.meta.get(name) != meta[name]]
        if changed:
            said = "; ".join(f"{name}: {meta[name]} here, {found.meta.get(name)} in the file" for name in changed)
            raise DataError(f"{self.out} holds another evaluation ({said}); give another file or remove it")
        return found

    def _describe(self) -> Mapping[str, Any]:
        plan = self.plan
        configurations = {name: _configuration(method) for name, method in self._methods.items()}
        first = next(iter(configurations.values()))
        checkpoints = {name: _checkpoint_facts(plan, name) for name in plan.spaces} if _reads(self.entry, plan) else {}
        facts = {
            "method": plan.method,
            "protocol": {
                "benchmark": "HPO-B v3, discrete",
                "mode": plan.mode,
                "split": plan.split,
                "trials": plan.trials,
            },
            "configuration": first if all(c == first for c in configurations.values()) else configurations,
            "checkpoints": checkpoints,
            "seed": plan.seed,
            "versions": versions(),
        }
        # As it will be read back: tuples become lists.
        return json.loads(json.dumps(facts))


def _configuration(method: Method) -> dict[str, Any]:
    return dataclasses.asdict(method) if dataclasses.is_dataclass(method) and not isinstance(method, type) else {}


def _reads(entry: Entry, plan: Plan) -> bool:
    """Whether the method's parameters come from checkpoints."""
    return entry.reads_checkpoints and plan.checkpoints is not None


def _checkpoint_facts(plan: Plan, space: str) -> dict[str, Any]:
    """Which checkpoint: where it stands and what it was trained on."""
    assert plan.checkpoints is not None
    from dre_jax.training.checkpoint import Checkpoint

    found = Checkpoint(plan.checkpoints / space).metadata()
    return {name: found[name] for name in ("step", "best_step", "fingerprint", "key")}


def _load(plan: Plan, name: str) -> SearchSpace:
    space = load_space(plan.data, name, plan.mode)
    if not space.split(plan.split):
        raise DataError(f"search space {name!r} has no {plan.split} tasks")
    _designs(plan, space)
    return space


def _designs(plan: Plan, space: SearchSpace) -> Designs:
    """The initial designs that the plan asks for."""
    found: Designs = {}
    for dataset in space.split(plan.split):
        there = space.designs.get(dataset, {})
        if not there:
            raise DataError(
                f"space {space.name!r}, dataset {dataset!r}: an initial design is needed, but there is none"
            )
        wanted = plan.seeds or tuple(there)
        unknown = [seed for seed in wanted if seed not in there]
        if unknown:
            known = ", ".join(there)
            raise ConfigError(f"seeds of dataset {dataset!r} are {known}, but got {', '.join(unknown)}")
        found[dataset] = {seed: there[seed] for seed in wanted}
    return found


def _method(entry: Entry, plan: Plan, space: str) -> Method:
    """The method, with the model of the search space's checkpoint where it reads one."""
    options = Options(epochs=plan.epochs, learning_rate=plan.learning_rate, acquisition=plan.acquisition)
    if not _reads(entry, plan):
        return entry.build(options)
    from dre_jax.training.checkpoint import Checkpoint, model_config

    assert plan.checkpoints is not None
    metadata = Checkpoint(plan.checkpoints / space).metadata()
    return entry.build(dataclasses.replace(options, model=model_config(metadata)))


def _params(entry: Entry, plan: Plan, method: Method, space: SearchSpace) -> Any:
    """The method's parameters for a search space: from its checkpoint, or fitted now."""
    if not _reads(entry, plan):
        return method.fit(space, jax.random.key(plan.seed))
    from dre_jax.training.checkpoint import load_params

    assert plan.checkpoints is not None
    return load_params(plan.checkpoints / space.name, space=space.name, n_columns=space.n_columns)[0]
