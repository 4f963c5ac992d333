"""Reports of long computations on their progress, to a listener: a terminal, or a user's function.

Without a listener, a suggestion prints them as lines on standard error.
"""

from __future__ import annotations

import contextlib
import sys
import time
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
SECONDS_BETWEEN_LINES = 10.0
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


def say(text: str) -> None:
    """Prints a line on standard error about a decision or the work of the library."""
    print(f"dre_jax: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def say_reports() -> Iterator[None]:
    """Prints reports as lines on standard error, unless somebody listens to them."""
    with listening(_listener.get() or say_seldom()):
        yield


def say_seldom() -> ProgressCallback:
    """Returns a function that prints a result, and a stage if the line before is ten seconds old."""
    last_line = -SECONDS_BETWEEN_LINES

    def show(progress: Progress) -> None:
        nonlocal last_line
        is_result = isinstance(progress, Result)
        if is_result or time.monotonic() - last_line >= SECONDS_BETWEEN_LINES:
            last_line = last_line if is_result else time.monotonic()
            say(f"{progress.stage} {progress.done or ''}".rstrip())

    return show
