"""Times of the PyTorch peers, each in processes of its own, so that every one has its own threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, Literal

from benchmarks.suite.rows import Timing, at_epochs, timing

Peer = Literal["eager", "best"]


@dataclass(frozen=True, kw_only=True)
class PeerWork:
    """The work that a peer is timed at: a trial of some runs, or steps of meta-training."""

    peer: Peer
    kind: Literal["trial", "meta-train"]
    columns: int = 16
    members: int = 10
    history: int = 105
    candidates: int = 300
    lists: int = 1
    runs: int = 1
    """Side by side in one process; the eager peer does them in turn."""
    threads: int = 1
    compiled: bool = False
    preset: Literal["default", "paper"] = "default"
    """The library's structure, or the published one: one deep set for all members, and the same lists."""
    device: str = "cpu"


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a peer uses the cores."""

    processes: int
    threads: int
    compiled: bool = False
    runs: int = 1
    split_members: bool = False
    """Each process has a share of the members, instead of work of its own."""

    def work(self, work: PeerWork) -> PeerWork:
        """Returns the work of one process."""
        members = work.members // self.processes if self.split_members else work.members
        return replace(work, threads=self.threads, compiled=self.compiled, runs=self.runs, members=members)

    def units(self, work: PeerWork) -> int:
        """Returns the pieces of the work that are done at once."""
        return 1 if self.split_members else self.processes * (self.runs if work.kind == "trial" else 1)

    def words(self, work: PeerWork) -> str:
        compile_text = ("compiled, " if self.compiled else "not compiled, ") if work.peer == "best" else ""
        each = f"{self.processes} processes of" if self.processes > 1 else "one process of"
        runs = f", {self.runs} runs stacked" if work.peer == "best" and self.runs > 1 else ""
        return f"{compile_text}{each} {self.threads} threads{runs}"


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
