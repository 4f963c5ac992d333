"""Reports of long computations on their progress, to a listener: a terminal, or a user's function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import NamedTuple


class Progress(NamedTuple):
    """The current stage of a long computation."""

    stage: str
    """For example "training of priors"."""
    done: int = 0
    """Number of steps of this stage that are done."""
    total: int | None = None
    """Number of all steps of this stage; None if it is not known, because training stops by itself, for example."""


class Result(Progress):
    """A result, which stays on the terminal: ``stage`` is its text."""


ProgressCallback = Callable[[Progress], object]
_listener: ContextVar[ProgressCallback | None] = ContextVar("listener", default=None)


def report_progress(stage: str, done: int = 0, total: int | None = None) -> None:
    """Calls the function of `listening`, if there is one, with `Progress`."""
    listener = _listener.get()
    if listener is not None:
        listener(Progress(stage, done, total))


def report_result(text: str) -> None:
    """Calls the function of `listening`, if there is one, with `Result`."""
    listener = _listener.get()
    if listener is not None:
        listener(Result(text))


def has_listener() -> bool:
    """Returns whether a function of `listening` gets the reports of this thread."""
    return _listener.get() is not None


@contextlib.contextmanager
def listening(callback: ProgressCallback | None) -> Iterator[None]:
    """Inside of the block, `report_progress` of this thread calls the function; None for nothing.

    Example:
      >>> with listening(print):
      ...     report_progress("training", 3, 9)
      Progress(stage='training', done=3, total=9)
    """
    token = _listener.set(callback)
    try:
        yield
    finally:
        _listener.reset(token)
