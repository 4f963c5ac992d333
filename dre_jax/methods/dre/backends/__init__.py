"""Training steps, by device: where the inner loop of meta-training and of fine-tuning is computed.

`take_steps` is the one interface. `scan` is written in JAX, supports everything, and is the oracle of the others: `cpu`
(the C++ of `dre_jax.native`), `cuda` (a kernel in CUDA C++) and `tpu` (a Pallas kernel). A program has the backends
that support what it asks for, and the device on which it runs selects one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jax import Array, lax

from dre_jax.methods.dre.backends import cpu, cuda, scan, tpu
from dre_jax.methods.dre.backends.request import StepRequest
from dre_jax.methods.dre.backends.scan import Carry
from dre_jax.methods.dre.lists import SampledLists
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.optim.adam import StepSizes

__all__ = ["BACKENDS", "Backend", "Carry", "StepRequest", "request_of", "take_steps", "why_not"]


class Backend(NamedTuple):
    """Training steps on one platform."""

    platform: str
    """JAX's name: "cpu", "cuda", "rocm" or "tpu"."""
    why_not: Callable[[StepRequest], str | None]
    """Returns why it does not take such steps, in a few words; None if it does."""
    take_steps: Callable[[StepRequest], Callable[..., tuple[Carry, Array]]]
    """Returns the function of ``(x, response, start, lists, sizes)``, as `take_steps`."""


BACKENDS = [
    Backend(
        "cpu",
        cpu.why_not,
        lambda request: partial(cpu.take_steps, request.model, request.loss, params_only=request.params_only),
    ),
    Backend("cuda", cuda.why_not, cuda.steps_for),
    Backend("tpu", tpu.why_not, lambda request: partial(tpu.take_steps, request.model)),
]
"""All but the scan, one a platform. Append one to add a platform."""


def take_steps(
    model: ModelConfig,
    loss: str,
    x: Array,
    response: Array,
    start: Carry,
    lists: SampledLists,
    sizes: StepSizes,
    *,
    params_only: bool = False,
    average: Callable[[Any], Any] | None = None,
    unroll: int = 1,
) -> tuple[Carry, Array]:
    """Does steps of Adam on the mean loss of each step's lists, for every member.

    Args:
      model: sizes.
      loss: its name.
      x: f32[rows, D], what row numbers count.
      response: f32[rows].
      start: parameters and Adam's moments, members in front.
      lists: of each step and member, [steps, members, lists]; one member's stand for all where all have the same. In
        each list, filled slots come first.
      sizes: of the steps.
      params_only: whether only the parameters of the result are used; the moments of ``start`` must be zero then.
      average: the mean of gradients and losses over devices that have other lists of the same members.
      unroll: steps in one iteration of the scan.

    Returns:
      Parameters and moments, and the losses, f32[steps, members].
    """
    request = request_of(model, loss, x, lists, params_only=params_only, is_averaged=average is not None)
    by_scan = partial(scan.take_steps, model, loss, average=average or (lambda tree: tree), unroll=unroll)
    ways = {one.platform: one.take_steps(request) for one in BACKENDS if one.why_not(request) is None}
    if not ways:
        return by_scan(x, response, start, lists, sizes)
    return lax.platform_dependent(x, response, start, lists, sizes, **ways, default=by_scan)


def request_of(
    model: ModelConfig, loss: str, x: Array, lists: SampledLists, *, params_only: bool, is_averaged: bool = False
) -> StepRequest:
    """Returns the description of steps on such arrays."""
    _, owners, lists_per_step, support = lists.support.shape
    return StepRequest(
        model=model,
        loss=loss,
        columns=x.shape[1],
        rows=x.shape[0],
        support=support,
        query=lists.query.shape[-1],
        lists_per_step=lists_per_step,
        own_lists=owners > 1,
        params_only=params_only,
        is_averaged=is_averaged,
        dtype=x.dtype,
    )


def why_not(platform: str, request: StepRequest) -> str | None:
    """Returns why the scan takes such steps on a platform; None if the platform has a backend that takes them."""
    reasons = [one.why_not(request) for one in BACKENDS if one.platform == platform]
    return reasons[0] if reasons else f"there is no kernel for {platform}"
