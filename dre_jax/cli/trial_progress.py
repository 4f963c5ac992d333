"""Progress of trials: a table on a terminal, one line per trial elsewhere, nothing if quiet."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dre_jax.errors import DataError
from dre_jax.tuning.command.commands import Outcome
from dre_jax.tuning.command.runner import FileOptimizer, Progress
from dre_jax.tuning.trials.objectives import best_trials
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from dre_jax.tuning.command.shared_study import SharedStudy

_MAX_ROWS = 8
"""Maximum number of ended trials in the table."""


class TrialsDisplay:
    """Shows the progress of trials on standard error."""

    def __init__(
        self, optimizer: FileOptimizer | SharedStudy, total: int, *, metrics: Sequence[str] = (), quiet: bool = False
    ) -> None:
        self._optimizer, self._total, self._metrics, self._quiet = optimizer, total, metrics, quiet
        self._last: deque[tuple[Trial, Outcome]] = deque(maxlen=_MAX_ROWS)
        self._has_read = self._has_waited = False
        console = Console(stderr=True)
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal and not quiet else None

    def __enter__(self) -> Self:
        finished_trials = [trial for trial in self._optimizer.trials if trial.state != "running"]
        if self._live:
            self._live.start()
        awaited = "" if self._quiet else self._optimizer.awaited
        if awaited or not self._live:
            waits = f"; {awaited}" * bool(awaited)
            self._say(f"tune: {len(finished_trials)}/{self._total} trials{self._best()}{waits}")
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        """Updates the display."""
        self._last += progress.ended_trials
        self._tell_first_value(progress)
        if self._live:
            self._live.update(self._table(progress), refresh=True)
        elif not self._quiet:
            for trial, outcome in progress.ended_trials:
                result = (
                    f"failed, {outcome.reason}" if trial.state == "failed" else f"{format_value(trial)}{self._best()}"
                )
                result = f"stopped, about {result}" if trial.state == "stopped" else result
                _print(
                    f"trial {trial.number}: {result}, {outcome.seconds:.1f} s, {format_json(trial.params, sys.stderr)}"
                )
        if progress.awaited and not self._has_waited:
            self._has_waited = True
            self._say(f"tune: waiting: {progress.awaited}")

    def _tell_first_value(self, progress: Progress) -> None:
        """Tells which line the first value was read from."""
        for trial, outcome in progress.ended_trials:
            if trial.state == "complete" and not self._has_read:
                self._has_read = True
                hint = "" if self._metrics else "; --metric NAME reads another value"
                self._say(f"tune: read {format_value(trial)} from the line {outcome.line!r}{hint}")

    def _say(self, line: str) -> None:
        """Prints a line, above the table on a terminal."""
        if self._live:
            self._live.console.print(Text(line))
        elif not self._quiet:
            _print(line)

    @property
    def best(self) -> list[Trial]:
        """The best trial, or those of the front, by their first value.

        Raises `DataError` if no trial has a value; the message ends with the last failure.
        """
        best = best_trials(self._optimizer.trials, self._optimizer.objectives)
        if not best:
            reason = f"; {self._last[-1][1].reason}" if self._last else ""
            rule = "a study needs a trial with a value, but none of"
            raise DataError(f"{rule} {len(self._optimizer.trials)} trials has one{reason}")
        return best

    def _best(self) -> str:
        try:
            best = self.best
        except DataError:
            return ""
        return f" (front of {len(best)})" if len(self._metrics) > 1 else f" (best {best[0].value:g})"

    def _table(self, progress: Progress) -> Table:
        n_finished = sum(trial.state != "running" for trial in self._optimizer.trials)
        table = Table(title=f"{n_finished}/{self._total} trials{self._best()}", title_justify="left", expand=True)
        for name in ("trial", "value", "s"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("hyperparameters", overflow="ellipsis", no_wrap=True, ratio=1)
        for trial, outcome in self._last:
            is_failed = trial.state == "failed"
            value = "failed" if is_failed else f"{'~' * (trial.state == 'stopped')}{format_value(trial)}"
            about = outcome.reason if is_failed else _format_params(trial)
            table.add_row(str(trial.number), value, f"{outcome.seconds:.1f}", Text(about))
        for trial, seconds in progress.running:
            table.add_row(str(trial.number), "…", f"{seconds:.0f}", Text(_format_params(trial)))
        return table


@contextlib.contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Converts SIGTERM and SIGHUP to `KeyboardInterrupt`, unless they are ignored, as SIGHUP is under `nohup`."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def format_json(params: Mapping[str, object], stream: TextIO | None = None) -> str:
    """Returns values by name as JSON, with escapes for characters that a stream (standard output) cannot print."""
    text = json.dumps(params, ensure_ascii=False)
    try:
        text.encode((stream or sys.stdout).encoding or "ascii")
    except UnicodeEncodeError:
        return json.dumps(params)
    return text


def format_value(trial: Trial) -> str:
    """Returns the value of a trial as text, or those of several objectives with their names."""
    return ", ".join(f"{name} {value:g}" for name, value in trial.values.items()) or f"{trial.value:g}"


def _format_params(trial: Trial) -> str:
    """Returns a configuration as short text."""
    return "  ".join(f"{name}={v:.4g}" if isinstance(v, float) else f"{name}={v}" for name, v in trial.params.items())


def _print(line: str) -> None:
    print(" ".join(line.split()), file=sys.stderr, flush=True)
