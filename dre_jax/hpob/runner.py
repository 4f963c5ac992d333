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
    """Runs on a search space that are not in the result file yet."""

    space: SearchSpace
    designs: Designs
    """Rows evaluated at the start, by dataset and seed name."""
    key: Array
    """PRNG key."""


class PlannedMethod(Protocol):
    """A plan's method, as the result file describes it."""

    learns: bool
    """True if `fit` needs the training split."""

    def configuration(self, space: str) -> Any:
        """Returns the method's fields, or the `repr` of a host method."""
        ...

    def facts(self) -> dict[str, Any]:
        """Returns checkpoints and versions of packages."""
        ...

    def close(self) -> None:
        """Ends worker processes, if it has any; it can run again afterwards."""
        ...


class Runner(PlannedMethod, Protocol):
    """A plan's method, on the search spaces one after the other."""

    together: bool
    """`run` takes all search spaces at once; else one at a time."""

    def run(self, spaces: Sequence[PendingRuns]) -> Iterator[tuple[str, *Outcome]]:
        """Yields the outcomes of the runs, with the names of their search spaces."""
        ...
