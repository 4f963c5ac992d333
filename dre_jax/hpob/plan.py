"""The plan of an evaluation, the results of its runs, and the interface of the loops that do them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jax import Array

from dre_jax.checks import one_of
from dre_jax.data import SearchSpace, list_spaces
from dre_jax.data.hpob import Outline, outline
from dre_jax.data.raw_columns import COLUMNS
from dre_jax.data.spaces import Designs
from dre_jax.errors import ConfigError, DataError
from dre_jax.hpob.continuous import COUNTINGS
from dre_jax.methods.entries.settings import Settings
from dre_jax.methods.foreign import label_of
from dre_jax.methods.registry import real_name
from dre_jax.search.host import HostMethod
from dre_jax.search.method import Method


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A method, the tasks and designs that it is evaluated on, and the settings of the evaluation."""

    data: Path
    """Folder in HPO-B's layout."""
    method: str | Method | type[HostMethod]
    """A name that `dre_jax.methods.find` knows, such as "dre" or "path/to/file.py:Class"; or a method, or a host
    method's class, itself."""
    spaces: tuple[str, ...] | None = None
    """Search spaces; None for all that have tasks in the split."""
    mode: str = "v3"
    """HPO-B's mode of reading the folder."""
    columns: str = "published"
    """The tables' columns "published", or "fixed": see `dre_jax.data.raw_columns`."""
    checkpoints: Path | None = None
    """Root of the checkpoints of the method, or of an ensemble that it starts from; without one, a method that learns
    from past tasks is fitted first."""
    split: str = "test"
    """"test" or "validation"."""
    trials: int = 100
    """Trials after the initial design. A run that has reached the optimum of its table evaluates nothing more and
    keeps its incumbent, so that all runs have equal lengths; a table of fewer rows than trials is exhausted earlier."""
    seeds: tuple[str, ...] | None = None
    """Initial designs by name; None for all."""
    settings: Settings = field(default_factory=dict)
    """Settings of the method, by dotted field or short name: `{"epochs": 10, "acquisition.beta": 2.0}`. For a host
    method, arguments of its constructor."""
    continuous: str | None = None
    """Way of counting evaluations of a search in [0, 1]^D, with HPO-B's surrogates as the objective: one of
    `dre_jax.hpob.continuous.COUNTINGS`. None searches the tables."""
    surrogates: Path | None = None
    """Folder of the surrogates."""
    seed: int = 0
    """Seed of the picks."""
    workers: int = 1
    """Number of processes that share out the runs of a host method; compiled methods use devices. With more than one, a
    script must keep its own work under `if __name__ == "__main__"`. A class that other processes cannot find runs in
    this process alone."""

    @property
    def label(self) -> str:
        """The method's name: in the result file, and in messages."""
        if isinstance(self.method, str):
            return label_of(real_name(self.method))
        if isinstance(self.method, type):
            return f"{self.method.__module__}:{self.method.__qualname__}"
        return type(self.method).__name__


class FinishedRun(NamedTuple):
    """One run of an evaluation."""

    space: str
    """Search space."""
    dataset: str
    """Task."""
    seed: str
    """Initial design."""
    trace: np.ndarray
    """f64[T + 1] incumbents."""


class FailedRun(NamedTuple):
    """A run that a host method's fault ended; it is not in the result file, and the next evaluation tries it again."""

    space: str
    """Search space."""
    dataset: str
    """Task."""
    seed: str
    """Initial design."""
    error: str
    """Message of the exception, in one line."""

    def __str__(self) -> str:
        """A line about it."""
        return f"space {self.space!r}, dataset {self.dataset!r}, seed {self.seed!r}: {self.error}"


Run = FinishedRun | FailedRun
RunNames = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Space -> dataset -> names of the initial designs."""


def check(plan: Plan) -> tuple[dict[str, Outline], RunNames]:
    """Returns the search spaces and the runs of a plan, without reading tables.

    Raises `ConfigError` and `DataError` if a split, space or design does not exist.
    """
    if plan.split not in ("test", "validation"):
        raise ConfigError(f"the split must be test or validation, but got {plan.split!r}")
    if plan.trials < 0:
        raise ConfigError(f"the number of trials must not be negative, but got {plan.trials}")
    if plan.workers < 1:
        raise ConfigError(f"the number of workers must be at least 1, but got {plan.workers}")
    if (plan.continuous is None) != (plan.surrogates is None):
        raise ConfigError("continuous and surrogates go together, but only one of them was given")
    one_of("columns", plan.columns, COLUMNS)
    if plan.continuous is not None:
        one_of("continuous", plan.continuous, COUNTINGS)
        if plan.columns != "published":
            raise ConfigError(f"HPO-B's surrogates need the published columns, but got columns={plan.columns!r}")
    available = outline(plan.data, plan.split, plan.mode)
    for name in plan.spaces or ():
        if name not in available and name in list_spaces(plan.data, plan.mode):
            raise DataError(f"search space {name!r} has no {plan.split} tasks")
        if name not in available:
            names = ", ".join(available) or "none"
            raise DataError(f"{plan.data}: unknown space {name!r}; mode {plan.mode} knows {names}")
    if not available:
        raise DataError(f"{plan.data} must hold {plan.split} tasks, but has none")
    spaces = {name: available[name] for name in plan.spaces or available}
    return spaces, {name: _seeds(plan, space) for name, space in spaces.items()}


def _seeds(plan: Plan, space: Outline) -> dict[str, tuple[str, ...]]:
    """Returns the plan's initial designs by dataset."""
    seeds_by_dataset = {}
    for dataset, names in space.seeds.items():
        if not names:
            message = f"space {space.name!r}, dataset {dataset!r}: an initial design is needed, but there is none"
            raise DataError(message)
        unknown = [seed for seed in plan.seeds or () if seed not in names]
        if unknown:
            valid = ", ".join(names)
            raise ConfigError(f"seeds of dataset {dataset!r} are {valid}, but got {', '.join(unknown)}")
        seeds_by_dataset[dataset] = plan.seeds or names
    return seeds_by_dataset


class PendingRuns(NamedTuple):
    """Runs on a search space that are not in the result file yet."""

    space: SearchSpace
    designs: Designs
    """Rows evaluated at the start, by dataset and seed name."""
    key: Array
    """PRNG key."""
