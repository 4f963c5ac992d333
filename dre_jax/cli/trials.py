"""Trials as they run: a table on a terminal, a line a trial elsewhere, nothing when quiet."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dre_jax.errors import DataError
from dre_jax.tuning.command.commands import Outcome
from dre_jax.tuning.command.runner import Progress
from dre_jax.tuning.optimizer import Optimizer
from dre_jax.tuning.trial import Trial

_SHOWN = 8
"""Trials that have ended, of those in the table."""


class Trials:
    """Shows a run of trials on standard error."""

    def __init__(self, optimizer: Optimizer, total: int, *, quiet: bool = False) -> None:
        self._optimizer, self._total, self._quiet = optimizer, total, quiet
        self._last: deque[tuple[Trial, Outcome]] = deque(maxlen=_SHOWN)
        console = Console(stderr=True)
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal and not quiet else None

    def __enter__(self) -> Self:
        told = [trial for trial in self._optimizer.trials if trial.state != "running"]
        if self._live:
            self._live.start()
        elif not self._quiet:
            _print(f"tune: {len(told)}/{self._total} trials{self._best()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        """Shows where the run stands."""
        self._last += progress.ended
        if self._live:
            self._live.update(self._table(progress), refresh=True)
        elif not self._quiet:
            for trial, outcome in progress.ended:
                found = f"{trial.value:g}{self._best()}" if trial.value is not None else f"failed, {outcome.why}"
                _print(f"trial {trial.number}: {found}, {outcome.seconds:.1f} s, {json.dumps(trial.params)}")

    @property
    def best(self) -> Trial:
        """The best trial. Raises `DataError` where none gave a value; the message ends with why the last one failed."""
        try:
            return self._optimizer.best
        except DataError:
            why = f"; {self._last[-1][1].why}" if self._last else ""
            rule = "a study needs a trial that gives a value, but none of"
            raise DataError(f"{rule} {len(self._optimizer.trials)} does{why}") from None

    def _best(self) -> str:
        try:
            return f" (best {self._optimizer.best.value:g})"
        except DataError:
            return ""

    def _table(self, progress: Progress) -> Table:
        told = sum(trial.state != "running" for trial in self._optimizer.trials)
        table = Table(title=f"{told}/{self._total} trials{self._best()}", title_justify="left", expand=True)
        for name in ("trial", "value", "s"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("hyperparameters", overflow="ellipsis", no_wrap=True, ratio=1)
        for trial, outcome in self._last:
            value = "failed" if trial.value is None else f"{trial.value:g}"
            about = outcome.why if trial.value is None else _words(trial)
            table.add_row(str(trial.number), value, f"{outcome.seconds:.1f}", Text(about))
        for trial, seconds in progress.running:
            table.add_row(str(trial.number), "…", f"{seconds:.0f}", Text(_words(trial)))
        return table


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Takes the end of the terminal, or a request to end, for an interruption by the keyboard."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _words(trial: Trial) -> str:
    """A configuration in a few words."""
    return "  ".join(f"{name}={v:.4g}" if isinstance(v, float) else f"{name}={v}" for name, v in trial.params.items())


def _print(line: str) -> None:
    print(" ".join(line.split()), file=sys.stderr, flush=True)
