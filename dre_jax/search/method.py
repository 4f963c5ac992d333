"""The one protocol: what the loop asks of a method."""

from __future__ import annotations

from typing import Any, Protocol

from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.search.history import Candidates, History


class Method(Protocol):
    """Two pure functions; an object that is frozen and hashable, since it is static under jit."""

    def fit(self, meta: SearchSpace, key: Array) -> Any:
        """Learns from the training tasks of a search space; returns a tree of arrays, or None with nothing to learn."""
        ...

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
        """Values f32[N] of the candidates, higher = evaluate first; jit- and vmap-able, fixed shapes, masks."""
        ...
