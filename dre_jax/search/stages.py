"""Histories that grow inside one program: the method tunes at each of their sizes, and values candidates at one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

import jax.numpy as jnp
from jax import Array, lax

from dre_jax.search.history import Candidates, History
from dre_jax.search.method import Method


class TuningMethod(Method, Protocol):
    """A method whose values are of what it tunes to the history, of the same shapes for histories of all sizes.

    ``rate(tune(params, history, key), history, candidates)`` is what `acquire` gives.
    """

    def tune(self, params: Any, history: History, key: Array) -> Any:
        """A tree of arrays."""
        ...

    def rate(self, tuned: Any, history: History, candidates: Candidates) -> Array:
        """Values f32[N] of the candidates."""
        ...


@dataclass(frozen=True)
class InStages:
    """A method that values candidates as another does, which tunes to the slots that are filled alone."""

    method: TuningMethod
    capacities: tuple[int, ...]
    """Sizes at which it tunes, in increasing order."""

    def fit(self, meta: Any, key: Array) -> Any:
        """As the method's own."""
        return self.method.fit(meta, key)

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
        """As the method's own, of a history with as many slots as the last size."""

        def tune(capacity: int, params: Any, history: History, key: Array) -> Any:
            return self.method.tune(params, History(*(field[:capacity] for field in history)), key)

        # The count is all runs' own, so that it remains a branch where they go side by side.
        stage = jnp.searchsorted(jnp.array(self.capacities), jnp.sum(history.where))
        tuned = lax.switch(stage, [partial(tune, capacity) for capacity in self.capacities], params, history, key)
        return self.method.rate(tuned, history, candidates)


def in_stages(method: Method, capacities: tuple[int, ...]) -> Method:
    """The method in stages; as it is if it does not tune apart, or there is one stage."""
    if len(capacities) < 2 or not hasattr(method, "tune"):
        return method
    return InStages(cast(TuningMethod, method), capacities)
