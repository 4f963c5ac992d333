"""Host methods in an evaluation: a new object for each run, worker processes, and errors that end one run only."""

from __future__ import annotations

import contextlib
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.data.spaces import Designs
from dre_jax.errors import ConfigError, MethodError, MissingExtraError
from dre_jax.hpob.plan import Outcome, PendingRuns, Plan, PlannedMethod
from dre_jax.hpob.workers import Pool, WorkerDeath
from dre_jax.methods.foreign import arguments_of, load_class
from dre_jax.methods.registry import host_of, library_of
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


class PlannedHostMethod:
    """The class of a plan's host method, and runs of new objects of it, in this process or in worker processes.

    Args:
      plan: one with a host method.

    Raises:
      ConfigError: if the class does not exist, or its constructor does not accept the settings.
      MissingExtraError: if a package is missing.
    """

    learns = False

    def __init__(self, plan: Plan) -> None:
        target = host_of(plan.method)
        assert target is not None
        if plan.checkpoints is not None:
            raise ConfigError(f"a host method reads no checkpoints, but got {plan.checkpoints} for {plan.label}")
        self.name = plan.label
        host_class = load_class(target)
        self._arguments = arguments_of(host_class, plan.settings, self.name)
        self._words = self._in_words(host_class)
        self._attempt = _make_attempt(target, self.name, self._arguments)
        self._pool = None
        if plan.workers > 1 and _is_importable((target, self._arguments)):
            self._pool = Pool(partial(_make_attempt, target, self.name, self._arguments), plan.workers)
        self._library = library_of(plan.method)

    def configuration(self, space: str) -> str | None:
        """Returns the `repr` of the object if its class defines one, else the arguments of its constructor."""
        return self._words

    def _in_words(self, host_class: type[HostMethod]) -> str | None:
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
        versions = {} if self._library is None else {"versions": {self._library: version_of(self._library)}}
        return {"checkpoints": {}, **versions}

    def runs(self, space: SearchSpace, pending_runs: Iterable[PendingRun]) -> Iterator[Outcome]:
        """Yields the outcomes in the order in which runs end; a single run is done in this process."""
        pending_runs = iter(pending_runs)
        first = list(islice(pending_runs, 2))
        everything = chain(first, pending_runs)
        if self._pool is None or len(first) < 2:
            for pending_run in everything:
                yield (
                    pending_run.dataset,
                    pending_run.seed,
                    self._attempt((_generator_seed(pending_run.key), pending_run.run)),
                )
            return
        items = (
            ((pending_run.dataset, pending_run.seed), (_generator_seed(pending_run.key), pending_run.run))
            for pending_run in everything
        )
        for (dataset, seed), outcome in self._pool.run(items):
            yield (
                dataset,
                seed,
                f"method {self.name}: its process {outcome.how}" if isinstance(outcome, WorkerDeath) else outcome,
            )

    def close(self) -> None:
        """Ends the worker processes."""
        if self._pool is not None:
            self._pool.close()


class SingleRunMethod(PlannedMethod, Protocol):
    """A method with a new object for each run."""

    def runs(self, space: SearchSpace, pending_runs: Iterable[PendingRun]) -> Iterator[Outcome]:
        """Yields the outcomes of runs, each with a new object."""
        ...


class SingleRunRunner:
    """A method's runs, one object each, space by space; a subclass provides the run function."""

    together = False

    def __init__(self, plan: Plan, methods: SingleRunMethod) -> None:
        self._plan = plan
        self._methods = methods
        self.learns = methods.learns

    def configuration(self, space: str) -> Any:
        """The method's fields, or a host method's own words."""
        return self._methods.configuration(space)

    def facts(self) -> dict[str, Any]:
        """The method's."""
        return self._methods.facts()

    def run(self, spaces: Sequence[PendingRuns]) -> Iterator[tuple[str, *Outcome]]:
        """The runs of each search space, with its name."""
        for space, designs, key in spaces:
            for outcome in self._methods.runs(space, self._pending_runs(space, designs, key)):
                yield space.name, *outcome

    def close(self) -> None:
        """Ends the workers."""
        self._methods.close()

    def _pending_runs(self, space: SearchSpace, designs: Designs, key: Array) -> Iterator[PendingRun]:
        raise NotImplementedError


class HostRunner(SingleRunRunner):
    """The plain Python loop on the tables, as many runs at a time as the plan has workers."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, PlannedHostMethod(plan))

    def _pending_runs(self, space: SearchSpace, designs: Designs, key: Array) -> Iterator[PendingRun]:
        tasks = space.split(self._plan.split)
        for dataset, seeds in designs.items():
            task = tasks[dataset]
            for seed, rows in seeds.items():
                run = partial(run_host, x=task.X, y=task.y, design=rows, n_trials=self._plan.trials)
                yield PendingRun(dataset, seed, run_key(key, dataset, seed), run)


def _make_attempt(target: str | type, name: str, arguments: Mapping[str, Any]) -> _Attempt:
    """Returns the function that makes an object for a run and does the run, in the process that calls this."""
    host_class = load_class(target)

    def attempt(item: tuple[int, RunFunction]) -> np.ndarray | str:
        """Returns the incumbents of a run, or its error in a line."""
        bits, run = item
        try:
            _seed_generators(bits)
            return run(host_class(**arguments), name=name)
        except MethodError as error:
            message = str(error)
            return message if message.startswith(f"method {name}") else f"method {name}: {message}"
        except (Exception, SystemExit) as error:  # whatever the foreign code raises
            return f"method {name}: {_error_line(error)}"

    return attempt


def version_of(*names: str) -> str:
    """Returns the version of the first of the packages that is installed, else "unknown"."""
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            return version(name)
    return "unknown"


def _generator_seed(key: Array) -> int:
    """Returns the seed of the random generators of a run."""
    return int(jax.random.bits(key, dtype=np.uint32))


def _seed_generators(bits: int) -> None:
    """Seeds the global random generators, which host methods use."""
    random.seed(bits)
    np.random.seed(bits)  # noqa: NPY002 - what host methods draw from
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(bits)


def _is_importable(target: tuple[str | type, Mapping[str, Any]]) -> bool:
    """Returns whether another process can import the class and unpickle its arguments."""
    host_class = target[0]
    try:
        same = pickle.loads(pickle.dumps(target))[0] is host_class or isinstance(host_class, str)
    except Exception:  # a class that is local to a function, or its metaclass, may raise anything
        return False
    # Another process cannot import a class that was typed into a prompt.
    return same and (isinstance(host_class, str) or hasattr(sys.modules[host_class.__module__], "__file__"))


def _error_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 300 else f"{text[:300]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
