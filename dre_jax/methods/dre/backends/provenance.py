"""What computed a result, for its metadata: two machines may round differently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from dre_jax import native
from dre_jax.methods.dre.backends import cuda


def backend(*, decide: bool = True) -> dict[str, str]:
    """Describes what computes training steps (the CUDA kernel, the C++ loops, or XLA), and the kind of device.

    Without ``decide``, it is XLA until something of this process has asked for a kernel, which takes seconds to build.
    """
    steps = "xla"
    if (decide or cuda.decision.cache_info().currsize) and cuda.decision().limits:
        steps = f"cuda {cuda.fingerprint()} {cuda.precision()}"
    elif (decide or native.decision.cache_info().currsize) and (digest := native.decision().fingerprint):
        steps = f"native {digest}"
    return {"steps": steps, "device": jax.devices()[0].device_kind}


def with_backend(backends: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the backends that computed a result so far, and this process's, unless it is among them.

    Example:
      >>> with_backend(with_backend([])) == [backend()]
      True
    """
    mine = backend()
    return [*backends, *([] if mine in backends else [mine])]
