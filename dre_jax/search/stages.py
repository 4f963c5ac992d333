"""Fits to the smallest padded history that fits, inside one program; candidates are valued at one size."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Key

from dre_jax.search.history import Candidates, History
from dre_jax.search.method import HistoryMethod, Method, capabilities_of, value


@dataclass(frozen=True)
class BucketedHistoryFit:
    """A method with the values of another one, which is fitted to the smallest capacity that holds all trials."""

    method: HistoryMethod
    capacities: tuple[int, ...]
    """Numbers of slots of the padded histories, in increasing order."""

    def fit(self, meta: Any, key: Key[Array, ""]) -> Any:
        """Returns the result of the method's own `fit`."""
        return self.method.fit(meta, key)

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Key[Array, ""]) -> Float[Array, " N"]:
        """Returns the values of the method's own `acquire`; the history has the largest capacity."""

        def fit_slots(capacity: int, params: Any, history: History, key: Array) -> Any:
            return self.method.fit_history(params, jax.tree.map(lambda field: field[:capacity], history), key)

        # All runs of a batch have the same number of trials, so `vmap` keeps the branch.
        smallest = jnp.searchsorted(jnp.array(self.capacities), jnp.sum(history.where))
        branches = [partial(fit_slots, capacity) for capacity in self.capacities]
        fitted_params = lax.switch(smallest, branches, params, history, key)
        return self.method.score_candidates(fitted_params, history, candidates)


def with_bucketed_history_fit(method: Method, capacities: tuple[int, ...]) -> Method:
    """Returns the method with `BucketedHistoryFit`.

    Returns it unchanged if it has no `fit_history`, if its fit depends on the slots, or if there is one capacity.
    """
    if len(capacities) < 2 or not isinstance(method, HistoryMethod) or capabilities_of(method).slotwise_fit:
        return method
    return BucketedHistoryFit(method, capacities)


Valuation = Callable[[Candidates], Float[Array, " N"]]
"""Maps candidates to their values."""


def valuation(
    method: Method, params: Any, history: History, fitted_params: Any, key: Key[Array, ""], *, sample: bool = False
) -> Valuation:
    """Returns `dre_jax.search.method.value` as a function of the candidates.

    ``fitted_params`` is the result of the method's `fit_history`; None if it has none, or is not to be used.
    """
    if not isinstance(method, HistoryMethod) or fitted_params is None:
        return lambda candidates: value(method, params, history, candidates, key, sample=sample)
    return lambda candidates: method.score_candidates(fitted_params, history, candidates)
