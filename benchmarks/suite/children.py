"""What has to be measured in a process of its own: memory, and search spaces side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.suite.rows import Timing


def peak_bytes() -> int:
    """Bytes of main memory that this process had at the most, since it began to run this program."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not `getrusage`: on Linux that begins with what the parent had when it started this process.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    from dre_jax.benchmark.evaluation import peak_memory

    return peak_memory()


def side_by_side(work: Callable[..., Any], given: list[dict[str, Any]]) -> list[Any]:
    """What a function returns, called once in a fresh process for each of the arguments, all at the same time."""
    with ProcessPoolExecutor(len(given), get_context("spawn")) as pool:
        return [one.result() for one in [pool.submit(work, **arguments) for arguments in given]]


def peak_of(what: str, **given: Any) -> tuple[int, int]:
    """Bytes at the most of a process that makes a `trial` or a `meta_step`, and those before any work."""
    from benchmarks.suite import ours

    before = _ready()
    getattr(ours, what)(ours.default_model(), repeats=1, **given)
    return peak_bytes(), before


def steps_on(*, core: list[int], columns: int, repeats: int) -> Timing:
    """A step of meta-training on some cores."""
    from benchmarks.suite import ours

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, core)
    _ready()
    return ours.meta_step(ours.default_model(), lists=1, columns=columns, repeats=repeats)


def _ready() -> int:
    """Devices as the commands have them; memory before any work."""
    import jax

    from dre_jax.cli.runtime import prepare

    prepare()
    jax.numpy.zeros(1).block_until_ready()
    return peak_bytes()


def shares(count: int, cores: int) -> list[list[int]]:
    """The cores of each of so many processes.

    Example:
      >>> [len(share) for share in shares(2, 2)]
      [1, 1]
    """
    share = max(1, cores // count)
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(cores))
    return [[available[(i * share + j) % len(available)] for j in range(share)] for i in range(count)]
