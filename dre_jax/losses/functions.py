"""Losses over lists: ListMLE with position weights (the paper, equation 1), ListNet, RankNet and two over items.

Example:
  >>> import jax.numpy as jnp
  >>> scores, response = jnp.array([2.0, 0.5, 1.0]), jnp.array([0.9, 0.1, 0.4])
  >>> round(float(listmle(scores, response)), 4)
  0.9384
"""

from collections.abc import Callable
from typing import Protocol, cast

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from dre_jax.losses.cumulative import cumulative_logsumexp
from dre_jax.losses.order import PositionWeights, RankedList, rank_sorted
from dre_jax.runtime.jit import jit_eager_calls

PerItem = Float[Array, "*batch n"]
"""A number for each item of lists."""
PerList = Float[Array, " *batch"]
"""A number for each list."""
RankedLoss = Callable[[PerItem, RankedList], PerList]
"""Maps scores in the order of relevance, best item first, and their `RankedList` to the loss of each list."""


class ListLoss(Protocol):
    """A loss of scores and responses in any order."""

    ranked: RankedLoss
    """The loss of scores in the order of relevance, in which lists for training are drawn."""

    def __call__(
        self,
        scores: PerItem,
        response: PerItem,
        *,
        where: Bool[Array, "*batch n"] | None = None,
        weights: PositionWeights = "none",
    ) -> PerList:
        """Returns the loss of each list."""
        ...


def in_any_order(ranked_loss: RankedLoss) -> ListLoss:
    """Returns the loss of items in any order for a loss of items in the order of relevance, with its docstring."""

    def loss(
        scores: PerItem,
        response: PerItem,
        *,
        where: Bool[Array, "*#batch n"] | None = None,
        weights: PositionWeights = "none",
    ) -> PerList:
        return ranked_loss(*rank(scores, response, where=where, weights=weights))

    loss.__name__ = loss.__qualname__ = ranked_loss.__name__.lstrip("_")
    loss.__module__, loss.__doc__ = ranked_loss.__module__, ranked_loss.__doc__
    compiled_loss = cast(ListLoss, jit_eager_calls("weights")(loss))
    compiled_loss.ranked = ranked_loss
    return compiled_loss


def rank(
    scores: PerItem,
    response: PerItem,
    *,
    where: Bool[Array, "*#batch n"] | None = None,
    weights: PositionWeights = "none",
) -> tuple[PerItem, RankedList]:
    """Sorts scores and responses by response, best first; arguments as in `listmle`."""
    where = jnp.ones(response.shape, bool) if where is None else where
    where = jnp.broadcast_to(where, response.shape)
    order = jnp.argsort(jnp.where(where, -response, jnp.inf), axis=-1)
    scores, response, where = (jnp.take_along_axis(a, order, axis=-1) for a in (scores, response, where))
    return scores, rank_sorted(response, response, where, weights)


@jax.custom_vjp
def _listmle(scores: PerItem, lists: RankedList) -> PerList:  # noqa: D417 - the arguments of the form for any order
    """ListMLE: negative log-likelihood of the order of the responses under the Plackett-Luce model of the scores.

    Xia et al. 2008; with ``weights="inverse_log"`` the weighted loss of the paper (equation 1).

    Args:
      scores: higher is better.
      response: higher is better; ``listmle.ranked`` gets a `RankedList` for this and what follows.
      where: which slots hold an item; all by default.
      weights: name of the position weights.

    Returns:
      The weighted sum over each list.

    Example:
      >>> round(float(listmle(jnp.array([1.0, 0.0]), jnp.array([0.9, 0.1]))), 4)
      0.3133
    """
    return _forward(scores, lists)[0]


def _forward(scores: PerItem, lists: RankedList) -> tuple[PerList, tuple[PerItem, PerItem, RankedList]]:
    finite = jnp.where(lists.where, scores, 0.0)
    suffix = cumulative_logsumexp(finite, lists.where.astype(scores.dtype), reverse=True)
    denominator = jnp.take_along_axis(suffix, lists.first, axis=-1)
    terms = jnp.where(lists.where, denominator - finite, 0.0)
    return jnp.sum(lists.weight * terms, axis=-1), (finite, denominator, lists)


def _backward(residual: tuple[PerItem, PerItem, RankedList], cotangent: PerList) -> tuple[PerItem, None]:
    """Item j stands in the denominators of all items up to the end of its tie group: d/ds_j = sum_i w_i p_ij - w_j."""
    scores, denominator, lists = residual
    opposite = jnp.where(lists.where, -denominator, 0.0)
    prefix = cumulative_logsumexp(opposite, lists.weight, reverse=False)
    share = jnp.exp(scores + jnp.take_along_axis(prefix, lists.last, axis=-1))
    gradient = jnp.where(lists.where, share - lists.weight, 0.0)
    return cotangent[..., None] * gradient, None


_listmle.defvjp(_forward, _backward)
listmle = in_any_order(_listmle)


@in_any_order
def listnet(scores: PerItem, lists: RankedList) -> PerList:
    """ListNet: cross-entropy between the top-one probabilities of the responses and of the scores (Cao et al. 2007).

    Arguments as in `listmle`; the weights are applied to the terms of the sum.

    Example:
      >>> round(float(listnet(jnp.array([2.0, 0.0]), jnp.array([1.0, 1.0]))), 4)
      1.1269
    """
    target = jax.nn.softmax(lists.response, axis=-1, where=lists.where)
    finite = jnp.where(lists.where, scores, -jnp.inf)
    top = jax.lax.stop_gradient(jnp.max(finite, axis=-1, keepdims=True))
    shifted_scores = jnp.where(lists.where, scores - jnp.where(jnp.isfinite(top), top, 0.0), 0.0)
    total = jnp.sum(jnp.where(lists.where, jnp.exp(shifted_scores), 0.0), axis=-1, keepdims=True)
    log_probability = shifted_scores - jnp.log(jnp.where(total > 0, total, 1.0))
    return -jnp.sum(jnp.where(lists.where, lists.weight * target * log_probability, 0.0), axis=-1)


@in_any_order
def ranknet(scores: PerItem, lists: RankedList) -> PerList:
    """RankNet: logistic loss of the score difference, over all pairs that are not tied (Burges et al. 2005).

    Arguments as in `listmle`; a pair has the weight of its better item.

    Example:
      >>> round(float(ranknet(jnp.array([1.0, 0.0]), jnp.array([0.9, 0.1]))), 4)
      0.3133
    """
    better = lists.first[..., :, None] < lists.first[..., None, :]
    pair = better & lists.where[..., :, None] & lists.where[..., None, :]
    finite = jnp.where(lists.where, scores, 0.0)
    loss = jax.nn.softplus(finite[..., None, :] - finite[..., :, None])
    return jnp.sum(jnp.where(pair, lists.weight[..., :, None] * loss, 0.0), axis=(-2, -1))


@in_any_order
def subset_regression(scores: PerItem, lists: RankedList) -> PerList:
    """Subset regression: squared distance between the score, scaled by the list's length, and the relevance level.

    Cossock and Zhang 2008; the level is n + 1 - rank, so that the best of n items has level n, and ties share the mean.
    Arguments as in `listmle`. Returns the weighted mean over each list; 0 for an empty one.

    Example:
      >>> float(subset_regression(jnp.array([1.0, 0.5]), jnp.array([0.9, 0.1])))
      0.0
    """
    position = jnp.cumsum(lists.where, axis=-1, dtype=scores.dtype)
    group_start = jnp.take_along_axis(position - lists.where.astype(scores.dtype), lists.first, axis=-1) + 1.0
    group_end = jnp.take_along_axis(position, lists.last, axis=-1)
    count = jnp.sum(lists.where, axis=-1, keepdims=True, dtype=scores.dtype)
    level = count + 1.0 - (group_start + group_end) / 2.0
    error = jnp.where(lists.where, count * scores - level, 0.0)
    return jnp.sum(lists.weight * error**2, axis=-1) / jnp.maximum(count[..., 0], 1.0)


@in_any_order
def mean_squared_error(scores: PerItem, lists: RankedList) -> PerList:
    """Mean squared error between scores and responses: the weighted mean over each list; 0 for an empty one.

    Arguments as in `listmle`.

    Example:
      >>> float(mean_squared_error(jnp.array([1.0, 0.0]), jnp.array([0.0, 0.0])))
      0.5
    """
    error = jnp.where(lists.where, scores - lists.response, 0.0)
    count = jnp.sum(lists.where, axis=-1, dtype=scores.dtype)
    return jnp.sum(lists.weight * error**2, axis=-1) / jnp.maximum(count, 1.0)
