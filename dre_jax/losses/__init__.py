"""Losses over lists: one signature ``(scores, response, *, where, weights, ...)``, lists on the last axis.

The functions that end in ``_ranked`` take scores that stand in the order of relevance already (`RankedList`): training
uses them, since its lists are drawn in that order.
"""

from __future__ import annotations

from dre_jax.losses.listwise import listmle, listnet
from dre_jax.losses.order import RankedList, rank_sorted
from dre_jax.losses.pairwise import ranknet
from dre_jax.losses.pointwise import subset_regression
from dre_jax.losses.registry import LOSSES, Loss, register_loss
from dre_jax.losses.regression import gaussian_nll, mean_squared_error
from dre_jax.losses.weights import PositionWeights, position_weights

__all__ = [
    "LOSSES",
    "Loss",
    "PositionWeights",
    "RankedList",
    "gaussian_nll",
    "listmle",
    "listnet",
    "mean_squared_error",
    "position_weights",
    "rank_sorted",
    "ranknet",
    "register_loss",
    "subset_regression",
]
