"""Training steps by device: the inner loop of meta-training and of fine-tuning.

`take_steps` is the one interface. `scan` is written in JAX, supports everything, computes on TPUs, and is the oracle of
the others: `cpu` (the C++ of `dre_jax.native`) and `cuda` (a kernel in CUDA C++). A program contains the backends that
support its steps. The device on which it runs selects one of them.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jax import Array, lax

from dre_jax import native
from dre_jax.methods.dre.backends import cpu, cuda
from dre_jax.methods.dre.backends.reference import scan
from dre_jax.methods.dre.backends.reference.request import SampledLists, StepRequest
from dre_jax.methods.dre.backends.reference.scan import Carry
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.optim.adam import StepSizes
from dre_jax.runtime.kept_programs import keep_while

__all__ = [
    "BACKENDS",
    "Backend",
    "Carry",
    "StepRequest",
    "request_of",
    "scan",
    "take_steps",
]


class Backend(NamedTuple):
    """Training steps on one platform."""

    platform: str
    """JAX's name: "cpu", "cuda", "rocm" or "tpu"."""
    why_not: Callable[[StepRequest], str | None]
    """Returns why the backend does not take such steps, in a few words; None if it does."""
    take_steps: Callable[[StepRequest], Callable[..., tuple[Carry, Array]]]
    """Returns the function of ``(x, response, start, lists, sizes)``, as `take_steps`."""
    label: Callable[[bool], str | None] = lambda decide: None
    """Returns the backend's name in results if it computes here, "native 1a2b" for example; None if not. The argument
    is whether to decide that if this process has not decided it yet, which may take seconds."""


def _cuda_label(decide: bool) -> str | None:
    is_used = (decide or cuda.decision.cache_info().currsize) and cuda.decision().limits
    beside = ", xla" if cuda.refused_kernels() else ""
    return f"cuda {cuda.fingerprint()} {cuda.precision()}{beside}" if is_used else None


def _native_label(decide: bool) -> str | None:
    digest = native.decision().fingerprint if decide or native.decision.cache_info().currsize else None
    return f"native {digest}" if digest else None


BACKENDS = [
    Backend("cuda", cuda.why_not, cuda.steps_for, _cuda_label),
    Backend(
        "cpu",
        cpu.why_not,
        lambda request: partial(cpu.take_steps, request.model, request.loss, params_only=request.params_only),
        _native_label,
    ),
]
"""All backends but the scan. The first one of a platform that takes the steps computes them, in
programs that are not compiled yet."""


keep_while(partial(operator.eq, BACKENDS, list(BACKENDS)))


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
      x: f32[rows, D], the rows that row numbers refer to.
      response: f32[rows].
      start: parameters and Adam's moments, members in front.
      lists: the lists of each step and member, [steps, members, lists]; one member if all members share lists. In each
        list, filled slots come first.
      sizes: of the steps.
      params_only: whether only the parameters of the result are used; the moments of ``start`` must be zero then.
      average: function for the mean of gradients and losses over devices with other lists of the same members.
      unroll: steps in one iteration of the scan.

    Returns:
      Parameters and moments, and the losses, f32[steps, members].
    """
    request = request_of(model, loss, x, lists, params_only=params_only, is_averaged=average is not None)
    by_scan = partial(scan.take_steps, model, loss, average=average or (lambda tree: tree), unroll=unroll)
    ways = {
        backend.platform: backend.take_steps(request) for backend in BACKENDS[::-1] if backend.why_not(request) is None
    }
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
