"""Histories that grow inside one program: the method tunes at each of their sizes, and values candidates at one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

import jax.numpy as jnp
from jax import Array, lax

from dre_jax.search.history import Candidates, History
from dre_jax.search.method import Method, as_stateful, value


class TuningMethod(Method, Protocol):
    """A method that tunes to the history once, and values any candidates by that.

    ``rate(tune(params, history, key), history, candidates)`` is what `acquire` gives. What it tunes has the same shapes
    for histories of all sizes, unless a class attribute ``tuned_per_slot`` is true: then it fits the slots of the
    history that it was tuned to.
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
    """The method in stages; as it is if it does not tune apart, does so slot by slot, or there is one stage."""
    tuning = as_tuning(method)
    if len(capacities) < 2 or tuning is None or getattr(method, "tuned_per_slot", False):
        return method
    return InStages(tuning, capacities)


def as_tuning(method: Method) -> TuningMethod | None:
    """The method, if it tunes apart from valuing; None for the others, which need not know of this."""
    return cast(TuningMethod, method) if hasattr(method, "tune") and hasattr(method, "rate") else None


def valuation(
    method: Method, params: Any, history: History, key: Array, *, draw: bool = False
) -> Callable[[Any, Candidates], tuple[Array, Any]]:
    """`dre_jax.search.method.value` as a function of a state and candidates; what tunes apart does so once."""
    tuning = as_tuning(method)
    if tuning is None or draw or as_stateful(method) is not None:
        return lambda state, candidates: value(method, params, state, history, candidates, key, draw=draw)
    tuned = tuning.tune(params, history, key)
    return lambda state, candidates: (tuning.rate(tuned, history, candidates), state)
