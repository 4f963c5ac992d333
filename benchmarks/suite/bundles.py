"""What a kernel's inner loop takes on a TPU: the instructions that its compiler packed into one cycle each, counted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

_BUNDLE = re.compile(r"^\s*0x[0-9a-f]+\s+(?:[A-Z]+)?\s*:\s*(>*)\s*\{", re.MULTILINE)


def arguments(folder: Path) -> str:
    """What ``LIBTPU_INIT_ARGS`` has to say, before the compiler is loaded, to have its schedules written there."""
    wanted = f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
    return f"{wanted} --xla_jf_dump_llo_pass_label_regex=.*final_bundles.*"


def of_inner_loop(schedule: str) -> int:
    """Bundles of the innermost loop: a bundle a cycle, where nothing is waited for.

    Example:
      >>> of_inner_loop("  0x1   : { a }\\n  0x2 LB: > { b }\\n  0x3 LB: >> { c ;;  d }\\n  0x4   : >> { e }\\n")
      2
    """
    depths = Counter(len(marks) for marks in _BUNDLE.findall(schedule))
    return depths[max(depths)] if depths else 0


def take(folder: Path, kernel: str) -> int:
    """Of the kernel that was compiled last, 0 if there is none; what was written is removed."""
    found = 0
    for path in sorted(folder.glob("*final_bundles.txt")):
        if kernel in path.name:
            found = max(found, of_inner_loop(path.read_text()))
    for path in folder.iterdir():
        path.unlink()
    return found
