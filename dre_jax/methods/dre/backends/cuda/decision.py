"""Whether this process launches the kernel, and which training steps it takes."""

import functools
import logging
import os
from collections.abc import Callable
from typing import Any, NamedTuple, cast, get_args

import jax
import jax.numpy as jnp

from dre_jax.checks import one_of
from dre_jax.errors import DeviceError
from dre_jax.methods.dre.backends.cuda.launch_check import check_launch, plain_settings
from dre_jax.methods.dre.backends.cuda.library import open_library
from dre_jax.methods.dre.backends.cuda.plan import Limits, Precision, Sizes, plan_for, why_unsupported
from dre_jax.methods.dre.backends.cuda.steps import take_steps
from dre_jax.methods.dre.backends.reference.request import StepRequest

VARIABLE, PRECISION = "DRE_JAX_CUDA", "DRE_JAX_CUDA_PRECISION"
OLDEST = 80
"""Architecture of an A100: the first with products of TF32 and copies past the registers."""

_DRIVER = "libcuda.so.1"

_log = logging.getLogger(__name__)


class Decision(NamedTuple):
    """Use of the kernel, and the reason where it is not used."""

    limits: Limits | None
    """Limits of the device; None where XLA computes."""
    why_not: str | None


@functools.cache
def decision() -> Decision:
    """Decides once in a process. If the kernel cannot be launched, logs a warning, and XLA computes.

    Raises:
      DeviceError: if the check of the kernel has stopped the device, with which XLA cannot compute either.
    """
    if os.environ.get(VARIABLE, "1") == "0":
        return Decision(None, f"{VARIABLE}=0")
    if jax.default_backend() != "gpu":
        return Decision(None, f"it is for NVIDIA GPUs, and JAX computes on {jax.default_backend()}")
    try:
        limits = open_library(_DRIVER, "CUDA", [device.local_hardware_id for device in jax.local_devices()])
        if limits.architecture >= OLDEST:
            check_launch(limits)
    except Exception as error:
        detail = " ".join((getattr(error, "stderr", "") or str(error) or type(error).__name__).split())[:300]
        if not device_computes():
            raise DeviceError(
                f"a GPU must go on after the check of the CUDA kernel, but it has stopped: run again with {VARIABLE}=0 "
                f"({detail})"
            ) from error
        _log.warning("fine-tuning takes several times as long, since its CUDA kernel cannot be used: %s", detail)
        return Decision(None, detail)
    if limits.architecture < OLDEST:
        return Decision(None, f"it needs compute capability 8.0, and the device has {limits.architecture / 10:.1f}")
    return Decision(limits, None)


def device_computes() -> bool:
    """Returns whether XLA can compute: after a fault of any kernel, a process cannot use the GPU any longer."""
    try:
        with plain_settings():
            return bool((jnp.ones(2) + 1.0).sum() == 4.0)
    except jax.errors.JaxRuntimeError:
        return False


def precision() -> Precision:
    """Returns the precision of products: ``$DRE_JAX_CUDA_PRECISION``, "float32" by default; "tf32" is faster.

    Raises:
      ConfigError: for another value.
    """
    name = os.environ.get(PRECISION, "float32")
    one_of(PRECISION, name, get_args(Precision))
    return cast(Precision, name)


MOST_LISTS = 16
"""Maximum number of lists of a step that a block takes one after the other; XLA takes them side by side."""


def why_not(request: StepRequest) -> str | None:
    """Returns why the kernel does not take such steps, in a few words; None if it does.

    Supported is ListMLE in float32, with layers and columns of up to 64, lists of up to 512, and deep sets of the
    members' own, shared, or none.
    """
    model, limits = request.model, decision().limits
    if limits is None:
        return decision().why_not
    if (reason := request.why_no_backend(("listmle",))) is not None:
        return reason
    if model.context == "shared" and model.members > limits.multiprocessors:
        return "members that share a deep set must run side by side"
    if (reason := why_unsupported(model, sizes_of(request))) is not None:
        return reason
    plan = plan_for(model, sizes_of(request), limits, model.members)
    if plan is None:
        return "the weights do not fit in shared memory"
    if request.lists_per_step > MOST_LISTS * plan.group:
        return f"a step has more than {MOST_LISTS * plan.group} lists"
    return None


def steps_for(request: StepRequest) -> Callable[..., Any]:
    """Returns `take_steps` on this process's device, for steps that `why_not` accepts."""
    limits = decision().limits
    assert limits is not None
    return functools.partial(take_steps, request.model, limits, precision(), params_only=request.params_only)


def sizes_of(request: StepRequest) -> Sizes:
    """Returns the sizes that a plan needs."""
    return Sizes(request.columns, request.support, request.query, request.lists_per_step)
