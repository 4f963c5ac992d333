"""The backend that computed a result, for its metadata: two machines may round differently."""

from collections.abc import Sequence
from typing import Any

import jax

from dre_jax.methods.dre.backends import BACKENDS


def backend(*, decide: bool = True) -> dict[str, str]:
    """Describes the backend of training steps, the first of `BACKENDS` with a label or XLA, and the kind of device.

    Without ``decide``, it is XLA until this process has asked for a kernel, which takes seconds to build.
    """
    labels = (candidate.label(decide) for candidate in BACKENDS)
    return {"steps": next(filter(None, labels), "xla"), "device": jax.devices()[0].device_kind}


def with_backend(backends: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the backends that computed a result so far, and this process's, unless it is among them.

    Example:
      >>> with_backend(with_backend([])) == [backend()]
      True
    """
    current = backend()
    return [*backends, *([] if current in backends else [current])]
