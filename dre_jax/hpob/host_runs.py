"""Host methods in an evaluation: a new object for each run, worker processes, and errors that end one run only."""

import os
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from dre_jax.data.hpob import Outline
from dre_jax.errors import ConfigError, DataError, MethodError, MissingExtraError, import_extra
from dre_jax.hpob.continuous import XGBOOST, Objective, read_ranges, run_continuous, surrogate_name
from dre_jax.hpob.plan import FailedRun, FinishedRun, PendingRuns, Plan, Run
from dre_jax.hpob.workers import Pool, WorkerDeath
from dre_jax.methods.foreign import arguments_of, is_foreign
from dre_jax.methods.registry import find, host_of
from dre_jax.methods.storage.provenance import versions
from dre_jax.search.batch import run_key
from dre_jax.search.host import HostMethod, run_host

RunFunction = Callable[..., np.ndarray]
"""Function that does a run; its arguments are a new object and the method's `name`. It must pickle."""
_Attempt = Callable[[tuple[int, RunFunction]], np.ndarray | str]


class PendingRun(NamedTuple):
    """A run that is not in the result file yet."""

    dataset: str
    seed: str
    key: Array
    run: RunFunction


RunSource = Callable[[PendingRuns], Iterator[PendingRun]]
"""Function that gives the runs of a search space."""


class HostRunner:
    """The class of a plan's host method, and runs of new objects of it, in this process or in worker processes.

    Raises `ConfigError` if the class does not exist, or its constructor does not accept the settings, and
    `MissingExtraError` if a package is missing.
    """

    learns = together = False  # see `CompiledRunner`

    def __init__(self, plan: Plan, pending_runs: RunSource | None = None) -> None:
        host_class = host_of(plan.method)
        assert host_class is not None
        if plan.checkpoints is not None:
            raise ConfigError(f"a host method reads no checkpoints, but got {plan.checkpoints} for {plan.label}")
        self.name = plan.label
        self._pending_runs = pending_runs or partial(_table_runs, plan)
        self._arguments = arguments_of(host_class, plan.settings, self.name)
        self._words = self._describe_configuration(host_class)
        make_attempt = partial(_make_attempt, plan.method, self.name, self._arguments)
        self._attempt = make_attempt()
        several = plan.workers > 1 and _is_importable((plan.method, self._arguments))
        self._pool = Pool(make_attempt, plan.workers) if several else None
        name = plan.method
        self._library = find(name).library if isinstance(name, str) and not is_foreign(name) else None

    def configuration(self, space: str) -> str | None:
        """Returns the `repr` of the object if its class defines one, else the arguments of its constructor."""
        return self._words

    def _describe_configuration(self, host_class: type[HostMethod]) -> str | None:
        if host_class.__repr__ is object.__repr__:
            arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
            return f"{self.name}({arguments})" if arguments else None
        try:
            return repr(host_class(**self._arguments))
        except MissingExtraError:
            raise
        except Exception as error:
            raise ConfigError(f"method {self.name}: {_error_line(error)}") from error

    def facts(self) -> dict[str, Any]:
        """Returns no checkpoints, and the version of the library that a registered method calls."""
        library = self._library
        return {"checkpoints": {}} | ({} if library is None else {"versions": {library: versions(library)[library]}})

    def run(self, spaces: Sequence[PendingRuns]) -> Iterator[Run]:
        """Yields the runs in the order in which they end; a single run is done in this process."""
        for pending in spaces:
            runs = self._pending_runs(pending)
            first = list(islice(runs, 2))
            items = (
                ((run.dataset, run.seed), (int(jax.random.bits(run.key, dtype=np.uint32)), run.run))
                for run in chain(first, runs)
            )
            outcomes: Iterable[tuple[tuple[str, str], Any]]
            if self._pool is None or len(first) < 2:
                outcomes = ((names, self._attempt(item)) for names, item in items)
            else:
                outcomes = self._pool.run(items)
            for (dataset, seed), outcome in outcomes:
                if isinstance(outcome, np.ndarray):
                    yield FinishedRun(pending.space.name, dataset, seed, outcome)
                    continue
                died = isinstance(outcome, WorkerDeath)
                error = f"method {self.name}: its process {outcome.how}" if died else outcome
                yield FailedRun(pending.space.name, dataset, seed, error)

    def close(self) -> None:
        """Ends the worker processes."""
        if self._pool is not None:
            self._pool.close()


def _table_runs(plan: Plan, pending: PendingRuns) -> Iterator[PendingRun]:
    for dataset, seeds in pending.designs.items():
        task = pending.space.split(plan.split)[dataset]
        for seed, rows in seeds.items():
            run = partial(run_host, x=task.X, y=task.y, design=rows, n_trials=plan.trials)
            yield PendingRun(dataset, seed, run_key(pending.key, dataset, seed), run)


def surrogate_runs(plan: Plan, spaces: Mapping[str, Outline]) -> RunSource:
    """Returns the function that gives the runs of a search space on the surrogates of its tasks.

    Raises `MissingExtraError` and `DataError` without xgboost, and for surrogates that are missing.
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


def _make_attempt(method: object, name: str, arguments: Mapping[str, Any]) -> _Attempt:
    """Returns the function that makes an object for a run and does the run, in the process that calls this."""
    host_class = host_of(method)
    assert host_class is not None

    def attempt(item: tuple[int, RunFunction]) -> np.ndarray | str:
        """Returns the incumbents of a run, or its error in a line."""
        bits, run = item
        try:
            random.seed(bits)
            np.random.seed(bits)  # noqa: NPY002 - what host methods draw from
            if "torch" in sys.modules:
                sys.modules["torch"].manual_seed(bits)
            return run(host_class(**arguments), name=name)
        except MethodError as error:
            message = str(error)
            return message if message.startswith(f"method {name}") else f"method {name}: {message}"
        except (Exception, SystemExit) as error:  # whatever the foreign code raises
            return f"method {name}: {_error_line(error)}"

    return attempt


def _is_importable(call: tuple[object, Mapping[str, Any]]) -> bool:
    """Returns whether another process can import the class of a method and unpickle its arguments."""
    method = call[0]
    try:
        same = pickle.loads(pickle.dumps(call))[0] is method or isinstance(method, str)
    except Exception:  # a class that is local to a function, or its metaclass, may raise anything
        return False
    # Another process cannot import a class that was typed into a prompt.
    return same and (isinstance(method, str) or hasattr(sys.modules[method.__module__], "__file__"))


def _error_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 300 else f"{text[:300]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
