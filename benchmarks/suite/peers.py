"""Times of the PyTorch peers, each in processes of its own, so that every one has its own threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.suite.rows import Timing, at_epochs, timing
from benchmarks.suite.work import Work

_REPOSITORY = Path(__file__).resolve().parents[2]


class PeerError(RuntimeError):
    """A peer's process ended before its work was done."""


class Worker:
    """One process of `benchmarks.suite.peer_worker`."""

    def __init__(self, work: Work) -> None:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(work.threads),
            "MKL_NUM_THREADS": str(work.threads),
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": os.pathsep.join([str(_REPOSITORY), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        }
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (closed with the process)
        command = [sys.executable, "-m", "benchmarks.suite.peer_worker"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._errors, text=True, env=environment
        )
        self.say(json.dumps(asdict(work)))

    def say(self, line: str) -> None:
        """Sends a line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._failure() from error

    def hear(self) -> dict[str, Any]:
        """Waits for the answer.

        Raises:
          PeerError: where the process ended instead, with its last words.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failure()
        return json.loads(line)

    def _failure(self) -> PeerError:
        self._process.wait()
        self._errors.seek(0)
        words = self._errors.read().strip().splitlines()
        return PeerError(f"a peer's process ended with {self._process.returncode}: {words[-1] if words else 'no word'}")

    def close(self) -> None:
        """Ends the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


@dataclass
class Team:
    """Processes that do the same work at the same time."""

    workers: list[Worker]
    first_s: float
    note: str
    peak: int = 0

    def go(self, amount: int) -> float:
        """Seconds until the last is through with so many epochs or steps."""
        for worker in self.workers:
            worker.say(str(amount))
        answers = [worker.hear() for worker in self.workers]
        self.peak = max(self.peak, *(found["peak"] for found in answers))
        return max(found["seconds"] for found in answers)


@contextmanager
def team(work: Work, processes: int) -> Iterator[Team]:
    """Starts processes and waits until all are warm."""
    workers: list[Worker] = []
    try:
        # Into the list one by one: those that were started are ended if the next cannot be.
        for _ in range(processes):
            workers.append(Worker(work))
        ready = [worker.hear() for worker in workers]
        note = next((found["note"] for found in ready if found["note"]), "")
        yield Team(workers, max(found["first_s"] for found in ready), note)
    finally:
        for worker in workers:
            worker.close()


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
    mine = way.work(work)
    with team(mine, way.processes) as started:
        told = "; ".join(words for words in (mine.told(way.processes), started.note) if words)
        units = way.units(mine)
        if work.kind == "meta-train":
            found = timing([started.go(part) for _ in range(repeats)], part * units, note=told)
            return replace(found, compile_s=_compile_s(work, started)), started.peak
        base = timing([started.go(0) for _ in range(repeats)], units)
        found = timing([started.go(part) for _ in range(repeats)], units, note=told)
        found = replace(found, compile_s=_compile_s(work, started))
        return at_epochs(base, found, part, whole), started.peak


def _compile_s(work: Work, started: Team) -> float | None:
    return started.first_s if work.peer == "best" else None


def fastest(work: Work, ways: Sequence[Way], *, part: int, whole: int, repeats: int) -> tuple[Timing, Way, int]:
    """The best of several ways, and which it was."""
    found = []
    for way in ways:
        if way.split_members and work.members % way.processes:
            continue
        measured, peak = measure(work, way, part=part, whole=whole, repeats=repeats)
        found.append((measured, way, peak))
    return min(found, key=lambda one: one[0].median)
