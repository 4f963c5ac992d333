"""Continuous search in an evaluation: every task of a split on its surrogate, by a method of either protocol."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.data.hpob import Outline
from dre_jax.data.spaces import Designs
from dre_jax.errors import DataError, import_extra
from dre_jax.hpob.compiled_runs import PlannedCompiledMethod
from dre_jax.hpob.continuous import XGBOOST, Objective, read_ranges, run_continuous, surrogate_name
from dre_jax.hpob.host_runs import PendingRun, PlannedHostMethod, SingleRunRunner, version_of
from dre_jax.hpob.plan import Outcome, Plan
from dre_jax.search.batch import run_key
from dre_jax.search.candidates import CandidateConfig
from dre_jax.search.suggester import Suggester


class _ContinuousMethod(PlannedCompiledMethod):
    """Methods of the one protocol."""

    def __init__(self, plan: Plan, spaces: Mapping[str, Outline]) -> None:
        super().__init__(plan, spaces)
        self._name = plan.label
        self._config = CandidateConfig()

    def configuration(self, space: str) -> dict[str, Any]:
        # Result files have the name "lie", so that older files of the same evaluation can be resumed.
        points = {"lie" if name == "pending_strategy" else name: value for name, value in vars(self._config).items()}
        return {**super().configuration(space), "points": points}

    def runs(self, space: SearchSpace, pending_runs: Iterable[PendingRun]) -> Iterator[Outcome]:
        method, params = self.method_and_params(space)
        for pending_run in pending_runs:
            suggester = Suggester(method, params, key=pending_run.key, candidates=self._config)
            yield pending_run.dataset, pending_run.seed, pending_run.run(suggester, name=self._name)


class ContinuousRunner(SingleRunRunner):
    """`run_continuous`, a run at a time; of a host method as many as the plan has workers.

    Raises:
      MissingExtraError, DataError: at once, without xgboost, and for surrogates that are missing.
    """

    def __init__(self, plan: Plan, spaces: Mapping[str, Outline], *, host: bool) -> None:
        import_extra(*XGBOOST)
        assert plan.surrogates is not None
        super().__init__(plan, PlannedHostMethod(plan) if host else _ContinuousMethod(plan, spaces))
        self._folder = plan.surrogates
        self._ranges = read_ranges(self._folder)
        for space in spaces.values():
            for dataset in space.datasets:
                name = surrogate_name(space.name, dataset)
                if name not in self._ranges or not os.path.isfile(self._folder / f"{name}.json"):
                    raise DataError(f"{self._folder} must hold {name}.json and its range, but does not")

    def facts(self) -> dict[str, Any]:
        """The checkpoints, and the version of xgboost."""
        facts = super().facts()
        return {**facts, "versions": {**facts.get("versions", {}), "xgboost": version_of("xgboost-cpu", "xgboost")}}

    def _pending_runs(self, space: SearchSpace, designs: Designs, key: Array) -> Iterator[PendingRun]:
        tasks = space.split(self._plan.split)
        for dataset, seeds in designs.items():
            task = tasks[dataset]
            surrogate = Objective.load(
                self._folder, space.name, dataset, n_columns=space.n_columns, ranges=self._ranges
            )
            for seed, rows in seeds.items():
                run = partial(
                    run_continuous,
                    surrogate=surrogate,
                    x=task.X[rows].astype(np.float64),
                    y=task.y[rows],
                    n_trials=self._plan.trials,
                    counting=str(self._plan.continuous),
                )
                yield PendingRun(dataset, seed, run_key(key, dataset, seed), run)
