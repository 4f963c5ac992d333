"""Continuous search in an evaluation: every task of a split on its surrogate, by a method of either protocol."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dre_jax.data.hpob import Outline
from dre_jax.errors import DataError, import_extra
from dre_jax.hpob.compiled_runs import CompiledRunner
from dre_jax.hpob.continuous import XGBOOST, Objective, read_ranges, run_continuous, surrogate_name
from dre_jax.hpob.host_runs import PendingRun, RunSource
from dre_jax.hpob.plan import Outcome, PendingRuns, Plan
from dre_jax.search.batch import run_key
from dre_jax.search.candidates import CandidateConfig
from dre_jax.search.suggester import Suggester


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

    def run(self, spaces: Sequence[PendingRuns]) -> Iterator[tuple[str, *Outcome]]:
        """Yields the outcomes of the runs one by one."""
        for pending in spaces:
            method, params = self.method_and_params(pending.space)
            for dataset, seed, key, run in self._pending_runs(pending):
                suggester = Suggester(method, params, key=key, candidates=self._candidates)
                yield pending.space.name, dataset, seed, run(suggester, name=self._plan.label)


def surrogate_runs(plan: Plan, spaces: Mapping[str, Outline]) -> RunSource:
    """Returns the function that gives the runs of a search space on the surrogates of its tasks.

    Raises:
      MissingExtraError, DataError: without xgboost, and for surrogates that are missing.
    """
    import_extra(*XGBOOST)
    assert plan.surrogates is not None
    folder, ranges = plan.surrogates, read_ranges(plan.surrogates)
    for name in (surrogate_name(space.name, dataset) for space in spaces.values() for dataset in space.datasets):
        if name not in ranges or not os.path.isfile(folder / f"{name}.json"):
            raise DataError(f"{folder} must hold {name}.json and its range, but does not")

    def pending_runs(pending: PendingRuns) -> Iterator[PendingRun]:
        space = pending.space
        for dataset, seeds in pending.designs.items():
            task = space.split(plan.split)[dataset]
            surrogate = Objective.load(folder, space.name, dataset, n_columns=space.n_columns, ranges=ranges)
            for seed, rows in seeds.items():
                run = partial(
                    run_continuous,
                    surrogate=surrogate,
                    x=task.X[rows].astype(np.float64),
                    y=task.y[rows],
                    n_trials=plan.trials,
                    counting=str(plan.continuous),
                )
                yield PendingRun(dataset, seed, run_key(pending.key, dataset, seed), run)

    return pending_runs
