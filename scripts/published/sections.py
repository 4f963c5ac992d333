"""An experiment as a section of the page: traces in, figures and checks out."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dre_jax.report import Comparison, compare
from dre_jax.report.figures import draw_all
from dre_jax.report.page import Section
from dre_jax.report.page_tables import Cell, Table
from dre_jax.report.result_files import read_files
from dre_jax.report.statistics import Significances, significances
from dre_jax.report.summary import summarise
from published.claims import TOLERANCE, Claim
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
    paths = {method: traces / f"{file}.json" for method, file in experiment.files.items()}
    missing = tuple(path.name for path in paths.values() if not path.is_file())
    paths = {method: path for method, path in paths.items() if path.is_file()}
    if len(paths) < 2:
        return Outcome(None, (), missing, 0)
    files = read_files(paths)
    comparison = compare({name: file.results for name, file in files.items()})
    at = tuple(trial for trial in AT if trial <= comparison.n_trials) or (comparison.n_trials,)
    by_unit = significances(comparison, at)
    summary = summarise(comparison, files, by_unit, at=at, reference=comparison.methods[0], title=experiment.title)
    lacking = (f"Missing in the folder, and so not drawn: {', '.join(missing)}.",) if missing else ()
    said, numbers = (
        tuple(_row(claim, comparison, by_unit) for claim in experiment.claims if claim.is_number == kind)
        for kind in (False, True)
    )
    note = "Ranks are pooled over runs; significance is over tasks."
    tables = [_table("What the paper says", ("In our words", "On these traces", "Borne out"), said, note)]
    if numbers:
        note = f"Pooled over runs; equal to within {TOLERANCE:g}."
        tables.append(_table("Reference values", ("Value", "On these traces", "Equal"), numbers, note))
    title = experiment.title.split(": ", 1)[-1].capitalize()
    section = Section(
        title=experiment.title,
        comparison=comparison,
        significances=by_unit,
        figures=draw_all(
            comparison, by_unit["tasks"], out / experiment.name, title, ("rank",) if experiment.grid else ()
        ),
        summary=summary,
        text=(*experiment.notes, *lacking),
        tables=tuple(tables),
    )
    return Outcome(section, (*said, *numbers), missing, sum(agrees == "no" for *_, agrees in numbers))


def _row(claim: Claim, comparison: Comparison, tests: Significances) -> Row:
    absent = [method for method in claim.methods if method not in comparison.methods]
    if claim.trials > comparison.n_trials or (absent and claim.is_number):
        return claim.text, "traces missing or too short", "cannot be told"
    if absent:
        return claim.text, f"{', '.join(absent)} missing", "cannot be told"
    agrees, found = claim.check(comparison, tests)
    return claim.text, found, "yes" if agrees else "no"


def _table(caption: str, columns: Row, rows: tuple[Row, ...], note: str) -> Table:
    cells = tuple((Cell(a, a), Cell(b, b), Cell(c, c, c == "no")) for a, b, c in rows)
    return Table(caption, columns, cells, note, sortable=False, words=True)
