"""Ends commands whose starter was killed and could not end them itself."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable

GRACE = 3.0
"""Seconds from the request to end until a process is ended."""
# A line is all groups, each with a minus. The lines end when nobody is left who could write one.
_SCRIPT = """
trap '' HUP INT TERM
groups=
while read -r line; do groups=$line; done
[ -n "$groups" ] || exit 0
kill -s TERM -- $groups
sleep "$0"
kill -s KILL -- $groups
"""


class Watcher:
    """A process beside this one that, once this one is gone, ends the process groups that it was told of last.

    A context: left in the ordinary way, it ends nothing. Where no shell can be started nobody watches.

    Example:
      >>> with Watcher() as watcher, subprocess.Popen(["sleep", "0.01"], start_new_session=True) as process:
      ...     watcher.watch([process.pid])
    """

    def __init__(self, grace: float = GRACE) -> None:
        """Starts it, in a session of its own: what is sent to this process' group or terminal does not end it."""
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

    def watch(self, groups: Iterable[int]) -> None:
        """From now on, these process groups are those to be ended."""
        line = " ".join(f"-{group}" for group in groups)
        if self._process is None or self._process.stdin is None or line == self._line:
            return
        self._line = line
        with contextlib.suppress(OSError):  # nobody watches any more
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
