"""Measurements in processes of their own: memory, and search spaces side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from benchmarks.suite.rows import Timing
from dre_jax.hpob.evaluation import peak_memory
from dre_jax.runtime.devices import cores


def side_by_side(function: Callable[..., Any], arguments: list[dict[str, Any]]) -> list[Any]:
    """Calls a function in a fresh process for each of the arguments, all at the same time; returns the results."""
    with ProcessPoolExecutor(len(arguments), get_context("spawn")) as pool:
        return [future.result() for future in [pool.submit(function, **each) for each in arguments]]


def peak_of(what: str, **arguments: Any) -> dict[str, int]:
    """Returns the peak bytes of a process that makes a `trial` or a `meta_step`, and those before any work."""
    return side_by_side(_own_peak, [{"what": what, **arguments}])[0]


def _own_peak(what: str, **arguments: Any) -> dict[str, int]:
    from benchmarks.suite import ours

    _start_devices()
    before = peak_memory()
    getattr(ours, what)(ours.default_model(), repeats=1, **arguments)
    return {"ours_bytes": peak_memory(), "idle_bytes": before}


def steps_of_spaces(count: int, *, columns: int, repeats: int) -> list[Timing]:
    """Returns a step of meta-training of each of so many processes at once, among which the cores are shared out."""
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(cores()))
    n = max(1, len(available) // count)
    shares = [[available[(i * n + j) % len(available)] for j in range(n)] for i in range(count)]
    return side_by_side(_steps_on, [{"core": core, "columns": columns, "repeats": repeats} for core in shares])


def _steps_on(*, core: list[int], columns: int, repeats: int) -> Timing:
    from benchmarks.suite import ours

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, core)
    _start_devices()
    return ours.meta_step(ours.default_model(), lists=1, columns=columns, repeats=repeats)


def _start_devices() -> None:
    """Makes devices as the commands have them."""
    import jax

    from dre_jax.runtime.setup import prepare

    prepare()
    jax.numpy.zeros(1).block_until_ready()
