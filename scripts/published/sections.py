"""An experiment as a section of the page: traces in, figures and checks out."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dre_jax.data.files import make_folder
from dre_jax.report import Comparison, compare
from dre_jax.report.critical_difference import diagram_data, draw_diagram
from dre_jax.report.curves import curves_data, draw_curves, draw_grid, grid_data
from dre_jax.report.page import Section
from dre_jax.report.page_tables import Cell, Table
from dre_jax.report.result_files import read_files
from dre_jax.report.statistics import Significance, significance
from dre_jax.report.summary import summarise
from published.claims import TOLERANCE
from published.experiments import Experiment

AT = (25, 50, 100)


class Outcome(NamedTuple):
    """What an experiment came to; no section where the folder holds too few of its traces."""

    section: Section | None
    said: tuple[tuple[str, str, str], ...]
    """Statement or number, what the traces show, and "yes", "no" or "cannot be told"."""
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
    by_unit: dict[str, dict[int, Significance]] = {
        "tasks": {trial: significance(comparison, trial, unit="tasks") for trial in at},
        "runs": {trial: significance(comparison, trial, unit="runs") for trial in at},
    }
    summary = summarise(comparison, files, by_unit, at=at, reference=comparison.methods[0], title=experiment.title)
    lacking = (f"Missing in the folder, and so not drawn: {', '.join(missing)}.",) if missing else ()
    said = _claims(experiment, comparison, by_unit)
    numbers, wrong = _numbers(experiment, comparison)
    section = Section(
        title=experiment.title,
        comparison=comparison,
        significances=by_unit,
        figures=_draw(experiment, comparison, by_unit["tasks"], out / experiment.name),
        summary=summary,
        text=(*experiment.notes, *lacking),
        tables=tuple(filter(None, (_claim_table(said), _number_table(numbers)))),
    )
    return Outcome(section, (*said, *numbers), missing, wrong)


def _draw(
    experiment: Experiment, comparison: Comparison, tests: dict[int, Significance], folder: Path
) -> dict[str, Path]:
    make_folder(folder)
    title = experiment.title.split(": ", 1)[-1].capitalize()
    found: dict[str, Path] = {}

    def both(name: str) -> tuple[Path, Path]:
        found[name] = folder / f"{name}.png"
        return found[name], folder / f"{name}.svg"

    draw_curves(curves_data(comparison, "rank", title), *both("rank"))
    draw_curves(curves_data(comparison, "regret", title), *both("regret"))
    if experiment.grid:
        draw_grid(grid_data(comparison, "rank"), f"{title}, by search space", *both("rank-spaces"))
    for trial, test in tests.items():
        draw_diagram(diagram_data(test, comparison.methods, f"{title}, after {trial} trials"), *both(f"cd-{trial}"))
    return found


def _claims(
    experiment: Experiment, comparison: Comparison, tests: dict[str, dict[int, Significance]]
) -> tuple[tuple[str, str, str], ...]:
    rows = []
    for claim in experiment.claims:
        absent = [method for method in claim.methods if method not in comparison.methods]
        if absent:
            rows.append((claim.text, f"{', '.join(absent)} missing", "cannot be told"))
        else:
            verdict = claim.check(comparison, tests)
            rows.append((claim.text, verdict.found, "yes" if verdict.agrees else "no"))
    return tuple(rows)


def _numbers(experiment: Experiment, comparison: Comparison) -> tuple[tuple[tuple[str, str, str], ...], int]:
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


def _claim_table(said: tuple[tuple[str, str, str], ...]) -> Table:
    return _table(
        "What the paper says",
        ("In our words", "On these traces", "Borne out"),
        said,
        "Ranks are pooled over runs; significance is over tasks.",
    )


def _number_table(numbers: tuple[tuple[str, str, str], ...]) -> Table | None:
    note = f"Pooled over runs; equal to within {TOLERANCE:g}."
    return _table("Reference values", ("Value", "On these traces", "Equal"), numbers, note) if numbers else None


def _table(caption: str, columns: tuple[str, ...], rows: tuple[tuple[str, str, str], ...], note: str) -> Table:
    cells = tuple((Cell(a, a), Cell(b, b), Cell(c, c, c == "no")) for a, b, c in rows)
    return Table(caption, columns, cells, note, sortable=False, words=True)
