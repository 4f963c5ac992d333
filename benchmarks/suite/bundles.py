"""Cycles of a kernel on a TPU: those of the schedule that its compiler made, waiting for products included."""

from __future__ import annotations

import re
from pathlib import Path

_CYCLE = re.compile(r"^\d+( \d+){9}$")


def arguments(folder: Path) -> str:
    """Value of ``LIBTPU_INIT_ARGS``, set before the compiler is loaded, that has its schedules written there."""
    wanted = f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
    return f"{wanted} --xla_jf_dump_llo_pass_label_regex=.*pre-delay.*"


def cycles(schedule: str) -> int:
    """Cycles of a kernel whose loops take one turn, from a table of what each cycle keeps busy.

    Example:
      >>> cycles("== UTILIZATION:\\n0 0 1 0 0 0 0 0 0 0\\n0 0 0 0 0 0 0 0 0 2\\n")
      2
    """
    found = [line for line in schedule.splitlines() if _CYCLE.match(line.strip())]
    return len(found)


def take(folder: Path, kernel: str) -> int:
    """Of the longest kernel of that name that was compiled, 0 if there is none; what was written is removed."""
    paths = [path for path in folder.glob("*utilization.txt") if kernel in path.name]
    found = max((cycles(path.read_text()) for path in paths), default=0)
    for path in folder.iterdir():
        path.unlink()
    return found
