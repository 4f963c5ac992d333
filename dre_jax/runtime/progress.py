"""Progress: a bar with rate and remaining time on a terminal, occasional lines elsewhere, nothing if quiet."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dre_jax.runtime import reports


class Bar:
    """Shows progress towards a total on standard error.

    Example:
      >>> with Bar("runs", total=10, quiet=True) as bar:
      ...     bar.advance_to(3)
    """

    def __init__(self, what: str, total: int, *, quiet: bool = False, start: int = 0, unit: str = "") -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._first = self._n_done = start
        self._started_at = self._last_line = time.monotonic()
        self._quiet = quiet
        self._rich: Progress | None = None
        if not quiet and sys.stderr.isatty():
            self._rich = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}{task.fields[note]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._rich.add_task(what, total=total, completed=start, rate="", note="")

    def __enter__(self) -> Self:
        if self._rich:
            self._rich.start()
        elif not self._quiet:
            print(f"{self._what}: {self._n_done}/{self._total} {self._unit}".rstrip(), file=sys.stderr, flush=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rich:
            self._rich.stop()
        elif not self._quiet and kind is None:
            print(self._line(""), file=sys.stderr, flush=True)

    def advance_to(self, n_done: int, note: str = "") -> None:
        """Updates the progress; the note follows it."""
        self._n_done = n_done
        if self._rich:
            note = f"  {note}" if note else ""
            self._rich.update(self._task, completed=n_done, rate=self._rate(), note=note)
        elif not self._quiet and time.monotonic() - self._last_line >= reports.SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            print(self._line(note), file=sys.stderr, flush=True)

    def _rate(self) -> str:
        seconds = time.monotonic() - self._started_at
        rate = (self._n_done - self._first) / seconds if seconds > 0 else 0.0
        return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2f}/s"

    def _line(self, note: str) -> str:
        seconds = time.monotonic() - self._started_at
        counts = f"{self._what}: {self._n_done}/{self._total} {self._unit}".rstrip()
        remaining = ""
        if self._first < self._n_done < self._total:
            remaining = f", about {seconds * (self._total - self._n_done) / (self._n_done - self._first):.0f} s left"
        return f"{counts}, {self._rate()}, {seconds:.0f} s{remaining}{f', {note}' if note else ''}"


@contextlib.contextmanager
def show_reports(*, quiet: bool = False, callback: reports.ProgressCallback | None = None) -> Iterator[None]:
    """Shows the reports of `dre_jax.runtime.reports` in one line of a terminal, which vanishes at the end.

    Results stay. Without a terminal, a stage is a line of standard error if the line before is ten seconds old. A
    callback gets the reports instead.

    Example:
      >>> with show_reports(callback=lambda progress: print(progress.stage)):
      ...     reports.report_progress("compiling")
      compiling
    """
    if callback is not None or quiet or not sys.stderr.isatty():
        with reports.listening(callback if callback is not None or quiet else reports.say_seldom()):
            yield
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task("")

        def show(progress: reports.Progress) -> None:
            if isinstance(progress, reports.Result):
                line.console.print(progress.stage, markup=False, highlight=False)
                return
            steps = f" {progress.done}" if progress.done else ""
            total = f" of {progress.total}" if progress.total else ""
            line.update(task, description=f"{progress.stage}{steps}{total}")

        with reports.listening(show):
            yield
