"""Commands as objectives: one process a trial, in a group of its own that is ended as a whole."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.command.printed_value import METRIC, read_value
from dre_jax.tuning.command.process_guard import GRACE

_TAIL = 1 << 16
"""Bytes of what was printed that are looked at."""


class Outcome(NamedTuple):
    """The outcome of a command."""

    value: float | None
    """The value that it printed; None where the trial failed."""
    why: str
    """Why it failed; empty where it did not."""
    seconds: float


class Command:
    """A command that runs.

    Example:
      >>> command = Command(["echo", "accuracy: 0.5"])
      >>> while command.outcome is None:
      ...     command.look()
      >>> command.outcome.value
      0.5
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        timeout: float | None = None,
        metric: str = METRIC,
        logs: Path | None = None,
    ) -> None:
        """Starts it, without a shell and without input.

        Args:
          arguments: the program and its arguments.
          timeout: seconds until it is ended.
          metric: see `read_value`.
          logs: where what it prints is kept, as `LOGS.out` and `LOGS.err`.

        Raises:
          ConfigError: where it cannot be started.
          DataError: where what it prints cannot be written.
        """
        self.outcome: Outcome | None = None
        self._metric, self._timeout = metric, timeout
        self._asked: float | None = None  # when it was asked to end
        self._begun = time.monotonic()
        with contextlib.ExitStack() as files:
            # Files, not pipes: a pipe is open as long as anything has it that the command started.
            self._out = files.enter_context(_new_file(logs, "out"))
            self._error = files.enter_context(_new_file(logs, "err"))
            self._process = self._start(arguments)
            self._files = files.pop_all()

    @property
    def group(self) -> int:
        """The number of its process group, to which all that it starts belongs."""
        return self._process.pid

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return time.monotonic() - self._begun if self.outcome is None else self.outcome.seconds

    def look(self) -> None:
        """Sets `outcome` once it has ended, and ends it where it has run too long."""
        if self.outcome is not None:
            return
        if self._timeout is not None and self.seconds > self._timeout:
            self._end()
        status = self._process.poll()
        if status is not None:
            value, why = self._read(status)
            self.outcome = Outcome(value, why, self.seconds)
            self._files.close()

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._error, start_new_session=True
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"the command must be one that can be started, but {arguments[0]!r}: {why}") from error

    def _end(self) -> None:
        """Asks all processes of the group to end, and later insists."""
        if self._asked is None:
            self._asked = time.monotonic()
            self._signal(signal.SIGTERM)
        elif time.monotonic() - self._asked > GRACE:
            self._signal(signal.SIGKILL)

    def _read(self, status: int) -> tuple[float | None, str]:
        if self._asked is not None:
            self._signal(signal.SIGKILL)  # others of its group may not have listened
            return None, f"it took longer than {self._timeout} s"
        if status:
            how = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
            last = _tail(self._error).strip().rpartition("\n")[2].strip()
            return None, f"{how}: {last}" if last else how
        value = read_value(_tail(self._out), self._metric)
        if value is None:
            return None, f"it printed neither a number at the end of a line nor a JSON object with {self._metric!r}"
        return (None, "it printed NaN") if math.isnan(value) else (value, "")

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):  # whoever is gone needs no signal
            os.killpg(self._process.pid, number)


def end(commands: Sequence[Command]) -> None:
    """Ends commands that run, each with all processes that it started: asks, and after `GRACE` insists."""
    running = [command for command in commands if command.outcome is None]
    until = time.monotonic() + GRACE
    for command in running:
        command._signal(signal.SIGTERM)
    with contextlib.suppress(KeyboardInterrupt):  # who insists need not wait
        while any(command._process.poll() is None for command in running) and time.monotonic() < until:
            time.sleep(0.01)
    for command in running:
        command._signal(signal.SIGKILL)  # its group too, which may outlive it
        command._process.wait()
        command._files.close()


def _new_file(logs: Path | None, ending: str) -> IO[bytes]:
    if logs is None:
        return tempfile.TemporaryFile()
    try:
        return open(f"{logs}.{ending}", "w+b")
    except OSError as error:
        raise DataError(f"{logs}.{ending} cannot be written: {error.strerror}") from error


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL))
    return stream.read().decode("utf-8", errors="replace")
