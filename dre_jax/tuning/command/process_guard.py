"""Ends the commands of a process that was killed and could not end them itself."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL."""
# A line lists all process groups, each with a minus. The input ends once no process is left that could write to it.
_SCRIPT = """
trap '' HUP INT TERM
groups=
while read -r line; do groups=$line; done
[ -n "$groups" ] || exit 0
kill -s TERM -- $groups
sleep "$0"
kill -s KILL -- $groups
"""


class ProcessGroupGuard:
    """A shell process that ends process groups once this process is gone.

    A context manager: a normal exit ends no group. Without a shell there is no guard.
    """

    def __init__(self, grace: float = GRACE) -> None:
        """Starts the guard in its own session, so that signals to this process' group or terminal do not end it."""
        self._line = ""
        self._process: subprocess.Popen[str] | None = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                ["sh", "-c", _SCRIPT, str(grace)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                text=True,
            )

    def set_groups(self, groups: Iterable[int]) -> None:
        """Replaces the process groups that the guard ends."""
        line = " ".join(f"-{group}" for group in groups)
        if self._process is None or self._process.stdin is None or line == self._line:
            return
        self._line = line
        with contextlib.suppress(OSError):  # the guard is gone
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def __enter__(self) -> ProcessGroupGuard:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
