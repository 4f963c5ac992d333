"""What a peer is asked to do, in words that can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Work:
    """A trial of some runs, or steps of meta-training."""

    peer: Literal["eager", "best"]
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
    """The model and decisions: the library's, or those of the published code."""
    device: str = "cpu"

    def told(self, processes: int) -> str:
        """How it was done, for a note."""
        way = "compiled" if self.compiled else "not compiled"
        each = f"{processes} processes of" if processes > 1 else "one process of"
        runs = f", {self.runs} runs stacked" if self.peer == "best" and self.runs > 1 else ""
        return f"{way + ', ' if self.peer == 'best' else ''}{each} {self.threads} threads{runs}"
