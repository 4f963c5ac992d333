"""Training steps in JAX: for every model, loss and device."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.losses import LOSSES
from dre_jax.methods.dre.backends.reference.request import SampledLists
from dre_jax.methods.dre.model.ensemble import EnsembleParams, Support, member_axes, member_scores
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.optim.adam import Moments, StepSizes, apply_gradient

Carry = tuple[EnsembleParams, Moments]
"""Parameters and Adam's moments, members in front."""


def member_losses(
    model: ModelConfig, loss: str, x: Array, response: Array, params: EnsembleParams, lists: SampledLists
) -> Array:
    """Returns the mean loss f32[M] of each member over its own lists [M, B], or over those of all members, [1, B]."""

    def member_loss(params: EnsembleParams, lists: SampledLists) -> Array:
        def scores(member_lists: SampledLists) -> Array:
            support = Support(x[member_lists.support], response[member_lists.support], member_lists.support_where)
            return member_scores(model, params, support, x[member_lists.query])

        return jnp.mean(LOSSES[loss](jax.vmap(scores)(lists), lists.ranked_list))

    axis = None if len(lists.support) == 1 else 0
    lists = jax.tree.map(lambda a: a[0], lists) if axis is None else lists
    return jax.vmap(member_loss, in_axes=(member_axes(model), axis))(params, lists)


def take_steps(
    model: ModelConfig,
    loss: str,
    x: Array,
    response: Array,
    start: Carry,
    lists: SampledLists,
    sizes: StepSizes,
    *,
    average: Callable[[Any], Any] = lambda tree: tree,
    unroll: int = 1,
) -> tuple[Carry, Array]:
    """Does steps of Adam for the members in ``start``; the oracle of all other backends.

    ``average`` takes the mean of gradients and losses over devices; ``unroll`` is the number of steps in one iteration.
    """

    def step(carry: Carry, inputs: tuple[SampledLists, StepSizes]) -> tuple[Carry, Array]:
        params, moments = carry
        lists, size = inputs

        def total(params: EnsembleParams) -> tuple[Array, Array]:
            losses = member_losses(model, loss, x, response, params, lists)
            # The sum over members: each member sees the gradient of its own loss.
            return jnp.sum(losses), losses

        gradient, losses = average(jax.grad(total, has_aux=True)(params))
        return apply_gradient(params, gradient, moments, size), losses

    return lax.scan(step, start, (lists, sizes), unroll=unroll)
