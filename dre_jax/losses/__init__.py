"""Losses over lists: one signature ``(scores, response, *, where, weights, ...)``, lists on the last axis.

Training uses the attribute ``ranked`` of each: the same loss of scores in the order of relevance (`RankedList`), in
which its lists are drawn.
"""

from dre_jax.losses.functions import listmle, listnet, mean_squared_error, ranknet, subset_regression
from dre_jax.losses.order import PositionWeights, RankedList, position_weights, rank_sorted
from dre_jax.losses.registry import LOSSES, Loss

__all__ = [
    "LOSSES",
    "Loss",
    "PositionWeights",
    "RankedList",
    "listmle",
    "listnet",
    "mean_squared_error",
    "position_weights",
    "rank_sorted",
    "ranknet",
    "subset_regression",
]
