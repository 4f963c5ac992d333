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
from dre_jax.tuning.command.runner import Progress
from dre_jax.tuning.fidelity.fidelity import budget_text
from dre_jax.tuning.fidelity.trainings import spent_by
from dre_jax.tuning.trials.objectives import AT_ANY_BUDGET, best_trials
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from dre_jax.tuning.command.runner import FileOptimizer
    from dre_jax.tuning.command.shared_study import SharedStudy

_MAX_ROWS = 8
"""Maximum number of ended trials in the table."""


class TrialsDisplay:
    """Shows the progress of trials on standard error."""

    def __init__(
        self,
        optimizer: FileOptimizer | SharedStudy,
        total: int | None,
        *,
        total_budget: float | None = None,
        metrics: Sequence[str] = (),
        quiet: bool = False,
    ) -> None:
        """Shows a study that ends with a total of trials, or of what they have trained; None for no total."""
        self._optimizer, self._metrics, self._quiet = optimizer, metrics, quiet
        self._of_total = "" if total is None else f"/{total}"
        self._of_budget = "" if total_budget is None else f" of {budget_text(total_budget)}"
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
            self._say(f"tune: {self._count(len(finished_trials))}{waits}")
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
                params = format_json(trial.params, sys.stderr)
                _print(f"{self._subject(trial)}: {self._result(trial, outcome)}, {outcome.seconds:.1f} s, {params}")
        if progress.awaited and not self._has_waited:
            self._has_waited = True
            self._say(f"tune: waiting: {progress.awaited}")

    def _count(self, n: int) -> str:
        spent = format_spent(self._optimizer)
        return f"{n}{self._of_total} trials{spent}{self._of_budget * bool(spent)}{self._best()}"

    def _subject(self, trial: Trial) -> str:
        """Returns the number of a trial, and the budgets that it trained from and until."""
        fidelity = self._optimizer.fidelity
        budgets = "" if fidelity is None else f", {fidelity.name} {format_budgets(trial, self._by_number())}"
        return f"trial {trial.number}{budgets}"

    def _by_number(self) -> dict[int, Trial]:
        return {trial.number: trial for trial in self._optimizer.trials}

    def _result(self, trial: Trial, outcome: Outcome) -> str:
        if trial.state == "failed":
            return f"failed, {outcome.reason}"
        about, paused = "stopped, about " * (trial.state == "stopped"), ", paused" * (trial.state == "paused")
        return f"{about}{format_value(trial)}{paused}{self._best()}"

    def _tell_first_value(self, progress: Progress) -> None:
        """Tells which line the first value was read from."""
        for trial, outcome in progress.ended_trials:
            if trial.state in ("complete", "paused") and not self._has_read:
                self._has_read = True
                hint = "" if self._metrics else "; --metric NAME reads another value"
                further = {"cost": outcome.cost, "standard error": outcome.stderr}
                also = "".join(f", {name} {number:g}" for name, number in further.items() if number is not None)
                self._say(f"tune: read {format_value(trial)} from the line {outcome.line!r}{also}{hint}")

    def _say(self, line: str) -> None:
        """Prints a line, above the table on a terminal."""
        if self._live:
            self._live.console.print(Text(line))
        elif not self._quiet:
            _print(line)

    @property
    def best(self) -> list[Trial]:
        """The best trial, or those of the front, by their first value; those so far if all are paused.

        Raises `DataError` if no trial has a value; the message ends with the last failure.
        """
        trials, objectives = self._optimizer.trials, self._optimizer.objectives
        best = best_trials(trials, objectives) or best_trials(trials, objectives, AT_ANY_BUDGET)
        if not best:
            reason = f"; {self._last[-1][1].reason}" if self._last else ""
            rule = "a study needs a trial with a value, but none of"
            raise DataError(f"{rule} {len(trials)} trials has one{reason}")
        return best

    def _best(self) -> str:
        try:
            best = self.best
        except DataError:
            return ""
        if len(self._metrics) > 1:
            return f" (front of {len(best)}{format_so_far(best)})"
        fidelity = self._optimizer.fidelity
        is_paused = fidelity is not None and best[0].state == "paused"
        at = f" at {fidelity.name} {budget_text(best[0].budget or 0)}" if fidelity is not None and is_paused else ""
        return f" (best {best[0].value:g}{at})"

    def _table(self, progress: Progress) -> Table:
        n_finished = sum(trial.state != "running" for trial in self._optimizer.trials)
        table = Table(title=self._count(n_finished), title_justify="left", expand=True)
        fidelity, by_number = self._optimizer.fidelity, self._by_number()
        for name in ("trial", *([] if fidelity is None else [fidelity.name]), "value", "s"):
            table.add_column(name, justify="right", no_wrap=True)

        def numbers(trial: Trial) -> list[str]:
            return [str(trial.number), *([] if fidelity is None else [format_budgets(trial, by_number)])]

        table.add_column("hyperparameters", overflow="ellipsis", no_wrap=True, ratio=1)
        for trial, outcome in self._last:
            is_failed = trial.state == "failed"
            value = "failed" if is_failed else f"{'~' * (trial.state == 'stopped')}{format_value(trial)}"
            about = outcome.reason if is_failed else _format_params(trial)
            table.add_row(*numbers(trial), value, f"{outcome.seconds:.1f}", Text(about))
        for trial, seconds in progress.running:
            table.add_row(*numbers(trial), "…", f"{seconds:.0f}", Text(_format_params(trial)))
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


def format_budgets(trial: Trial, trials: Mapping[int, Trial]) -> str:
    """Returns the budgets that a trial trains from and until; the study's trials are by their numbers.

    Example:
      >>> first = Trial(0, {"x": 0.5}, "paused", 2.0, budget=1)
      >>> format_budgets(first, {0: first}), format_budgets(Trial(1, {"x": 0.5}, budget=3, resumes=0), {0: first})
      ('0 to 1', '1 to 3')
    """
    budget = trial.budget or 0
    return f"{budget_text(budget - spent_by(trial, trials))} to {budget_text(budget)}"


def format_so_far(best: Sequence[Trial]) -> str:
    """Returns " so far" if no trial has reached the highest budget yet, so that the best ones are paused; else empty.

    Example:
      >>> format_so_far([Trial(0, {"x": 0.5}, "paused", 2.0, budget=1)])
      ' so far'
    """
    return " so far" * (best[0].state != "complete")


def format_spent(optimizer: FileOptimizer | SharedStudy) -> str:
    """Returns the budget that all trials of a study have trained for, after a comma; empty without a fidelity."""
    if optimizer.fidelity is None:
        return ""
    return f", {optimizer.fidelity.name} {budget_text(optimizer.total_budget)}"


def _format_params(trial: Trial) -> str:
    """Returns a configuration as short text."""
    return "  ".join(f"{name}={v:.4g}" if isinstance(v, float) else f"{name}={v}" for name, v in trial.params.items())


def _print(line: str) -> None:
    print(" ".join(line.split()), file=sys.stderr, flush=True)
