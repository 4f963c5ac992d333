"""Input of a method: the history of trials, and the candidates; predictions of candidates."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from dre_jax.data.tasks import tie_levels, unit_scale
from dre_jax.errors import DataError
from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.runtime.jit import jit_eager_calls

FIRST_BUCKET = 16
"""Slots of the shortest padded history."""


class History(NamedTuple):
    """The trials so far, in C slots, some of which are filled.

    Example:
      >>> history = make_history(np.array([[0.1], [0.7]]), np.array([0.5, 0.9]))
      >>> history.response.tolist(), history.with_response(jnp.array([-1.0, 1.0])).response.tolist()
      ([0.0, 1.0], [-1.0, 1.0])
    """

    x: Float[Array, "C D"]
    """Configurations."""
    response: Float[Array, " C"]
    """Higher is better, on the history's own scale: 1 for its best trial, 0 for its worst, 0.5 where all are equal. The
    range of the whole table would reveal the distance to the optimum. `with_response` has them on another scale."""
    level: Int[Array, " C"]
    """Smaller is better, equal exactly where responses are tied (float32 may have merged them)."""
    where: Bool[Array, " C"]
    """Which slots are filled."""
    noise_var: Float[Array, " C"] | None = None
    """Variances of the responses' known errors, on the scale of the responses. None without known errors, and for all
    methods that are not `heteroscedastic`."""

    comparable: Bool[Array, " C"] | None = None
    """Trials that the next one is to improve on; None for all. Methods learn from the others too."""

    @property
    def incumbents(self) -> Bool[Array, " C"]:
        """The slots of which the best response is the incumbent."""
        return self.where if self.comparable is None else self.where & self.comparable

    def with_response(self, response: Float[Array, " C"], noise_var: Float[Array, " C"] | None = None) -> "History":
        """Returns the same trials with responses, and known error variances, on the scale of a model."""
        return self._replace(response=response, noise_var=noise_var)


class Candidates(NamedTuple):
    """The configurations to choose from, N slots."""

    x: Float[Array, "N D"]
    """Configurations."""
    where: Bool[Array, " N"]
    """Which may be evaluated next."""


class Components(NamedTuple):
    """Predictions of N candidates by a mixture of K Gaussians."""

    log_weight: Float[Array, " K"]
    """Logarithms of weights that sum to one."""
    mean: Float[Array, "N K"]
    """Means of the Gaussians."""
    deviation: Float[Array, "N K"]
    """Standard deviations of the Gaussians."""


@jit_eager_calls()
def sort_history(history: History) -> History:
    """Returns the history sorted by level, best trial first, empty slots last; the sort is stable."""
    last = jnp.iinfo(jnp.int32).max
    order = jnp.argsort(jnp.where(history.where, history.level, last), stable=True)
    return jax.tree.map(lambda field: field[order], history)


def make_history(
    x: np.ndarray, y: np.ndarray, capacity: int | None = None, dtype: type[np.floating[Any]] = np.float32
) -> History:
    """Returns a history of plain arrays, padded to a capacity.

    Args:
      x: [n, D] in [0, 1].
      y: [n] or [n, 1], higher is better.
      capacity: C, at least n; n by default.
      dtype: of the configurations and the responses.

    Raises:
      DataError: for other shapes, values that are not finite, or a capacity below n.

    Example:
      >>> make_history(np.array([[0.1], [0.7]]), np.array([0.5, 0.9]), capacity=3).where.tolist()
      [True, True, False]
    """
    x = np.asarray(x, dtype)
    y = np.asarray(y, np.float64)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise DataError(f"a history needs x of shape (n, D) and y of shape (n,), but got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("a history must hold finite numbers, but got NaN or infinity")
    n = len(y)
    capacity = n if capacity is None else capacity
    if capacity < n:
        raise DataError(f"capacity >= n must hold, but got capacity={capacity} for n={n} trials")
    empty = capacity - n
    columns = {
        "x": np.pad(x, ((0, empty), (0, 0))),
        "response": np.pad(unit_scale(y) if n else y, (0, empty)).astype(dtype),
        "level": np.pad(tie_levels(y), (0, empty)),
        "where": np.arange(capacity) < n,
    }
    return History(**jax.device_put(columns))


def min_max_scale(
    response: Float[AnyArray, " C"],
    residual: Float[AnyArray, " C"] | None,
    level: Int[AnyArray, " C"],
    where: Bool[AnyArray, " C"],
) -> Float[AnyArray, " C"]:
    """Returns responses of any scale on the scale of the history; see `History.response`.

    The residual is the part of the responses that float32 rounds off. Beside a far outlier, it alone distinguishes the
    others.
    """
    xp = namespace(response)
    worst = xp.argmax(xp.where(where, level, -1))
    best = xp.argmin(xp.where(where, level, np.iinfo(np.int32).max))
    above = response - response[worst]
    if residual is not None:
        above = above + (residual - residual[worst])
    spread = above[best]
    has_spread = where & (spread > 0)
    return xp.where(has_spread, above / xp.where(spread > 0, spread, 1.0), xp.where(where, 0.5, 0.0))


def capacity_for(n: int) -> int:
    """Returns the capacity of the padded history of n trials: 16, 32, 64 and so on."""
    capacity = FIRST_BUCKET
    while capacity < n:
        capacity *= 2
    return capacity


def coarse_capacity_for(n: int) -> int:
    """Returns the capacity of n trials where few sizes matter more than their cost: 64, 256, 1024 and so on."""
    return 4 ** max(3, -(-(max(n, 1) - 1).bit_length() // 2))
