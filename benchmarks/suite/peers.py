"""Times of the PyTorch peers, each in processes of its own, so that every one has its own threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Literal, NamedTuple, Self

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
    """Whether each process has a share of the members, instead of work of its own."""

    def work(self, work: Work) -> Work:
        """The work of one process."""
        members = work.members // self.processes if self.split_members else work.members
        return replace(work, threads=self.threads, compiled=self.compiled, runs=self.runs, members=members)

    def units(self, work: Work) -> int:
        """Pieces of the work that are done at once."""
        return 1 if self.split_members else self.processes * (self.runs if work.kind == "trial" else 1)

    def told(self, work: Work) -> str:
        """How it was done, for a note."""
        how = ("compiled, " if self.compiled else "not compiled, ") if work.peer == "best" else ""
        each = f"{self.processes} processes of" if self.processes > 1 else "one process of"
        runs = f", {self.runs} runs stacked" if work.peer == "best" and self.runs > 1 else ""
        return f"{how}{each} {self.threads} threads{runs}"


class Said(NamedTuple):
    """What a process tells: when it is warm, and after every amount of work."""

    seconds: float
    peak: int = 0
    """Bytes of memory at the most."""
    note: str = ""
    error: str = ""


def serve(connection: Connection, work: Work) -> None:
    """What a process does: makes the work ready, then does as much of it as it is told."""
    os.environ |= {"OMP_NUM_THREADS": str(work.threads), "MKL_NUM_THREADS": str(work.threads), "JAX_PLATFORMS": "cpu"}
    from benchmarks.suite.peer_worker import answers  # PyTorch reads the number of threads when it is imported

    with contextlib.suppress(EOFError, BrokenPipeError):  # nobody asks any more
        try:
            for said in answers(work, iter(connection.recv, None)):
                connection.send(said)
        except (RuntimeError, TypeError, ValueError, MemoryError) as error:
            connection.send(Said(0.0, error=f"{type(error).__name__}: {error}"))


class Team:
    """Processes that do the same work at the same time."""

    def __init__(self, work: Work, processes: int) -> None:
        context = get_context("spawn")
        self._ends: list[Connection] = []
        self._processes = []
        for _ in range(processes):
            mine, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, work))
            process.start()
            theirs.close()
            self._ends.append(mine)
            self._processes.append(process)
        self.first_s, self.note, self.peak = 0.0, "", 0

    def __enter__(self) -> Self:
        try:
            ready = self._hear()  # which each says when it is warm
        except PeerError:
            self.close()
            raise
        self.first_s = max(said.seconds for said in ready)
        self.note = next((said.note for said in ready if said.note), "")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def go(self, amount: int) -> float:
        """Seconds until the last is through with so many epochs or steps."""
        for end in self._ends:
            end.send(amount)
        said = self._hear()
        self.peak = max(self.peak, *(one.peak for one in said))
        return max(one.seconds for one in said)

    def _hear(self) -> list[Said]:
        try:
            found: list[Said] = [end.recv() for end in self._ends]
        except EOFError as error:
            raise PeerError("a peer's process must answer, but it ended") from error
        failed = [said.error for said in found if said.error]
        if failed:
            raise PeerError(f"a peer's process must answer, but it failed: {failed[0]}")
        return found

    def close(self) -> None:
        """Ends the processes."""
        for end in self._ends:
            end.close()
        for process in self._processes:
            process.terminate()
            process.join()


def measure(work: Work, way: Way, *, part: int, whole: int, repeats: int) -> tuple[Timing, int]:
    """A trial of ``whole`` epochs, or one step of meta-training; and the most memory of a process.

    Args:
      work: what is done.
      way: how the cores are used.
      part: epochs or steps that are timed.
      whole: epochs of a trial.
      repeats: how often.

    Raises:
      PeerError: where a process dies.
    """
    mine, units = way.work(work), way.units(work)
    with Team(mine, way.processes) as started:
        told = "; ".join(words for words in (way.told(work), started.note) if words)
        compile_s = started.first_s if work.peer == "best" else None
        if work.kind == "meta-train":
            found = timing([started.go(part) for _ in range(repeats)], part * units, note=told)
            return replace(found, compile_s=compile_s), started.peak
        base = timing([started.go(0) for _ in range(repeats)], units)
        found = timing([started.go(part) for _ in range(repeats)], units, note=told)
        return at_epochs(base, replace(found, compile_s=compile_s), part, whole), started.peak


def fastest(work: Work, ways: Sequence[Way], *, part: int, whole: int, repeats: int) -> tuple[Timing, Way]:
    """The best of several ways, and which it was."""
    fit = [way for way in ways if not way.split_members or work.members % way.processes == 0]
    found = [(measure(work, way, part=part, whole=whole, repeats=repeats)[0], way) for way in fit]
    return min(found, key=lambda one: one[0].median)
