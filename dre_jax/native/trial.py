"""The decision to use the C++, made once a process: it is built, and its results of two calls are checked."""

import functools
import logging
import os
from typing import Any, NamedTuple

import jax
import numpy as np

from dre_jax.native.build import register
from dre_jax.native.ops import Lists, draw_without_replacement, train_steps

VARIABLE = "DRE_JAX_NATIVE"

_log = logging.getLogger(__name__)


def available() -> bool:
    """Returns whether this process computes on a CPU and has the C++ loops. Never raises."""
    return decision().fingerprint is not None


class Decision(NamedTuple):
    """Use of the C++ loops, and the reason where they are not used."""

    fingerprint: str | None
    """Digest of the library; None where XLA computes."""
    why_not: str | None
    """Why XLA computes, in one line; None where the C++ is used."""


@functools.cache
def decision() -> Decision:
    """Decides once a process. Never raises.

    If building or trying the library fails in any way, one warning is logged, and XLA's loops are used.
    """
    if os.environ.get(VARIABLE, "1") == "0":
        return Decision(None, f"{VARIABLE}=0")
    if jax.default_backend() != "cpu":
        return Decision(None, f"they are for CPUs, and JAX computes on {jax.default_backend()}")
    try:
        digest = register()
        _try()
    except Exception as error:
        message = getattr(error, "stderr", "") or str(error) or type(error).__name__
        detail = " ".join(message.split())[:300]
        _log.warning("training is about half as fast, since its C++ loops cannot be used: %s", detail)
        return Decision(None, detail)
    return Decision(digest, None)


def _try() -> None:
    """Raises an error unless both calls return the expected results."""
    with jax.ensure_compile_time_eval():  # a caller may be tracing
        rows = draw_without_replacement(_array([1, 1, 2], np.int32), _array([1, 2, 3], np.int32), _array(3, np.int32))
        mean, loss = _one_step()
    if rows.tolist() != [1, 2, 3]:
        raise ValueError(f"the trial of the C++ must draw [1, 2, 3], but drew {rows.tolist()}")
    if not np.allclose((mean, loss), (_MEAN, _LOSS), rtol=1e-5):
        raise ValueError(f"the trial of the C++ must give {_MEAN} and {_LOSS}, but gave {mean} and {loss}")


# The score 2 x + 1 of x = 1 and x = 3 misses the responses 1 and 4 by 2 and 3: the mean square is 13 / 2, and its
# derivative by the 2 is 2 * 1 + 3 * 3 = 11, and the first moment is a tenth of it.
_MEAN, _LOSS = 1.1, 6.5


def _one_step() -> tuple[float, float]:
    """Returns the first moment of the last kernel, and the loss, of one scorer without a deep set on two rows."""
    scorers = _array([[[1.0, 0.0, 2.0, 1.0]], [[0.0] * 4], [[0.0] * 4]])
    nothing, rows, where = _array([[[[0]]]], np.int32), _array([[[[0, 1]]]], np.int32), _array([[[[True, True]]]], bool)
    response, weight = _array([[[[1.0, 4.0]]]]), _array([[[[1.0, 1.0]]]])
    lists = Lists(nothing, nothing > 0, _array([[[[0.0]]]]), rows, response, where, weight, rows, rows)
    scorers, _, losses = train_steps(
        scorers,
        _array(np.zeros((3, 1, 0))),
        _array([[1.0], [3.0]]),
        lists,
        _array([1.0]),
        _array([1.0]),
        hidden=(1,),
        phi=(),
        rho=(),
        loss="mean_squared_error",
        wants_losses=True,
    )
    return float(scorers[1, 0, 2]), float(losses[0, 0])


def _array(values: Any, dtype: type = np.float32) -> Any:
    return np.array(values, dtype)
