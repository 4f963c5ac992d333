"""Draw the paper's Figures 5 and 6, and the critical-difference diagrams 9 to 11, from the published traces.

    python scripts/reproduce_published.py [--traces DIR] [--out DIR]

Writes `report.html`, one section an experiment of `published.toml`, and each experiment's figures in a folder of its
own. Exit status 1 if a reference number is not met.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study import errors_in_one_line

from dre_jax.data.files import make_folder
from dre_jax.errors import DataWarning, DreError
from dre_jax.report import Comparison, compare
from dre_jax.report.curves import Quantity
from dre_jax.report.figures import draw_all
from dre_jax.report.page import Section, write_page
from dre_jax.report.page_tables import Cell, Table
from dre_jax.report.result_files import read_files
from dre_jax.report.statistics import significances
from dre_jax.report.summary import summarise

REPOSITORY = Path(__file__).resolve().parents[1]
TITLE = "Deep Ranking Ensembles on HPO-B: the published traces"
DECLARED = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
EXPERIMENTS: Sequence[Mapping[str, Any]] = DECLARED["experiments"]
AT = (25, 50, 100)
TOLERANCE = 1e-4
Row = tuple[str, str, str]
"""Number, what the traces show, and "yes", "no" or "cannot be told"."""


def reference_numbers(experiment: Mapping[str, Any], comparison: Comparison) -> Iterator[Row]:
    """Yields averages over all runs that the traces must give to four decimals."""
    complete = set(experiment["files"]) <= set(comparison.methods)
    for quantity, averages in (("rank", comparison.average_rank()), ("regret", comparison.average_regret())):
        for method, by_trial in experiment.get(f"{quantity}s", {}).items():
            for trial, value in by_trial.items():
                text = f"Average {quantity} of {method} after {trial} trials: {value:.4f}"
                if not complete or int(trial) > comparison.n_trials:
                    yield text, "traces missing or too short", "cannot be told"
                else:
                    average = averages[comparison.methods.index(method), int(trial)]
                    yield text, f"{average:.4f}", "yes" if abs(average - value) <= TOLERANCE else "no"


def section(experiment: Mapping[str, Any], traces: Path, out: Path) -> tuple[Section, list[Row]] | None:
    """Draws an experiment.

    Returns:
      The section and its reference values; None where the folder holds fewer than two of the traces.
    """
    title, paths = experiment["title"], {name: traces / f"{file}.json" for name, file in experiment["files"].items()}
    missing = ", ".join(path.name for path in paths.values() if not path.is_file())
    paths = {method: path for method, path in paths.items() if path.is_file()}
    if missing:
        print(f"   not in {traces}: {missing}")
    if len(paths) < 2:
        return None
    files = read_files(paths)
    comparison = compare({name: file.results for name, file in files.items()})
    at = tuple(trial for trial in AT if trial <= comparison.n_trials) or (comparison.n_trials,)
    tests = significances(comparison, at)
    numbers, tables = list(reference_numbers(experiment, comparison)), []
    if numbers:
        note = f"Pooled over runs; equal to within {TOLERANCE:g}."
        cells = tuple((Cell(a, a), Cell(b, b), Cell(c, c, c == "no")) for a, b, c in numbers)
        columns = ("Value", "On these traces", "Equal")
        tables.append(Table("Reference values", columns, cells, note, sortable=False, words=True))
    caption = title.split(": ", 1)[-1].capitalize()
    by_space: Sequence[Quantity] = ("rank",) if experiment.get("grid") else ()
    result = Section(
        title=title,
        comparison=comparison,
        significances=tests,
        figures=draw_all(comparison, tests["tasks"], out / experiment["name"], caption, by_space),
        summary=summarise(comparison, files, tests, at=at, reference=comparison.methods[0], title=title),
        text=(*experiment["notes"], *([f"Missing in the folder, and so not drawn: {missing}."] if missing else [])),
        tables=tuple(tables),
    )
    return result, numbers


def run(traces: Path, out: Path) -> int:
    if not traces.is_dir():
        raise DreError(f"the traces must be a folder, but {traces} is none")
    make_folder(out)
    sections, wrong = [], 0
    for experiment in EXPERIMENTS:
        print(f"== {experiment['title']}", flush=True)
        drawn = section(experiment, traces, out)
        if drawn is None:
            print("   left out: it takes two traces at least")
            continue
        sections.append(drawn[0])
        wrong += sum(agrees == "no" for *_, agrees in drawn[1])
        for what, own_value, agrees in drawn[1]:
            print(f"   [{agrees}] {what} (traces: {own_value})")
    if not sections:
        raise DreError(f"{traces} holds the traces of no experiment")
    write_page(out / "report.html", TITLE, sections, tuple(DECLARED["introduction"]))
    print(f"{len(sections)} experiments in {out / 'report.html'}; reference numbers not met: {wrong}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the paper's figures on HPO-B from the published traces.")
    default = REPOSITORY.parent / "shared" / "data" / "hpob-traces"
    parser.add_argument("--traces", type=Path, default=default, help="folder of the published result files")
    parser.add_argument("--out", type=Path, default=Path("out/published"), help="folder for the page and the figures")
    options = parser.parse_args(arguments)
    # The published files have defects that are known and stated on the page.
    warnings.simplefilter("ignore", DataWarning)
    with errors_in_one_line():
        return 1 if run(options.traces, options.out) else 0


if __name__ == "__main__":
    sys.exit(main())
