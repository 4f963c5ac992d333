"""The work that a PyTorch peer is timed at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Peer = Literal["eager", "best"]


@dataclass(frozen=True, kw_only=True)
class PeerWork:
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
