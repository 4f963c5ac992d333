"""An experiment as a section of the page: traces in, figures and checks out."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, get_args

from dre_jax.report import Comparison, compare
from dre_jax.report.curves import Quantity
from dre_jax.report.drawings import draw_all
from dre_jax.report.page import Section
from dre_jax.report.page_tables import Cell, Table
from dre_jax.report.result_files import read_files
from dre_jax.report.statistics import Significances, Unit, significance
from dre_jax.report.summary import summarise
from published.claims import TOLERANCE
from published.experiments import Experiment

AT = (25, 50, 100)
Row = tuple[str, str, str]
"""Statement or number, what the traces show, and "yes", "no" or "cannot be told"."""


class Outcome(NamedTuple):
    """The result of an experiment; no section where the folder holds too few of its traces."""

    section: Section | None
    said: tuple[Row, ...]
    missing: tuple[str, ...]
    """Trace files that the folder lacks."""
    wrong: int
    """Reference numbers that the traces do not give."""


def reproduce(experiment: Experiment, traces: Path, out: Path) -> Outcome:
    """Reads an experiment's traces, draws its figures into `out`/name and checks what the paper says of them."""
    paths = {method: traces / f"{file}.json" for method, file in experiment.files.items()}
    missing = tuple(path.name for path in paths.values() if not path.is_file())
    paths = {method: path for method, path in paths.items() if path.is_file()}
    if len(paths) < 2:
        return Outcome(None, (), missing, 0)
    files = read_files(paths)
    comparison = compare({name: file.results for name, file in files.items()})
    at = tuple(trial for trial in AT if trial <= comparison.n_trials) or (comparison.n_trials,)
    by_unit: Significances = {unit: {t: significance(comparison, t, unit=unit) for t in at} for unit in get_args(Unit)}
    summary = summarise(comparison, files, by_unit, at=at, reference=comparison.methods[0], title=experiment.title)
    lacking = (f"Missing in the folder, and so not drawn: {', '.join(missing)}.",) if missing else ()
    said = _claims(experiment, comparison, by_unit)
    numbers, wrong = _numbers(experiment, comparison)
    title = experiment.title.split(": ", 1)[-1].capitalize()
    grids: tuple[Quantity, ...] = ("rank",) if experiment.grid else ()
    section = Section(
        title=experiment.title,
        comparison=comparison,
        significances=by_unit,
        figures=draw_all(comparison, by_unit["tasks"], out / experiment.name, title, grids),
        summary=summary,
        text=(*experiment.notes, *lacking),
        tables=_tables(said, numbers),
    )
    return Outcome(section, (*said, *numbers), missing, wrong)


def _claims(experiment: Experiment, comparison: Comparison, tests: Significances) -> tuple[Row, ...]:
    rows = []
    for claim in experiment.claims:
        absent = [method for method in claim.methods if method not in comparison.methods]
        if absent:
            rows.append((claim.text, f"{', '.join(absent)} missing", "cannot be told"))
        else:
            verdict = claim.check(comparison, tests)
            rows.append((claim.text, verdict.found, "yes" if verdict.agrees else "no"))
    return tuple(rows)


def _numbers(experiment: Experiment, comparison: Comparison) -> tuple[tuple[Row, ...], int]:
    whole = set(comparison.methods) == set(experiment.files)
    rows, wrong = [], 0
    for number in experiment.numbers:
        what = f"Average {number.quantity} of {number.method} after {number.trial} trials: {number.value:.4f}"
        if not whole or number.trial > comparison.n_trials:
            rows.append((what, "traces missing or too short", "cannot be told"))
            continue
        agrees = number.agrees(comparison)
        wrong += not agrees
        rows.append((what, f"{number.found(comparison):.4f}", "yes" if agrees else "no"))
    return tuple(rows), wrong


def _tables(said: tuple[Row, ...], numbers: tuple[Row, ...]) -> tuple[Table, ...]:
    note = "Ranks are pooled over runs; significance is over tasks."
    claims = _table("What the paper says", ("In our words", "On these traces", "Borne out"), said, note)
    if not numbers:
        return (claims,)
    note = f"Pooled over runs; equal to within {TOLERANCE:g}."
    return claims, _table("Reference values", ("Value", "On these traces", "Equal"), numbers, note)


def _table(caption: str, columns: Row, rows: tuple[Row, ...], note: str) -> Table:
    cells = tuple((Cell(a, a), Cell(b, b), Cell(c, c, c == "no")) for a, b, c in rows)
    return Table(caption, columns, cells, note, sortable=False, words=True)
