"""Surrogates: a method, what it has learned from past tasks of a search space, and what to try first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dre_jax.data.columns import DESCRIPTORS, differing_columns
from dre_jax.errors import CheckpointError, ConfigError, DataError, DreError
from dre_jax.methods.start_configurations import N_START, start_rows
from dre_jax.search.method import Method
from dre_jax.tuning.past.tasks import PastTasks
from dre_jax.tuning.space.compatibility import require_compatible_spaces
from dre_jax.tuning.space.descriptors import from_descriptor
from dre_jax.tuning.space.hpob import HPOB_SPACES, from_hpob
from dre_jax.tuning.space.json_format import from_json, to_json
from dre_jax.tuning.space.space import Params, Space
from dre_jax.tuning.suggestion_runtime import suggestion_runtime

if TYPE_CHECKING:
    from dre_jax.methods.checkpoints.fitted import FittedMethod

SPACE_NAME = "past"
"""Of the search space in the checkpoint of a surrogate."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A method that has learned from past tasks of a search space.

    Example:
      >>> from dre_jax.tuning import PastTrial, Float, collect_past_tasks
      >>> space = Space({"x": Float(0.0, 1.0)})
      >>> tasks = {str(t): [PastTrial({"x": x / 9}, -abs(x / 9 - t / 3)) for x in range(10)] for t in range(3)}
      >>> surrogate = Surrogate.fit(collect_past_tasks(space, tasks), space, method="gcp", settings={"prior.steps": 5})
      >>> surrogate.name, len(surrogate.start)
      ('gcp', 4)
    """

    space: Space
    """The search space, with its encoding."""
    name: str
    """The method's, as in `dre_jax.methods.METHODS`."""
    method: Method
    params: Any
    """Learned parameters: a tree of arrays."""
    start: tuple[Params, ...] = ()
    """Configurations to try first: together they would have left the least regret on the past tasks."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Origin: tasks, key and versions."""

    @classmethod
    def fit(
        cls,
        past: PastTasks,
        space: Space | None = None,
        *,
        method: str = "recommended",
        seed: int = 0,
        settings: dict[str, Any] | None = None,
        n_start: int = N_START,
    ) -> Surrogate:
        """Learns from past tasks.

        Args:
          past: tasks of one search space.
          space: the search space, where it is to be checked that they are of this one.
          method: a name of `dre_jax.methods.METHODS` that learns from past tasks.
          seed: the same seed learns the same.
          settings: of the method, by dotted field.
          n_start: configurations to try first, at most.

        Raises:
          DataError: without tasks, or for tasks of another space.
          ConfigError: for a method that is unknown or learns nothing.
        """
        import jax

        from dre_jax.methods import find
        from dre_jax.methods.checkpoints.provenance import provenance
        from dre_jax.search.method import decisions_of

        if space is not None and space != past.space:
            raise DataError(f"past tasks must be of the space given, but are of {past.space!r}")
        if not past.tasks:
            why = f": {past.exclusions[0]}" if past.exclusions else ""
            raise DataError(f"a surrogate needs at least one past task, but got none{why}")
        entry = find(method)
        if not entry.transfer or entry.default is None:
            raise ConfigError(f"a surrogate's method must learn from past tasks, but {entry.name} does not")
        made = entry.make(settings)
        meta, key = past.search_space(), jax.random.key(seed)
        with suggestion_runtime:
            params = jax.block_until_ready(made.fit(meta, key))
        start = start_design(past, n_start, seed)
        facts = {**provenance(meta, key), "seed": seed, "decided": decisions_of(made, params)}
        return cls(past.space, entry.name, made, jax.tree.map(np.asarray, params), start, facts)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the surrogate as a checkpoint; an existing one is replaced in one step.

        Raises:
          CheckpointError: where it cannot be written.
        """
        from dre_jax.methods.checkpoints.fitted import FittedMethod, save_fitted

        save_fitted(
            Path(folder),
            FittedMethod(
                name=self.name,
                method=self.method,
                params=self.params,
                space=SPACE_NAME,
                n_columns=len(self.space.columns),
                columns=self.space.columns,
                facts=self.facts,
                extra=kept_of(self.space, self.start),
            ),
        )

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, space: Space | None = None) -> Surrogate:
        """Reads a surrogate that `save` or `dre-jax meta-train` wrote.

        Args:
          folder: the checkpoint's; of `meta-train`, a search space's.
          space: the search space that is to be tuned. A surrogate that was saved knows its own, and so does what
            `meta-train` wrote where the data have descriptors with ranges; that must know the space given. Elsewhere
            it is needed, encoded as the tables are.

        Raises:
          CheckpointError: where there is no checkpoint, it is damaged, or its columns are not the space's.
          DataError: where its own space does not know the one given; the message names the hyperparameters.
        """
        import jax

        from dre_jax.methods.checkpoints.fitted import load_fitted

        fitted = load_fitted(Path(folder))
        known, start = _own(folder, fitted) if "tuning" in fitted.extra else _described(folder, fitted, space)
        if space is not None:
            require_compatible_spaces(space, known, ignore_extra=False)
        return cls(known, fitted.name, fitted.method, jax.tree.map(np.asarray, fitted.params), start, fitted.facts)


_Path = str | os.PathLike[str]


def kept_of(space: Space, start: Sequence[Params]) -> dict[str, Any]:
    """The part of a surrogate that a checkpoint keeps beside its method, for `Surrogate.load`."""
    return {"tuning": {"space": to_json(space), "start": list(start)}}


def _own(folder: _Path, fitted: FittedMethod) -> tuple[Space, tuple[Params, ...]]:
    """The space and the start design that `Surrogate.save` kept."""
    try:
        kept = fitted.extra["tuning"]
        space = from_json(kept["space"])
        return space, tuple(space.check(params) for params in kept["start"])
    except (KeyError, TypeError, ConfigError, DataError) as error:
        why = error if isinstance(error, DreError) else repr(error)
        raise CheckpointError(f"the space of the surrogate in {folder} is not this version's: {why}") from error


def _described(folder: _Path, fitted: FittedMethod, space: Space | None) -> tuple[Space, tuple[Params, ...]]:
    """The space whose columns `dre-jax meta-train` found, as its data describe it or as it is given."""
    if fitted.columns is None:
        rule = f"data that a surrogate learned from must come with a {DESCRIPTORS}.json"
        raise CheckpointError(f"{rule}, but those of the checkpoint in {folder} did not: its columns have no names")
    descriptor = fitted.extra.get("descriptor")
    try:
        known = space if descriptor is None else of_descriptor(fitted.space, descriptor)
    except (DataError, ConfigError):  # columns alone
        known = space
    if known is None:
        names = ", ".join(dict.fromkeys(column.parent for column in fitted.columns))
        raise CheckpointError(f"the checkpoint in {folder} has no ranges of its hyperparameters, {names}: give space=")
    found = differing_columns(known.columns, fitted.columns)
    if found:
        raise CheckpointError(f"the checkpoint in {folder} is of another space: {'; '.join(found)}")
    return known, tuple(known.decode(row) for row in fitted.extra.get("start_rows", ()))


def of_descriptor(name: str, descriptor: Mapping[str, Any]) -> Space:
    """The space that the descriptor of a folder's search space describes; of HPO-B's by their names.

    Raises:
      DataError: where it says too little.
    """
    return from_hpob(name, descriptor) if name in HPOB_SPACES else from_descriptor(descriptor)


def start_design(past: PastTasks, n: int, seed: int) -> tuple[Params, ...]:
    """Configurations to try first, see `dre_jax.methods.start_configurations.start_rows`.

    Args:
      past: tasks.
      n: how many, at most.
      seed: equally good ones fall by chance.
    """
    if n < 1:
        return ()
    return tuple(past.space.decode(row) for row in start_rows(past.tasks, n, seed))
