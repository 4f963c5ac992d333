"""Measurements in processes of their own: memory, and search spaces side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from benchmarks.suite.rows import Timing
from dre_jax.hpob.evaluation import peak_memory


def side_by_side(work: Callable[..., Any], given: list[dict[str, Any]]) -> list[Any]:
    """Calls a function in a fresh process for each of the arguments, all at the same time; returns the results."""
    with ProcessPoolExecutor(len(given), get_context("spawn")) as pool:
        return [one.result() for one in [pool.submit(work, **arguments) for arguments in given]]


def peak_of(what: str, **given: Any) -> dict[str, int]:
    """Bytes at the most of a process that makes a `trial` or a `meta_step`, and those before any work."""
    return side_by_side(_peak_here, [{"what": what, **given}])[0]


def _peak_here(what: str, **given: Any) -> dict[str, int]:
    from benchmarks.suite import ours

    _get_ready()
    before = peak_memory()
    getattr(ours, what)(ours.default_model(), repeats=1, **given)
    return {"ours_bytes": peak_memory(), "idle_bytes": before}


def steps_on(*, core: list[int], columns: int, repeats: int) -> Timing:
    """A step of meta-training on some cores."""
    from benchmarks.suite import ours

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, core)
    _get_ready()
    return ours.meta_step(ours.default_model(), lists=1, columns=columns, repeats=repeats)


def _get_ready() -> None:
    """Makes devices as the commands have them."""
    import jax

    from dre_jax.runtime.setup import prepare

    prepare()
    jax.numpy.zeros(1).block_until_ready()


def shares(count: int) -> list[list[int]]:
    """The cores of each of so many processes."""
    from dre_jax.runtime.devices import cores

    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(cores()))
    share = max(1, len(available) // count)
    return [[available[(i * share + j) % len(available)] for j in range(share)] for i in range(count)]
