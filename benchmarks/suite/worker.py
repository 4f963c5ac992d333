"""A process that does work which a limit of time can end, and that outlives the work that ends in time.

Starting a process with an accelerator takes seconds, so work that ends in time leaves the process to the next. A
compiler that takes minutes cannot be interrupted from within; so the process is killed, with those that it started,
and the next work gets another.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any
from unittest.mock import patch


class LimitedWorker:
    """Calls a function in another process, one call at a time; use it as a context, which ends the process."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Starts nothing yet.

        Args:
          function: of a module, by which the process finds it; arguments and results must be picklable.
        """
        self._function = function
        self._variables: dict[str, str] = {}
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def call(self, *arguments: Any, seconds: float, variables: Mapping[str, str] | None = None) -> Any:
        """Returns the result of the function.

        Args:
          arguments: of the function.
          seconds: limit, the start of a process included.
          variables: of the process's environment, beside those of this process; other ones need another process.

        Raises:
          RuntimeError: if the function raised an error, ran out of time, or its process ended.

        Example:
          >>> with LimitedWorker(divmod) as worker:
          ...     worker.call(7, 2, seconds=60)
          (3, 1)
        """
        if self._process is None or self._variables != dict(variables or {}):
            self._start(dict(variables or {}))
        assert self._connection is not None
        is_done, result = False, ""
        try:
            self._connection.send(arguments)
            if not self._connection.poll(seconds):
                raise RuntimeError(f"it took longer than {seconds:.0f} s")
            is_done, result = self._connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise RuntimeError("its process ended") from error
        except RuntimeError:
            self.close()
            raise
        if not is_done:
            raise RuntimeError(result)
        return result

    def close(self) -> None:
        """Kills the process, if there is one."""
        if self._process is not None and self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            with suppress(ProcessLookupError):  # those that it started have its number as that of their group
                os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process = self._connection = None

    def __enter__(self) -> LimitedWorker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self, variables: dict[str, str]) -> None:
        self.close()
        context = get_context("spawn")
        self._variables, (self._connection, other) = variables, context.Pipe()
        # Not a daemon, because the work may start processes of its own.
        self._process = context.Process(target=_serve, args=(other, self._function))
        with patch.dict(os.environ, variables):  # what the process imports reads them
            self._process.start()
        other.close()


def _serve(connection: Connection, function: Callable[..., Any]) -> None:
    os.setsid()
    with suppress(EOFError):
        while True:
            arguments = connection.recv()
            try:
                connection.send((True, function(*arguments)))
            except Exception as error:  # whatever the work raises is the caller's to report
                text = (str(error).strip().splitlines() or [""])[0]
                connection.send((False, f"{type(error).__name__}: {text}"))
