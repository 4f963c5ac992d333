"""Times of the PyTorch peers, each in processes of its own, so that every one has its own threads."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from benchmarks.suite.peer_work import PeerWork, Way
from benchmarks.suite.rows import Timing, at_epochs, timing


def _set_threads(threads: int) -> None:
    """The first step of a process: PyTorch reads the number of threads when it is imported."""
    os.environ |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "JAX_PLATFORMS": "cpu"}


def _call_worker(name: str, argument: Any) -> Any:
    from benchmarks.suite import peer_worker

    return getattr(peer_worker, name)(argument)


@contextmanager
def team(work: PeerWork, processes: int) -> Iterator[Callable[[str, Any], list[Any]]]:
    """Yields a function that has all processes call a function of `peer_worker`: ``ready`` before ``go``.

    Raises:
      RuntimeError: if a process fails.
    """
    with ExitStack() as stack:
        pools = [ProcessPoolExecutor(1, get_context("spawn"), _set_threads, (work.threads,)) for _ in range(processes)]
        for pool in pools:
            stack.enter_context(pool)

        def call(name: str, argument: Any) -> list[Any]:
            futures = [pool.submit(_call_worker, name, argument) for pool in pools]
            try:
                return [future.result() for future in futures]
            except Exception as error:
                reason = f"it failed: {type(error).__name__}: {error}"
                raise RuntimeError(f"a peer's process must answer, but {reason}") from error

        yield call


def measure(work: PeerWork, way: Way, *, part: int, whole: int, repeats: int) -> Timing:
    """Measures a trial of ``whole`` epochs, or one step of meta-training.

    ``part`` epochs or steps are timed, ``repeats`` times.
    """
    units = way.units(work)
    with team(way.work(work), way.processes) as call:
        first_s, note = max(call("ready", way.work(work)))

        def go(amount: int) -> list[float]:
            """Returns the seconds until the last process is through."""
            return [max(call("go", amount)) for _ in range(repeats)]

        note = "; ".join(filter(None, (way.words(work), note)))
        compile_s = first_s if work.peer == "best" else None
        if work.kind == "meta-train":
            return replace(timing(go(part), part * units, note=note), compile_s=compile_s)
        none = timing(go(0), units)
        some = replace(timing(go(part), units, note=note), compile_s=compile_s)
        return at_epochs(none, some, part, whole)


def fastest(work: PeerWork, ways: Sequence[Way], *, part: int, whole: int, repeats: int) -> tuple[Timing, Way]:
    fit = [way for way in ways if not way.split_members or work.members % way.processes == 0]
    times = [(measure(work, way, part=part, whole=whole, repeats=repeats), way) for way in fit]
    return min(times, key=lambda pair: pair[0].median)
