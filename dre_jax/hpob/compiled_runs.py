"""Loops over methods of the one protocol in an evaluation: compiled on the tables, and on surrogates of the tasks."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

import jax

from dre_jax.data import SearchSpace
from dre_jax.data.hpob import Outline
from dre_jax.errors import CheckpointError, DataWarning
from dre_jax.hpob.host_runs import RunSource
from dre_jax.hpob.plan import FinishedRun, PendingRuns, Plan, Run
from dre_jax.methods import find
from dre_jax.methods.checkpoints.fitted import has_ensemble, load_fitted
from dre_jax.methods.registry import entry_for, register_foreign
from dre_jax.runtime import processes
from dre_jax.search.batch import SpaceRuns, run_spaces
from dre_jax.search.execution import ExecutionConfig, runs_side_by_side
from dre_jax.search.method import Method, learns_from_past
from dre_jax.suggest.candidates import CandidateConfig
from dre_jax.suggest.suggester import Suggester


class CompiledRunner:
    """A plan's compiled method on each search space, the source of its parameters, and the loop on the tables.

    `learns` is true if `fit` needs the training split; `together` if `run` takes all search spaces at once. Raises
    `CheckpointError` and `ConfigError` if checkpoints are missing or do not match the plan.
    """

    def __init__(self, plan: Plan, spaces: Mapping[str, Outline], config: ExecutionConfig | None = None) -> None:
        assert not isinstance(plan.method, type)
        method = plan.method
        self._entry = entry = find(method) if isinstance(method, str) else entry_for(method, plan.label)
        if isinstance(method, str):
            register_foreign(entry)
        if plan.checkpoints is not None and not entry.transfer:
            message = f"{entry.name} reads no checkpoints: it learns nothing from past tasks"
            warnings.warn(message, DataWarning, stacklevel=2)
        self._plan = plan
        self._root = root = plan.checkpoints if entry.transfer else None
        # Read once: the description decides on the method here, and the result file records it.
        self._checkpoints = {
            name: load_fitted(
                root / name,
                space=name,
                columns=space.n_columns if space.columns is None else space.columns,
                ensemble=entry.reads_checkpoints,
                with_params=False,
            )
            for name, space in spaces.items()
            if root is not None
        }
        self._methods = {name: entry.make(plan.settings, learned=self._checkpoint_method(name)) for name in spaces}
        learns = (learns_from_past(method, entry.transfer) for method in self._methods.values())
        self.learns = self._root is None and any(learns)
        self._config = config or ExecutionConfig()
        # A method that is fitted anew reads the training tables; one search space at a time fits into memory.
        self.together = runs_side_by_side(self._config) and not self.learns

    def configuration(self, space: str) -> dict[str, Any]:
        """Returns the method's fields."""
        method = self._methods[space]
        return dataclasses.asdict(method) if dataclasses.is_dataclass(method) and not isinstance(method, type) else {}

    def facts(self) -> dict[str, Any]:
        """Returns method, steps, key and fingerprint of the training data of each checkpoint."""
        fields = ("step", "best_step", "fingerprint", "key")
        checkpoints = {
            name: {"method": checkpoint.name}
            | {fact: checkpoint.facts[fact] for fact in fields if fact in checkpoint.facts}
            for name, checkpoint in self._checkpoints.items()
        }
        return {"checkpoints": checkpoints}

    def method_and_params(self, space: SearchSpace) -> tuple[Method, Any]:
        """Returns the method and its parameters for a search space, from its checkpoint or from `fit`.

        Raises `CheckpointError` if the checkpoint has changed since the evaluation began.
        """
        method = self._methods[space.name]
        if self._root is None:
            empty_split: dict[str, Any] = {self._plan.split: {}}  # not learned from
            past = dataclasses.replace(space, **empty_split)
            return method, method.fit(past, jax.random.key(self._plan.seed))
        folder, checkpoint = self._root / space.name, self._checkpoints[space.name]
        current = load_fitted(folder, ensemble=self._entry.reads_checkpoints)
        if (current.name, current.method, current.facts) != (checkpoint.name, checkpoint.method, checkpoint.facts):
            now, then = (other.facts.get("step", other.name) for other in (current, checkpoint))
            message = f"a checkpoint must stay as it is during an evaluation, but {folder} has changed"
            raise CheckpointError(f"{message} (step {now}, was {then})")
        return method, current.params

    def run(self, spaces: Sequence[PendingRuns]) -> Iterator[Run]:
        """Yields the traces of `run_spaces`; spaces with the same method are one call."""
        runs_by_method: dict[Method, dict[str, SpaceRuns]] = {}
        for space, designs, key in spaces:
            method, params = self.method_and_params(space)
            tasks = {dataset: space.split(self._plan.split)[dataset] for dataset in designs}
            # Every process fits anew, on devices that may round differently, so all use the parameters of the first
            # one.
            params = processes.broadcast_from_first(params)
            runs_by_method.setdefault(method, {})[space.name] = SpaceRuns(params, tasks, designs, key)
        for method, runs in runs_by_method.items():
            yield from starmap(FinishedRun, run_spaces(method, runs, n_trials=self._plan.trials, config=self._config))

    def close(self) -> None:
        """Does nothing; `HostRunner` ends its processes."""

    def _checkpoint_method(self, space: str) -> Method | None:
        """Returns the configuration in a search space's checkpoint; None without a checkpoint."""
        checkpoint, entry = self._checkpoints.get(space), self._entry
        if checkpoint is None or checkpoint.name == entry.name:
            return None if checkpoint is None else checkpoint.method
        ensemble: Any = checkpoint.method
        if not has_ensemble(ensemble) or not entry.reads_checkpoints:
            raise CheckpointError(f"{entry.name} cannot start from {self._root}/{space}, which holds {checkpoint.name}")
        default: Any = entry.default
        changes = {"model": ensemble.model, "training": ensemble.training}
        fields = {name: new for name, new in changes.items() if isinstance(new, type(getattr(default, name, None)))}
        method: Method = dataclasses.replace(default, **fields)
        return method


class ContinuousRunner(CompiledRunner):
    """The loop over `run_continuous` for methods of the one protocol, a run at a time."""

    def __init__(self, plan: Plan, spaces: Mapping[str, Outline], pending_runs: RunSource) -> None:
        super().__init__(plan, spaces)
        self.together = False
        self._pending_runs = pending_runs
        self._candidates = CandidateConfig()

    def configuration(self, space: str) -> dict[str, Any]:
        """Returns the method's fields, and those of the candidates."""
        return {**super().configuration(space), "points": vars(self._candidates)}

    def run(self, spaces: Sequence[PendingRuns]) -> Iterator[Run]:
        """Yields the runs one by one."""
        for pending in spaces:
            method, params = self.method_and_params(pending.space)
            for dataset, seed, key, run in self._pending_runs(pending):
                suggester = Suggester(method, params, key=key, candidates=self._candidates)
                yield FinishedRun(pending.space.name, dataset, seed, run(suggester, name=self._plan.label))
