"""What an evaluation asks of the loop that runs its method: `compiled_runs`, `host_runs` or `continuous_runs`."""

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


class Runner(Protocol):
    """A plan's method, on the search spaces one after the other."""

    learns: bool
    """Whether `run` needs the training split."""
    together: bool
    """Whether it is to be given all search spaces at once, or one at a time."""

    def configuration(self, space: str) -> Any:
        """How the method is configured, for the result file."""
        ...

    def facts(self) -> dict[str, Any]:
        """What else the result file says."""
        ...

    def run(self, spaces: Sequence[PendingRuns]) -> Iterator[tuple[str, *Outcome]]:
        """The runs that are wanted, with the names of their search spaces."""
        ...

    def close(self) -> None:
        """Lets go of what it holds beside memory; it may be asked to run again."""
        ...
