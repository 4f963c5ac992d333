"""Losses over lists: one signature ``(scores, response, *, where, weights, ...)``, lists on the last axis.

The functions that end in ``_ranked`` take scores that stand in the order of relevance already (`RankedList`): training
uses them, since its lists are drawn in that order.
"""

from __future__ import annotations

from collections.abc import Callable

from jax import Array

from dre_jax.losses.listwise import listmle, listmle_ranked, listnet, listnet_ranked
from dre_jax.losses.order import RankedList, Ties, rank_sorted
from dre_jax.losses.pairwise import ranknet, ranknet_ranked
from dre_jax.losses.pointwise import subset_regression, subset_regression_ranked
from dre_jax.losses.regression import gaussian_nll, mean_squared_error, mean_squared_error_ranked
from dre_jax.losses.weights import PositionWeights, position_weights

RANKED_LOSSES: dict[str, Callable[[Array, RankedList], Array]] = {
    "listmle": listmle_ranked,
    "listnet": listnet_ranked,
    "ranknet": ranknet_ranked,
    "subset_regression": subset_regression_ranked,
    "mean_squared_error": mean_squared_error_ranked,
}
"""Losses that a scorer can be trained with, by name."""

OF_VALUES = frozenset({"listnet", "mean_squared_error"})
"""Those that the values of the responses enter, not their order alone."""

__all__ = [
    "OF_VALUES",
    "RANKED_LOSSES",
    "PositionWeights",
    "RankedList",
    "Ties",
    "gaussian_nll",
    "listmle",
    "listnet",
    "mean_squared_error",
    "position_weights",
    "rank_sorted",
    "ranknet",
    "subset_regression",
]
