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


class PeerError(RuntimeError):
    """A peer's process ended before its work was done."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A trial of some runs, or steps of meta-training."""

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

    def work(self, work: Work) -> Work:
        """The work of one process."""
        members = work.members // self.processes if self.split_members else work.members
        return replace(work, threads=self.threads, compiled=self.compiled, runs=self.runs, members=members)

    def units(self, work: Work) -> int:
        """Pieces of the work that are done at once."""
        return 1 if self.split_members else self.processes * (self.runs if work.kind == "trial" else 1)

    def told(self, work: Work) -> str:
        how = ("compiled, " if self.compiled else "not compiled, ") if work.peer == "best" else ""
        each = f"{self.processes} processes of" if self.processes > 1 else "one process of"
        runs = f", {self.runs} runs stacked" if work.peer == "best" and self.runs > 1 else ""
        return f"{how}{each} {self.threads} threads{runs}"


def _begin(threads: int) -> None:
    """The first step of a process: PyTorch reads the number of threads when it is imported."""
    os.environ |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "JAX_PLATFORMS": "cpu"}


def _in_worker(name: str, given: Any) -> Any:
    from benchmarks.suite import peer_worker

    return getattr(peer_worker, name)(given)


Ask = Callable[[str, Any], list[Any]]
"""Has all processes call a function of `benchmarks.suite.peer_worker` at the same time."""


@contextmanager
def team(work: Work, processes: int) -> Iterator[Ask]:
    """Processes that do the same work, each a ``ready`` before a ``go``. Where one fails `PeerError` is raised."""
    with ExitStack() as stack:
        pools = [
            stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"), _begin, (work.threads,)))
            for _ in range(processes)
        ]

        def ask(name: str, given: Any) -> list[Any]:
            asked = [pool.submit(_in_worker, name, given) for pool in pools]
            try:
                return [one.result() for one in asked]
            except Exception as error:
                given = f"it failed: {type(error).__name__}: {error}"
                raise PeerError(f"a peer's process must answer, but {given}") from error

        yield ask


def measure(work: Work, way: Way, *, part: int, whole: int, repeats: int) -> tuple[Timing, int]:
    """A trial of ``whole`` epochs, or one step of meta-training; and the most memory of a process.

    ``part`` epochs or steps are timed, ``repeats`` times.
    """
    units = way.units(work)
    with team(way.work(work), way.processes) as ask:
        first_s, note = max(ask("ready", way.work(work)))
        peak = 0

        def go(amount: int) -> list[float]:
            """Seconds until the last process is through."""
            nonlocal peak
            told = [ask("go", amount) for _ in range(repeats)]
            peak = max(bytes_ for one in told for _, bytes_ in one)
            return [max(seconds for seconds, _ in one) for one in told]

        note = "; ".join(words for words in (way.told(work), note) if words)
        compile_s = first_s if work.peer == "best" else None
        if work.kind == "meta-train":
            return replace(timing(go(part), part * units, note=note), compile_s=compile_s), peak
        base = timing(go(0), units)
        found = replace(timing(go(part), units, note=note), compile_s=compile_s)
        return at_epochs(base, found, part, whole), peak


def fastest(work: Work, ways: Sequence[Way], *, part: int, whole: int, repeats: int) -> tuple[Timing, Way]:
    fit = [way for way in ways if not way.split_members or work.members % way.processes == 0]
    found = [(measure(work, way, part=part, whole=whole, repeats=repeats)[0], way) for way in fit]
    return min(found, key=lambda one: one[0].median)
