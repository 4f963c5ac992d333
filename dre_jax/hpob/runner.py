"""The interface of an evaluation to the loops: `compiled_runs`, `host_runs` and `continuous_runs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.data.spaces import Designs

Outcome = tuple[str, str, np.ndarray | str]
"""Dataset, seed name, and the T + 1 incumbents; or what went wrong."""


class PendingRuns(NamedTuple):
    """Runs that are to be done on a search space."""

    space: SearchSpace
    designs: Designs
    """Rows evaluated at the start, by dataset and seed name."""
    key: Array
    """PRNG key."""


class PlannedMethod(Protocol):
    """A plan's method, as the result file tells of it."""

    learns: bool
    """It needs the training split."""

    def configuration(self, space: str) -> Any:
        """The method's fields, or a host method's own words."""
        ...

    def facts(self) -> dict[str, Any]:
        """Further facts: checkpoints, and versions of packages."""
        ...

    def close(self) -> None:
        """Ends worker processes, if it has any; it can run again afterwards."""
        ...


class Runner(PlannedMethod, Protocol):
    """A plan's method, on the search spaces one after the other."""

    together: bool
    """`run` takes all search spaces at once; else one at a time."""

    def run(self, spaces: Sequence[PendingRuns]) -> Iterator[tuple[str, *Outcome]]:
        """The runs that are wanted, with the names of their search spaces."""
        ...
