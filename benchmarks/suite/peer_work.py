"""The work that the PyTorch peers are timed at, and how they use the cores."""

from dataclasses import dataclass, replace
from typing import Literal

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
