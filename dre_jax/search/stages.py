"""Fine-tuning on the smallest padded history that fits, inside one program; candidates are valued at one size."""

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
    """A method that fine-tunes on the history once, and values any candidates with the result.

    ``rate(tune(params, history, key), history, candidates)`` equals `acquire`. The fine-tuned arrays have the same
    shapes for histories of all sizes, unless a class attribute ``tuned_per_slot`` is true: then they have one entry for
    each slot of the history.
    """

    def tune(self, params: Any, history: History, key: Array) -> Any:
        """Returns the fine-tuned parameters, a tree of arrays."""
        ...

    def rate(self, tuned: Any, history: History, candidates: Candidates) -> Array:
        """Returns values f32[N] of the candidates."""
        ...


@dataclass(frozen=True)
class BucketedTuning:
    """A method with the values of another one, which is fine-tuned on the smallest capacity that holds all trials."""

    method: TuningMethod
    capacities: tuple[int, ...]
    """Numbers of slots of the padded histories, in increasing order."""

    def fit(self, meta: Any, key: Array) -> Any:
        """Returns what the method's own `fit` returns."""
        return self.method.fit(meta, key)

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns the values of the method's own `acquire`; the history has the largest capacity."""

        def tune(capacity: int, params: Any, history: History, key: Array) -> Any:
            return self.method.tune(params, History(*(field[:capacity] for field in history)), key)

        # All runs of a batch have the same number of trials, so `vmap` keeps the branch.
        smallest = jnp.searchsorted(jnp.array(self.capacities), jnp.sum(history.where))
        tuned = lax.switch(smallest, [partial(tune, capacity) for capacity in self.capacities], params, history, key)
        return self.method.rate(tuned, history, candidates)


def with_bucketed_tuning(method: Method, capacities: tuple[int, ...]) -> Method:
    """Returns the method with `BucketedTuning`.

    Returns it unchanged if it has no `tune` and `rate`, if its arrays depend on the slots, or if there is one capacity.
    """
    tuning = as_tuning(method)
    if len(capacities) < 2 or tuning is None or getattr(method, "tuned_per_slot", False):
        return method
    return BucketedTuning(tuning, capacities)


def as_tuning(method: Method) -> TuningMethod | None:
    """Returns the method if it has `tune` and `rate`, else None."""
    return cast(TuningMethod, method) if hasattr(method, "tune") and hasattr(method, "rate") else None


def valuation(
    method: Method, params: Any, history: History, key: Array, *, draw: bool = False
) -> Callable[[Any, Candidates], tuple[Array, Any]]:
    """Returns `dre_jax.search.method.value` as a function of a state and candidates; a `TuningMethod` tunes once."""
    tuning = as_tuning(method)
    if tuning is None or draw or as_stateful(method) is not None:
        return lambda state, candidates: value(method, params, state, history, candidates, key, draw=draw)
    tuned = tuning.tune(params, history, key)
    return lambda state, candidates: (tuning.rate(tuned, history, candidates), state)
