"""How devices execute many runs: in turn on a CPU, whose caches hold one run, and side by side elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jax import Array, lax
from jaxtyping import Int

from dre_jax.runtime.devices import all_devices


@dataclass(frozen=True)
class ExecutionConfig:
    """How many runs are executed on devices."""

    devices: int | None = None
    """Devices of the mesh; by default all that are in use, including those of other processes."""
    side_by_side: bool | None = None
    """A device works on all its runs side by side, or else on one after the other; by default one after the other
    on a CPU, whose caches hold one run, and side by side elsewhere."""


def runs_side_by_side(config: ExecutionConfig) -> bool:
    """Returns whether a device works on its runs side by side; the default is no on a CPU and yes elsewhere."""
    on_cpu = all_devices()[0].platform == "cpu"
    return not on_cpu if config.side_by_side is None else config.side_by_side


def map_in_turn(f: Callable[..., Any], count: Int[Array, ""], results: Any, *args: Any) -> Any:
    """Returns ``results`` with the first ``count`` entries replaced by ``f`` of the arguments' entries; compiled.

    Trees have the entries in front, and are taken one after the other. The count is not known when the loop is
    compiled. The loop is therefore the same program for any number of devices, which all round and pick alike.
    """

    def body(i: Array, results: Any) -> Any:
        entry = f(*jax.tree.map(lambda a: a[i], args))
        return jax.tree.map(lambda a, new: a.at[i].set(new), results, entry)

    return lax.fori_loop(0, count, body, results)
