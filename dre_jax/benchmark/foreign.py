"""Host methods in an evaluation: a fresh object for each run, runs shared out, and a fault ends its run only."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from dre_jax.benchmark.plan import Plan
from dre_jax.benchmark.runners import Outcome, Wanted
from dre_jax.benchmark.workers import Died, Pool
from dre_jax.data import SearchSpace
from dre_jax.data.spaces import Designs
from dre_jax.errors import ConfigError, MethodError, MissingExtraError
from dre_jax.methods.foreign import checked, host_of, library_of, load_class
from dre_jax.search.batch import run_key
from dre_jax.search.host import HostMethod, run_host

Play = Callable[[HostMethod, str], np.ndarray]
"""A run, of a fresh object and the method's name; must pickle."""
_Attempt = Callable[[tuple[int, Play]], np.ndarray | str]


class Job(NamedTuple):
    """A run that is to be done."""

    dataset: str
    seed: str
    key: Array
    play: Play


@dataclass(frozen=True, eq=False)
class TableRun:
    """`run_host` on a task's table."""

    x: np.ndarray
    y: np.ndarray
    design: np.ndarray
    trials: int

    def __call__(self, method: HostMethod, name: str) -> np.ndarray:
        """The incumbents, f64[T + 1]."""
        return run_host(method, self.x, self.y, self.design, self.trials, name=name)


class HostMethods:
    """The class of a plan's host method, and runs of fresh objects of it, in this process or in others.

    Args:
      plan: one with a host method.

    Raises:
      ConfigError: at once, for a class that is not there, or options that it cannot take.
      MissingExtraError: for a package that it needs.
    """

    def __init__(self, plan: Plan) -> None:
        given = host_of(plan.method)
        assert given is not None
        self.name = plan.label
        self._class = _class_of(given, self.name)
        options = ("checkpoints", "epochs", "learning_rate", "acquisition")
        not_for_it = [option for option in options if getattr(plan, option) is not None]
        if not_for_it:
            raise ConfigError(f"a host method is made without arguments, but got {', '.join(not_for_it)}")
        self._attempt = _attempts(self._class, self.name)
        self._pool = None
        if plan.workers > 1 and _travels(given):
            self._pool = Pool(partial(_attempts, given, self.name), plan.workers)
        self._library = library_of(plan.method)

    def configuration(self) -> str | None:
        """What the class says of itself, if it has words of its own: others print an address."""
        if self._class.__repr__ is object.__repr__:
            return None
        try:
            return repr(self._class())
        except MissingExtraError:
            raise
        except Exception as error:
            raise ConfigError(f"method {self.name}: {_said(error)}") from error

    def facts(self) -> dict[str, Any]:
        """No checkpoints, and the version of the library that a registered method calls."""
        facts: dict[str, Any] = {"checkpoints": {}}
        if self._library is not None:
            try:
                facts["versions"] = {self._library: version(self._library)}
            except PackageNotFoundError:
                facts["versions"] = {self._library: "unknown"}
        return facts

    def runs(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """The runs in the order in which they end: in the plan's workers, a single one in this process."""
        jobs = iter(jobs)
        first = list(islice(jobs, 2))
        everything = chain(first, jobs)
        if self._pool is None or len(first) < 2:
            for job in everything:
                yield job.dataset, job.seed, self._attempt((_bits(job.key), job.play))
            return
        items = (((job.dataset, job.seed), (_bits(job.key), job.play)) for job in everything)
        for (dataset, seed), found in self._pool.run(items):
            yield dataset, seed, f"method {self.name}: its process {found.how}" if isinstance(found, Died) else found

    def close(self) -> None:
        """Ends the workers."""
        if self._pool is not None:
            self._pool.close()


class HostRunner:
    """The plain Python loop on the tables, as many runs at a time as the plan has workers."""

    learns = False
    together = False

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._methods = HostMethods(plan)
        self._configuration = self._methods.configuration()

    def configuration(self, space: str) -> str | None:
        """The object's own words, or nothing."""
        return self._configuration

    def facts(self) -> dict[str, Any]:
        """No checkpoints."""
        return self._methods.facts()

    def run(self, spaces: Sequence[Wanted]) -> Iterator[tuple[str, *Outcome]]:
        """As `run_host`."""
        for space, designs, key in spaces:
            for outcome in self._methods.runs(self._jobs(space, designs, key)):
                yield space.name, *outcome

    def close(self) -> None:
        """Ends the workers."""
        self._methods.close()

    def _jobs(self, space: SearchSpace, designs: Designs, key: Array) -> Iterator[Job]:
        tasks = space.split(self._plan.split)
        for dataset, seeds in designs.items():
            task = tasks[dataset]
            for seed, rows in seeds.items():
                play = TableRun(task.X, task.y, rows, self._plan.trials)
                yield Job(dataset, seed, run_key(key, dataset, seed), play)


def _class_of(given: str | type, name: str) -> type[HostMethod]:
    return load_class(given) if isinstance(given, str) else checked(given, name)


def _attempts(given: str | type, name: str) -> _Attempt:
    """What makes an object for a run, and runs it, in whichever process this is called."""
    found = _class_of(given, name)

    def attempt(item: tuple[int, Play]) -> np.ndarray | str:
        """What a run gives, or a word on what went wrong in it."""
        bits, play = item
        try:
            _seed_generators(bits)
            return play(found(), name)
        except MethodError as error:
            told = str(error)
            return told if told.startswith(f"method {name}") else f"method {name}: {told}"
        except (Exception, SystemExit) as error:  # whatever the foreign code raises
            return f"method {name}: {_said(error)}"

    return attempt


def _bits(key: Array) -> int:
    """What a run's generators are seeded with."""
    return int(jax.random.bits(key, dtype=np.uint32))


def _seed_generators(bits: int) -> None:
    """Seeds the generators that such classes draw from."""
    random.seed(bits)
    np.random.seed(bits)  # noqa: NPY002 - what host methods draw from
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(bits)


def _travels(given: str | type) -> bool:
    """Whether another process finds the class: by its name, or where it was defined."""
    if isinstance(given, str):
        return True
    try:
        same = pickle.loads(pickle.dumps(given)) is given
    except Exception:  # whatever a class that is local to a function, or its metaclass, brings about
        return False
    # What was typed into a prompt is in no file that another process could read.
    return same and hasattr(sys.modules[given.__module__], "__file__")


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 300 else f"{text[:300]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
