"""Draw the paper's Figures 5 and 6, and the critical-difference diagrams 9 to 11, from the published traces.

    python scripts/reproduce_published.py [--traces DIR] [--out DIR]

Writes `report.html`, one section an experiment of `published.toml`, and each experiment's figures in a folder of its
own. Says what the paper states of each figure and whether the traces bear it out. Exit status 1 if a reference number
is not met.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from one_line import errors_in_one_line

from dre_jax.data.files import make_folder
from dre_jax.errors import DataWarning, DreError
from dre_jax.report import Comparison, compare
from dre_jax.report.curves import Quantity
from dre_jax.report.figures import draw_all
from dre_jax.report.page import Section, write_page
from dre_jax.report.page_tables import Cell, Table
from dre_jax.report.result_files import read_files
from dre_jax.report.statistics import Significance, Significances, significances
from dre_jax.report.summary import summarise

REPOSITORY = Path(__file__).resolve().parents[1]
TITLE = "Deep Ranking Ensembles on HPO-B: the published traces"
DECLARED = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
EXPERIMENTS: Sequence[Mapping[str, Any]] = DECLARED["experiments"]
AT = (25, 50, 100)
TOLERANCE = 1e-4
Verdict = tuple[bool, str]
"""True if the traces agree, and a sentence on what they show."""
Row = tuple[str, str, str]
"""Statement or number, what the traces show, and "yes", "no" or "cannot be told"."""


def leads(comparison: Comparison, _: Significances, methods: Sequence[str], until: int | None = None) -> Verdict:
    """The method has the best average rank, as the mean over all trials or those up to a last one."""
    rank = comparison.average_rank()[:, 1 : None if until is None else until + 1]
    own, mean = comparison.methods.index(methods[0]), rank.mean(axis=1)
    ahead = rank[own] <= rank.min(axis=0)
    best = comparison.methods[int(mean.argmin())]
    text = f"best after {ahead.sum()} of {ahead.size} trials; best mean over them: {best}, {mean.min():.3f}"
    return best == methods[0], text


def better(comparison: Comparison, _: Significances, methods: Sequence[str]) -> Verdict:
    """The first method has the better rank than the second, as the mean over all trials."""
    mean = dict(zip(comparison.methods, comparison.average_rank()[:, 1:].mean(axis=1), strict=True))
    first, second = (mean[method] for method in methods)
    return bool(first < second), f"mean rank over all trials {first:.3f} against {second:.3f}"


def none_differ(_: Comparison, tests: Significances, methods: Sequence[str]) -> Verdict:
    """No two methods differ significantly over tasks."""
    pairs = [(trial, *sorted(pair)) for trial, test in sorted(tests["tasks"].items()) for pair in _differing(test)]
    text = "; ".join(f"{a} and {b} after {trial}" for trial, a, b in pairs)
    return not pairs, f"{text} differ" if pairs else "no pair does"


def differs(_: Comparison, tests: Significances, methods: Sequence[str]) -> Verdict:
    """The first method differs significantly from the others, over tasks and at every trial that is tested."""
    first, *others = methods

    def missed(by_trial: Mapping[int, Significance]) -> list[str]:
        alike = {t: [o for o in others if {first, o} not in _differing(test)] for t, test in sorted(by_trial.items())}
        return [f"not from {' and '.join(names)} after {t}" for t, names in alike.items() if names]

    by_unit = {unit: missed(by_trial) for unit, by_trial in tests.items()}
    always = "it does at every trial tested"
    return not by_unit["tasks"], "; ".join(f"over {unit}: {', '.join(m) or always}" for unit, m in by_unit.items())


CHECKS: Mapping[str, Callable[..., Verdict]] = {f.__name__: f for f in (leads, better, none_differ, differs)}
"""By the name of `check` in `published.toml`."""


def _differing(test: Significance) -> list[set[str]]:
    rows, columns = np.nonzero(np.triu(test.wilcoxon_p <= test.alpha, 1))
    return [{test.methods[i], test.methods[j]} for i, j in zip(rows, columns, strict=True)]


def statements(experiment: Mapping[str, Any], comparison: Comparison, tests: Significances) -> Iterator[Row]:
    """Yields what the paper says in words."""
    for claim in experiment["claims"]:
        text, methods = claim["text"], claim["methods"]
        options = {name: value for name, value in claim.items() if name not in ("text", "check")}
        if absent := [method for method in methods if method not in comparison.methods]:
            yield text, f"{', '.join(absent)} missing", "cannot be told"
        else:
            agrees, found = CHECKS[claim["check"]](comparison, tests, **options)
            yield text, found, "yes" if agrees else "no"


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
                    found = averages[comparison.methods.index(method), int(trial)]
                    yield text, f"{found:.4f}", "yes" if abs(found - value) <= TOLERANCE else "no"


def section(experiment: Mapping[str, Any], traces: Path, out: Path) -> tuple[Section, list[Row], int] | None:
    """Draws an experiment.

    Returns:
      The section, what it states, and how many reference numbers the traces do not give; None where the folder holds
      fewer than two of the traces.
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
    said, numbers = list(statements(experiment, comparison, tests)), list(reference_numbers(experiment, comparison))
    note = "Ranks are pooled over runs; significance is over tasks."
    tables = [_table("What the paper says", ("In our words", "On these traces", "Borne out"), said, note)]
    if numbers:
        note = f"Pooled over runs; equal to within {TOLERANCE:g}."
        tables.append(_table("Reference values", ("Value", "On these traces", "Equal"), numbers, note))
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
    return result, [*said, *numbers], sum(agrees == "no" for *_, agrees in numbers)


def _table(caption: str, columns: Row, rows: Sequence[Row], note: str) -> Table:
    cells = tuple((Cell(a, a), Cell(b, b), Cell(c, c, c == "no")) for a, b, c in rows)
    return Table(caption, columns, cells, note, sortable=False, words=True)


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
        wrong += drawn[2]
        for what, found, agrees in drawn[1]:
            print(f"   [{agrees}] {what} (traces: {found})")
    if not sections:
        raise DreError(f"{traces} holds the traces of no experiment")
    write_page(out / "report.html", TITLE, sections, tuple(DECLARED["introduction"]))
    print(f"{len(sections)} experiments in {out / 'report.html'}; reference numbers not met: {wrong}")
    return wrong


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the paper's figures on HPO-B from the published traces.")
    default = REPOSITORY.parent / "shared" / "data" / "hpob-traces"
    parser.add_argument("--traces", type=Path, default=default, help="folder of the published result files")
    parser.add_argument("--out", type=Path, default=Path("out/published"), help="folder for the page and the figures")
    options = parser.parse_args(given)
    # The published files have defects that are known and stated on the page.
    warnings.simplefilter("ignore", DataWarning)
    with errors_in_one_line():
        return 1 if run(options.traces, options.out) else 0


if __name__ == "__main__":
    sys.exit(main())
