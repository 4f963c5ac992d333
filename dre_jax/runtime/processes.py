"""Several processes of `jax.distributed`: the one that writes, shares of work, and broadcasts.

With one process every function here is trivial. All processes must call `from_first`, `broadcast_from_first` and
`gather`, which exchange data, in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding

from dre_jax import errors

T = TypeVar("T")


def count() -> int:
    """Returns the number of processes."""
    return jax.process_count()


def is_first() -> bool:
    """Returns whether this is the process that writes results and prints."""
    return jax.process_index() == 0


def share(names: Sequence[str]) -> list[str]:
    """Returns this process's share of independent items.

    Example:
      >>> share(["svm", "ranger"])
      ['svm', 'ranger']
    """
    return list(names[jax.process_index() :: count()])


def from_first(f: Callable[[], Any]) -> Any:
    """Calls ``f`` in the first process, and returns its result, which JSON must hold, in all processes.

    Raises the `DreError` of ``f`` in all processes.

    Example:
      >>> from_first(lambda: {"runs": 3})
      {'runs': 3}
    """
    if count() == 1:
        return f()
    outcome: dict[str, Any] = {}
    if is_first():
        try:
            outcome = {"value": f()}
        except errors.DreError as error:
            outcome = {"error": type(error).__name__, "message": str(error)}
    text = np.frombuffer(json.dumps(outcome).encode(), np.uint8)
    length = int(broadcast_from_first(np.array(text.size, np.int32)))
    first_outcome = json.loads(broadcast_from_first(np.resize(text, length)).tobytes())
    if "error" in first_outcome:
        kind = getattr(errors, first_outcome["error"])
        raise (errors.DreError if kind is errors.MissingExtraError else kind)(first_outcome["message"])
    return first_outcome["value"]


def broadcast_from_first(tree: T) -> T:
    """Returns the arrays of the first process in all processes; the shapes must be equal."""
    return tree if count() == 1 or not jax.tree.leaves(tree) else multihost_utils.broadcast_one_to_all(tree)


def spread(tree: T, shardings: Any) -> T:
    """Puts arrays, which every process holds as a whole, on the devices of all processes, in one transfer.

    The tree of shardings may end before that of the arrays does.
    """
    if count() == 1:
        return jax.device_put(tree, shardings)
    # `jax.device_put` would let all processes compare their arrays one by one.

    def put(sharding: NamedSharding, part: Any) -> Any:
        host = jax.tree.map(np.asarray, part)
        return jax.tree.map(lambda a: jax.make_array_from_callback(a.shape, sharding, lambda i: a[i]), host)

    result: T = jax.tree.map(put, shardings, tree)
    return result


def gather(array: Array) -> np.ndarray:
    """Returns an array on the devices of all processes as one NumPy array."""
    if array.is_fully_addressable:
        return np.asarray(array)
    # Some devices end long before others, and an exchange that has begun does not wait forever.
    jax.block_until_ready(array)
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))
