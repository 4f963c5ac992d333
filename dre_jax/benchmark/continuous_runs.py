"""Continuous search in an evaluation: every task of a split on its surrogate, by a method of either protocol."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np
from jax import Array

from dre_jax.benchmark.continuous import Surrogate, import_xgboost, read_ranges, run_continuous, surrogate_name
from dre_jax.benchmark.foreign import HostMethods
from dre_jax.benchmark.plan import Plan
from dre_jax.benchmark.runners import Fitted, Outcome
from dre_jax.data import SearchSpace, Task
from dre_jax.data.outline import Outline
from dre_jax.data.spaces import Designs
from dre_jax.errors import DataError
from dre_jax.search.batch import run_key
from dre_jax.search.continuous import ContinuousConfig, ContinuousSuggester
from dre_jax.search.host import HostMethod

Make = Callable[[Array], HostMethod]
Attempt = Callable[[Callable[[], np.ndarray]], np.ndarray | str]


class ContinuousMethods(Protocol):
    """Where the objects come from that `run_continuous` asks."""

    learns: bool

    def configuration(self, space: str) -> Any:
        """For the result file."""
        ...

    def facts(self) -> dict[str, Any]:
        """More for the result file."""
        ...

    def ready(self, space: SearchSpace) -> tuple[Make, Attempt]:
        """What makes a run's object, given the run's key; and what becomes of a fault in the run."""
        ...


class _OwnMethods:
    """Methods of the one protocol."""

    def __init__(self, plan: Plan, spaces: Mapping[str, Outline]) -> None:
        self._fitted = Fitted(plan, spaces)
        self._config = ContinuousConfig()
        self.learns = self._fitted.learns

    def configuration(self, space: str) -> dict[str, Any]:
        return {**self._fitted.configuration(space), "points": vars(self._config)}

    def facts(self) -> dict[str, Any]:
        return self._fitted.facts()

    def ready(self, space: SearchSpace) -> tuple[Make, Attempt]:
        method, params = self._fitted.ready(space)

        def make(key: Array) -> ContinuousSuggester:
            return ContinuousSuggester(method, params, key=key, config=self._config)

        return make, lambda run: run()


class _TheirMethods:
    """Host methods."""

    learns = False

    def __init__(self, plan: Plan) -> None:
        self._methods = HostMethods(plan)
        self._configuration = self._methods.configuration()

    def configuration(self, space: str) -> str | None:
        return self._configuration

    def facts(self) -> dict[str, Any]:
        return {"checkpoints": {}}

    def ready(self, space: SearchSpace) -> tuple[Make, Attempt]:
        return self._methods.fresh, self._methods.attempt


def methods_of(plan: Plan, spaces: Mapping[str, Outline], *, host: bool) -> ContinuousMethods:
    """The plan's method for continuous search; raises as `Fitted` and `HostMethods` do."""
    return _TheirMethods(plan) if host else _OwnMethods(plan, spaces)


class ContinuousRunner:
    """`run_continuous`, a run at a time.

    Raises:
      MissingExtraError, DataError: at once, without xgboost, and for surrogates that are missing.
    """

    def __init__(self, plan: Plan, spaces: Mapping[str, Outline], methods: ContinuousMethods) -> None:
        import_xgboost()
        assert plan.surrogates is not None
        self._plan = plan
        self._folder = plan.surrogates
        self._methods = methods
        self._ranges = read_ranges(self._folder)
        self.learns = methods.learns
        for space in spaces.values():
            for dataset in space.datasets:
                name = surrogate_name(space.name, dataset)
                if name not in self._ranges or not os.path.isfile(self._folder / f"{name}.json"):
                    raise DataError(f"{self._folder} must hold {name}.json and its range, but does not")

    def configuration(self, space: str) -> Any:
        """The method's fields, and the points it is shown; or a host method's own words."""
        return self._methods.configuration(space)

    def facts(self) -> dict[str, Any]:
        """The checkpoints, and the version of xgboost."""
        return {**self._methods.facts(), "versions": {"xgboost": _xgboost_version()}}

    def run(self, space: SearchSpace, designs: Designs, key: Array) -> Iterator[Outcome]:
        """As `run_continuous`."""
        make, attempt = self._methods.ready(space)
        tasks = space.split(self._plan.split)
        for dataset, seeds in designs.items():
            surrogate = Surrogate.load(
                self._folder, space.name, dataset, n_columns=space.n_columns, ranges=self._ranges
            )
            for seed, rows in seeds.items():
                yield (
                    dataset,
                    seed,
                    self._run(make, attempt, surrogate, tasks[dataset], rows, run_key(key, dataset, seed)),
                )

    def _run(
        self, make: Make, attempt: Attempt, surrogate: Surrogate, task: Task, rows: np.ndarray, key: Array
    ) -> np.ndarray | str:
        plan = self._plan
        mode = str(plan.continuous)
        x, y = task.X[rows].astype(np.float64), task.y[rows]
        return attempt(lambda: run_continuous(make(key), surrogate, x, y, plan.trials, mode=mode, name=plan.label))


def _xgboost_version() -> str:
    for name in ("xgboost-cpu", "xgboost"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed"
