"""Host methods in an evaluation: a fresh object for each run, runs shared out, and a fault ends its run only."""

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
from dre_jax.hpob.plan import Plan
from dre_jax.hpob.runner import Outcome, PendingRuns, PlannedMethod
from dre_jax.hpob.workers import Died, Pool
from dre_jax.methods.foreign import arguments_of, host_of, library_of, load_class
from dre_jax.search.batch import run_key
from dre_jax.search.host import HostMethod, run_host

Play = Callable[..., np.ndarray]
"""A run, called with a fresh object and `name`, the method's; must pickle."""
_Attempt = Callable[[tuple[int, Play]], np.ndarray | str]


class Job(NamedTuple):
    """A run that is to be done."""

    dataset: str
    seed: str
    key: Array
    play: Play


class HostMethods:
    """The class of a plan's host method, and runs of fresh objects of it, in this process or in others.

    Args:
      plan: one with a host method.

    Raises:
      ConfigError: at once, for a class that is not there, or settings that its constructor does not take.
      MissingExtraError: for a package that it needs.
    """

    learns = False

    def __init__(self, plan: Plan) -> None:
        given = host_of(plan.method)
        assert given is not None
        if plan.checkpoints is not None:
            raise ConfigError(f"a host method reads no checkpoints, but got {plan.checkpoints} for {plan.label}")
        self.name = plan.label
        found = load_class(given)
        self._arguments = arguments_of(found, plan.settings, self.name)
        self._words = self._in_words(found)
        self._attempt = _attempts(given, self.name, self._arguments)
        self._pool = None
        if plan.workers > 1 and _travels((given, self._arguments)):
            self._pool = Pool(partial(_attempts, given, self.name, self._arguments), plan.workers)
        self._library = library_of(plan.method)

    def configuration(self, space: str) -> str | None:
        """The object's own words, if it has any: others print an address. Else what its constructor is given."""
        return self._words

    def _in_words(self, found: type[HostMethod]) -> str | None:
        if found.__repr__ is object.__repr__:
            given = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
            return f"{self.name}({given})" if given else None
        try:
            return repr(found(**self._arguments))
        except MissingExtraError:
            raise
        except Exception as error:
            raise ConfigError(f"method {self.name}: {_said(error)}") from error

    def facts(self) -> dict[str, Any]:
        """No checkpoints, and the version of the library that a registered method calls."""
        versions = {} if self._library is None else {"versions": {self._library: version_of(self._library)}}
        return {"checkpoints": {}, **versions}

    def runs(self, space: SearchSpace, jobs: Iterable[Job]) -> Iterator[Outcome]:
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


class JobMethods(PlannedMethod, Protocol):
    """A method, as one object for each run."""

    def runs(self, space: SearchSpace, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """The runs, each with an object of its own."""
        ...


class JobRunner:
    """A method's runs, one object and one job each, space by space; a subclass says what is played."""

    together = False

    def __init__(self, plan: Plan, methods: JobMethods) -> None:
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
            for outcome in self._methods.runs(space, self._jobs(space, designs, key)):
                yield space.name, *outcome

    def close(self) -> None:
        """Ends the workers."""
        self._methods.close()

    def _jobs(self, space: SearchSpace, designs: Designs, key: Array) -> Iterator[Job]:
        raise NotImplementedError


class HostRunner(JobRunner):
    """The plain Python loop on the tables, as many runs at a time as the plan has workers."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, HostMethods(plan))

    def _jobs(self, space: SearchSpace, designs: Designs, key: Array) -> Iterator[Job]:
        tasks = space.split(self._plan.split)
        for dataset, seeds in designs.items():
            task = tasks[dataset]
            for seed, rows in seeds.items():
                play = partial(run_host, x=task.X, y=task.y, design=rows, n_trials=self._plan.trials)
                yield Job(dataset, seed, run_key(key, dataset, seed), play)


def _attempts(given: str | type, name: str, arguments: Mapping[str, Any]) -> _Attempt:
    """Makes an object for a run, and runs it, in whichever process this is called."""
    found = load_class(given)

    def attempt(item: tuple[int, Play]) -> np.ndarray | str:
        """Returns the incumbents of a run, or its error in a line."""
        bits, play = item
        try:
            _seed_generators(bits)
            return play(found(**arguments), name=name)
        except MethodError as error:
            told = str(error)
            return told if told.startswith(f"method {name}") else f"method {name}: {told}"
        except (Exception, SystemExit) as error:  # whatever the foreign code raises
            return f"method {name}: {_said(error)}"

    return attempt


def version_of(*names: str) -> str:
    """The version of the first of these packages that is installed."""
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            return version(name)
    return "unknown"


def _bits(key: Array) -> int:
    """Seed of a run's generators."""
    return int(jax.random.bits(key, dtype=np.uint32))


def _seed_generators(bits: int) -> None:
    """Seeds the generators that such classes draw from."""
    random.seed(bits)
    np.random.seed(bits)  # noqa: NPY002 - what host methods draw from
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(bits)


def _travels(given: tuple[str | type, Mapping[str, Any]]) -> bool:
    """Returns whether another process finds the class, by its name or where it was defined, and reads its arguments."""
    found = given[0]
    try:
        same = pickle.loads(pickle.dumps(given))[0] is found or isinstance(found, str)
    except Exception:  # whatever a class that is local to a function, or its metaclass, brings about
        return False
    # What was typed into a prompt is in no file that another process could read.
    return same and (isinstance(found, str) or hasattr(sys.modules[found.__module__], "__file__"))


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 300 else f"{text[:300]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
