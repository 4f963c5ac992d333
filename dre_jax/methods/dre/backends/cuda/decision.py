"""Whether this process launches the kernel, and which training steps it takes."""

import functools
import logging
import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple, cast, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.checks import one_of
from dre_jax.losses import RankedList
from dre_jax.methods.dre.backends.cuda.library import open_library
from dre_jax.methods.dre.backends.cuda.plan import Limits, Precision, Sizes, plan_for, why_unsupported
from dre_jax.methods.dre.backends.cuda.steps import take_steps
from dre_jax.methods.dre.backends.request import StepRequest
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.dre.lists import SampledLists
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.optim.adam import Moments, StepSizes

VARIABLE, PRECISION = "DRE_JAX_CUDA", "DRE_JAX_CUDA_PRECISION"
OLDEST = 80
"""Architecture of an A100: the first with products of TF32 and copies past the registers."""

_DRIVER = "libcuda.so.1"

_log = logging.getLogger(__name__)


class Decision(NamedTuple):
    """Use of the kernel, and the reason where it is not used."""

    limits: Limits | None
    """What the device has; None where XLA computes."""
    why_not: str | None


@functools.cache
def decision() -> Decision:
    """Decides once a process. Never raises: if the kernel cannot be launched, a warning is logged, and XLA computes."""
    if os.environ.get(VARIABLE, "1") == "0":
        return Decision(None, f"{VARIABLE}=0")
    if jax.default_backend() != "gpu":
        return Decision(None, f"it is for NVIDIA GPUs, and JAX computes on {jax.default_backend()}")
    try:
        limits = open_library(_DRIVER, "CUDA")
        if limits.architecture >= OLDEST:
            check_launch(limits)
    except Exception as error:
        detail = " ".join((getattr(error, "stderr", "") or str(error) or type(error).__name__).split())[:300]
        _log.warning("fine-tuning takes several times as long, since its CUDA kernel cannot be used: %s", detail)
        return Decision(None, detail)
    if limits.architecture < OLDEST:
        return Decision(None, f"it needs compute capability 8.0, and the device has {limits.architecture / 10:.1f}")
    return Decision(limits, None)


def precision() -> Precision:
    """Returns the precision of products: ``$DRE_JAX_CUDA_PRECISION``, "float32" by default; "tf32" is faster.

    Raises:
      ConfigError: for another value.
    """
    name = os.environ.get(PRECISION, "float32")
    one_of(PRECISION, name, get_args(Precision))
    return cast(Precision, name)


MOST_LISTS = 16
"""Lists of a step that a block takes one after the other, where XLA takes them side by side."""


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
    """Returns `take_steps` on this process's device, for what `why_not` accepts."""
    limits = decision().limits
    assert limits is not None
    return functools.partial(take_steps, request.model, limits, precision(), params_only=request.params_only)


def sizes_of(request: StepRequest) -> Sizes:
    """Returns the sizes that a plan needs."""
    return Sizes(request.columns, request.support, request.query, request.lists_per_step)


# A scorer of one unit, w x + b = x, gives x = 1 and 3 the scores 2 x + 1 = 3 and 7. If the first is the best, ListMLE
# is log(e^3 + e^7) - 3; the derivatives by the scores are p - 1 and 1 - p for p = e^3 / (e^3 + e^7), so that the one by
# the last kernel is (p - 1) 1 + (1 - p) 3. The first moment is a tenth of it.
_LOSS = math.log(math.exp(3.0) + math.exp(7.0)) - 3.0
_MOMENT = 0.1 * 2.0 * (1.0 - 1.0 / (1.0 + math.exp(4.0)))


def check_launch(limits: Limits) -> None:
    """Raises an error unless a launch of the kernel returns known numbers."""
    with jax.ensure_compile_time_eval():  # a caller may be tracing
        moment, loss = _one_step(limits)
    if not np.allclose((moment, loss), (_MOMENT, _LOSS), rtol=1e-4):
        raise ValueError(f"the trial of the CUDA kernel must give {_MOMENT} and {_LOSS}, but gave {moment} and {loss}")


def _one_step(limits: Limits) -> tuple[float, float]:
    """Returns the first moment of the last kernel, and the loss, of one scorer without a deep set on two rows."""

    def array(values: Any, dtype: type = np.float32) -> Array:
        return jnp.asarray(np.array(values, dtype))

    def scorer(kernel: float, out: float, bias: float) -> EnsembleParams:
        hidden = {"hidden_0_kernel": array([[[kernel]]]), "hidden_0_bias": array([[0.0]])}
        return EnsembleParams({**hidden, "out_kernel": array([[[out]]]), "out_bias": array([[bias]])}, None)

    items, both = array([[[[0, 1]]]], np.int32), array([[[[True, True]]]], bool)
    ranked = RankedList(array([[[[1.0, 0.0]]]]), both, array([[[[1.0, 1.0]]]]), items, items)
    lists = SampledLists(items[..., :1], both[..., :1], items, ranked)
    zero = scorer(0.0, 0.0, 0.0)
    (_, moments), losses = take_steps(
        ModelConfig(members=1, hidden=(1,), context="none"),
        limits,
        "float32",
        array([[1.0], [3.0]]),
        array([1.0, 0.0]),
        (scorer(1.0, 2.0, 1.0), Moments(zero, zero)),
        lists,
        StepSizes(array([0.0]), array([1.0])),
        params_only=False,
    )
    return float(moments.first.scorers["out_kernel"][0, 0, 0]), float(losses[0, 0])
