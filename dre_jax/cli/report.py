"""``dre-jax report``: methods compared by their result files."""

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dre_jax.checks import parse_trials
from dre_jax.cli import options
from dre_jax.errors import ConfigError

_MAX_PAIRS = 12
_TESTS = (
    "Friedman's test; pairs by Wilcoxon's signed-rank test with Holm's correction, at 0.05. "
    "Runs of one task are not independent: over runs p is too small"
)


def report(
    out: Annotated[Path, typer.Option(help="Folder for numbers, figures and report.html.")],
    results: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Result file, or NAME=FILE; more may follow.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="More result files.")] = None,
    published: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of published traces on HPO-B; adds those with the same runs."),
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="Trials at which to compare. Default: 25, 50 and 100, as far as the results go.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Method that the others are compared with, run by run. Default: the first.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page and the figures.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare methods: ranks, regret and significance; tables, figures and one page."""
    from dre_jax.report import write_report

    files = [*(results or []), *(more or [])]
    if not files:
        raise ConfigError("a report needs --results FILE.json, but got none")
    if not quiet:
        print(f"report: comparing, and drawing into {out}", file=sys.stderr, flush=True)
    summary = write_report(
        files,
        out,
        published=published,
        at=None if at is None else parse_trials(at, "--at"),
        reference=reference,
        title=title,
    )
    print_summary(summary)
    print(f"report: saved in {out}, page {out / 'report.html'}")


def print_summary(summary: Mapping[str, Any]) -> None:
    """Prints tables and tests of a report to standard output."""
    tables = [(f"{summary['title']}\nMeans of the runs pooled{_error_note(summary)}", averages(summary, summary))]
    if len(summary["spaces"]) > 1:
        tables.append(over_spaces(summary))
    if len(summary["methods"]) > 1:
        reference = summary["win_tie_loss"]["reference"]
        tables += [
            differences(summary, "runs"),
            (f"Wins / ties / losses of {reference}, in runs", _wins(summary)),
            (_TESTS, _tests(summary)),
        ]
    show(tables)


def show(tables: Sequence[tuple[str, Table]]) -> None:
    """Prints tables, each under its heading. The width of the window only matters on a terminal."""
    console = Console(width=None if Console().is_terminal else 1000, highlight=False, markup=False)
    for heading, table in tables:
        console.print(heading, soft_wrap=True)
        console.print(table)


def over_spaces(summary: Mapping[str, Any], more: Mapping[str, Sequence[str]] | None = None) -> tuple[str, Table]:
    """A heading, and the means over search spaces, each with equal weight; `more` as in `averages`."""
    spaces = summary["over_spaces"]
    return f"Means over search spaces{_error_note(spaces)}", averages(summary, spaces, more)


def _error_note(means: Mapping[str, Any]) -> str:
    """Explains the number after a "±", if there is one: a single task has no standard error."""
    errors = means["standard_error"]
    is_defined = all(error is not None for row in errors["average_regret"].values() for error in row)
    return f" ± standard error over {errors['over']}" if is_defined else ""


def averages(
    summary: Mapping[str, Any], means: Mapping[str, Any], more: Mapping[str, Sequence[str]] | None = None
) -> Table:
    """Regret and rank by method and trial; behind them more columns by heading, each with a cell a method."""
    headings = [f"{what} at {trial}" for what in ("regret", "rank") for trial in summary["at"]]
    more = more or {}
    rows = []
    for name, *further in zip(summary["methods"], *more.values(), strict=True):
        cells = [name]
        for what, digits in (("regret", 4), ("rank", 2)):
            for trial in summary["at"]:
                cell = f"{means[f'{what}_at'][str(trial)][name]:.{digits}f}"
                if (error := means["standard_error"][f"average_{what}"][name][trial]) is not None:
                    cell += f" ± {error:.{digits}f}"
                cells.append(cell)
        rows.append([*cells, *further])
    return _table(["method", *headings, *more], rows)


def differences(summary: Mapping[str, Any], over: str) -> tuple[str, Table]:
    """A heading, and how much more regret than the reference each other method has; `over` "runs" or "spaces"."""
    from dre_jax.report.page_tables import difference  # which loads scipy

    paired, at = summary["differences"], [str(trial) for trial in summary["at"]]
    by_trial, reference = paired[over], paired["reference"]
    names = [name for name in summary["methods"] if name != reference]
    rows = [[name, *(difference(*_numbers(by_trial[trial][name])) for trial in at)] for name in names]
    table = _table(["method", *(f"at {trial}" for trial in at)], rows)
    return f"Regret minus that of {reference}, paired by run ± standard error over tasks", table


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _wins(summary: Mapping[str, Any]) -> Table:
    counts, at = summary["win_tie_loss"], summary["at"]
    rows = [
        [name, *(" / ".join(str(count) for count in counts["at"][str(trial)][name].values()) for trial in at)]
        for name in summary["methods"]
        if name != counts["reference"]
    ]
    return _table(["against", *(f"at {trial}" for trial in at)], rows)


def _tests(summary: Mapping[str, Any]) -> Table:
    """A row for each unit and trial: Friedman's test, and the pairs without a significant difference."""
    rows = []
    for unit, by_trial in summary["significance"].items():
        for trial, tests in by_trial.items():
            p = "-" if tests["friedman_p"] is None else f"{tests['friedman_p']:.2g}"
            rows.append([f"{unit} ({tests['n']})", trial, p, _similar_pairs(summary["methods"], tests)])
    table = _table(["over", "at", "Friedman p", "pairs not separated"], rows)
    table.columns[-1].justify = "left"
    table.columns[-1].max_width = 90
    return table


def _similar_pairs(methods: Sequence[str], tests: Mapping[str, Any]) -> str:
    alpha, p = tests["alpha"], tests["wilcoxon_p"]
    pairs = [f"{first} and {second}" for first, second in combinations(methods, 2) if p[first][second] > alpha]
    more = f", and {len(pairs) - _MAX_PAIRS} more" if len(pairs) > _MAX_PAIRS else ""
    return (", ".join(pairs[:_MAX_PAIRS]) or "none") + more


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table: its first column to the left, numbers to the right."""
    table = Table()
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
