"""Commands as objectives: one process per trial, in a process group that is ended as a whole."""

import contextlib
import errno
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.command.printed_value import ONE_VALUE, PrintedNames, read_reports, read_value
from dre_jax.tuning.command.process_guard import GRACE
from dre_jax.tuning.trials.trial import checked_cost, checked_stderr

_TAIL = 1 << 16
"""Number of bytes at the end of the output that are read."""


class Outcome(NamedTuple):
    """The outcome of a command."""

    value: float | Mapping[str, float] | None
    """The value that the command printed, or those of several metrics; None if the trial failed."""
    reason: str
    """Why the trial failed; empty if it did not."""
    seconds: float
    line: str = ""
    """The line of the output that has the value, or the last one that has one of several."""
    ambiguous: bool = False
    """Whether the output has a value that cannot be distinguished from others, or cannot be read; see `read_value`."""
    cost: float | None = None
    """The cost that the command printed, also before it failed; None without one."""
    stderr: float | None = None
    """The standard error of the value that the command printed; None without one."""


class Command:
    """A process of a trial."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        timeout: float | None = None,
        names: PrintedNames = ONE_VALUE,
        logs: Path | None = None,
        curve: re.Pattern[str] | None = None,
    ) -> None:
        """Starts the process, without a shell and without input.

        The time limit is in seconds. The output is in `LOGS.out` and `LOGS.err`. For the curve see `curve_pattern`.

        Raises `ConfigError` if the process cannot be started, and `DataError` if its output cannot be written.
        """
        self.outcome: Outcome | None = None
        self.names, self._timeout, self.curve = names, timeout, curve
        self._n_read = 0  # bytes of the output, for reports
        self.is_stopped = False
        """Whether `stop` was called."""
        self._terminated_at: float | None = None  # when SIGTERM was sent
        self._started_at = time.monotonic()
        with contextlib.ExitStack() as files:
            # Files, not pipes: a pipe stays open as long as any process that the command started holds it.
            self._out = files.enter_context(_new_file(logs, "out"))
            self._error = files.enter_context(_new_file(logs, "err"))
            self._process = self._start(arguments)
            self._files = files.pop_all()

    @property
    def group(self) -> int:
        """The process group of the command and of all processes that it starts."""
        return self._process.pid

    @property
    def seconds(self) -> float:
        """Run time so far, or in total."""
        return time.monotonic() - self._started_at if self.outcome is None else self.outcome.seconds

    def poll(self) -> None:
        """Sets `outcome` if the process has ended, and ends the process after its time limit."""
        if self.outcome is not None:
            return
        if self.is_stopped or (self._timeout is not None and self.seconds > self._timeout):
            self._end()
        status = self._process.poll()
        if status is not None:
            self.outcome = self._read(status)
            self._files.close()

    def read_reports(self) -> list[tuple[float, float]]:
        """Returns the steps and values in the lines that the process has printed since the last call."""
        if self.curve is None or self.outcome is not None:
            return []
        # Not by `seek`: the process writes at the position that the file has here.
        output = os.pread(self._out.fileno(), os.fstat(self._out.fileno()).st_size - self._n_read, self._n_read)
        lines = output[: output.rfind(b"\n") + 1]
        self._n_read += len(lines)
        return read_reports(lines.decode("utf-8", errors="replace"), self.curve)

    def stop(self) -> None:
        """Ends the process at the next polls, as after the time limit."""
        self.is_stopped = True

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._error, start_new_session=True
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise _cannot_start(arguments[0], reason) from error

    def _end(self) -> None:
        """Sends SIGTERM to the process group, and SIGKILL after `GRACE`."""
        if self._terminated_at is None:
            self._terminated_at = time.monotonic()
            self._signal(signal.SIGTERM)
        elif time.monotonic() - self._terminated_at > GRACE:
            self._signal(signal.SIGKILL)

    def _read(self, status: int) -> Outcome:
        if self._terminated_at is not None:
            self._signal(signal.SIGKILL)  # other processes of the group may have ignored SIGTERM
            if self.is_stopped:
                return Outcome(None, "it was stopped, because it is unlikely to become the best", self.seconds)
            return Outcome(None, f"it took longer than {self._timeout} s", self.seconds)
        output = _tail(self._out)
        cost = _number_in(output, self.names.cost, checked_cost)
        stderr = _number_in(output, self.names.stderr, checked_stderr)
        return self._read_output(status, output)._replace(cost=cost, stderr=stderr)

    def _read_output(self, status: int, output: str) -> Outcome:
        if status:
            how = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
            last = _tail(self._error).strip().rpartition("\n")[2].strip()
            return Outcome(None, f"{how}: {last}" if last else how, self.seconds)
        values = dict[str, float]()
        for metric in self.names.metrics or ("",):
            read = read_value(output, metric or None, self.names.others)
            if read.value is None:
                return Outcome(None, read.problem, self.seconds, read.line, read.ambiguous)
            if math.isnan(read.value):
                return Outcome(None, "it printed NaN", self.seconds)
            values[metric] = read.value
        return Outcome(values if len(values) > 1 else read.value, "", self.seconds, read.line)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):  # the group may be gone
            os.killpg(self._process.pid, number)


def _number_in(output: str, name: str | None, check: Callable[[Any], float]) -> float | None:
    """Returns the number with a name in an output; None without one, or for a number that a check refuses."""
    with contextlib.suppress(DataError):
        return None if name is None else check(read_value(output, name).value)
    return None


def check_program(program: str | None) -> None:
    """Raises `ConfigError` for a program that cannot be started; None is any program."""
    if program is not None and shutil.which(program) is None:
        is_there = os.path.dirname(program) and os.path.exists(program)
        raise _cannot_start(program, os.strerror(errno.EACCES if is_there else errno.ENOENT))


def _cannot_start(program: str, reason: str) -> ConfigError:
    return ConfigError(f"the command must start a program that exists and may run, but {program!r}: {reason}")


def terminate(commands: Sequence[Command]) -> None:
    """Ends running commands with all their processes: by SIGTERM, and by SIGKILL after `GRACE`."""
    running = [command for command in commands if command.outcome is None]
    until = time.monotonic() + GRACE
    for command in running:
        command._signal(signal.SIGTERM)
    with contextlib.suppress(KeyboardInterrupt):  # a second interruption skips the wait
        while any(command._process.poll() is None for command in running) and time.monotonic() < until:
            time.sleep(0.01)
    for command in running:
        command._signal(signal.SIGKILL)  # the whole group, which may outlive the command
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
