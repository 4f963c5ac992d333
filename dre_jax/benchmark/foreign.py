"""Host methods in an evaluation: a fresh object for each run, and a fault ends that run only."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax import Array

from dre_jax.benchmark.plan import Plan
from dre_jax.benchmark.runners import Outcome
from dre_jax.data import SearchSpace, Task
from dre_jax.data.spaces import Designs
from dre_jax.errors import ConfigError, MethodError
from dre_jax.methods.foreign import checked, load_class
from dre_jax.search.batch import run_key
from dre_jax.search.host import HostMethod, run_host

T = TypeVar("T")


class HostMethods:
    """The class of a plan's host method, and fresh objects of it.

    Raises:
      ConfigError: at once, for a class that is not there, or options that it cannot take.
    """

    def __init__(self, plan: Plan) -> None:
        self.name = plan.label
        given = plan.method
        assert isinstance(given, (str, type))
        self._class = load_class(given) if isinstance(given, str) else checked(given, self.name)
        options = ("checkpoints", "epochs", "learning_rate", "acquisition")
        not_for_it = [option for option in options if getattr(plan, option) is not None]
        if not_for_it:
            raise ConfigError(f"a host method is made without arguments, but got {', '.join(not_for_it)}")

    def configuration(self) -> str | None:
        """What the class says of itself, if it has words of its own: others print an address."""
        if self._class.__repr__ is object.__repr__:
            return None
        try:
            return repr(self._class())
        except Exception as error:
            raise ConfigError(f"method {self.name}: {_said(error)}") from error

    def fresh(self, key: Array) -> HostMethod:
        """A new object, after the generators that such classes draw from were seeded for the run."""
        seed = int(jax.random.bits(key, dtype=np.uint32))
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - what host methods draw from
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)
        return self._class()

    def attempt(self, run: Callable[[], T]) -> T | str:
        """What a run gives, or a word on what went wrong in it."""
        try:
            return run()
        except MethodError as error:
            return str(error)
        except (Exception, SystemExit) as error:  # whatever the foreign code raises
            return f"method {self.name}: {_said(error)}"


class HostRunner:
    """The plain Python loop on the tables, a run at a time."""

    learns = False

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._methods = HostMethods(plan)
        self._configuration = self._methods.configuration()

    def configuration(self, space: str) -> str | None:
        """The object's own words, or nothing."""
        return self._configuration

    def facts(self) -> dict[str, Any]:
        """No checkpoints."""
        return {"checkpoints": {}}

    def run(self, space: SearchSpace, designs: Designs, key: Array) -> Iterator[Outcome]:
        """As `run_host`."""
        tasks = space.split(self._plan.split)
        for dataset, seeds in designs.items():
            for seed, rows in seeds.items():
                one = self._run(tasks[dataset], rows, run_key(key, dataset, seed))
                yield dataset, seed, one

    def _run(self, task: Task, rows: np.ndarray, key: Array) -> np.ndarray | str:
        methods, trials = self._methods, self._plan.trials
        return methods.attempt(lambda: run_host(methods.fresh(key), task.X, task.y, rows, trials, name=methods.name))


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 300 else f"{text[:300]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
