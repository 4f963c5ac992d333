"""Methods on the same tasks and initial designs: the page of docs/results/methods.md, and the report.

    python scripts/compare_methods.py --out DIR                                        # all methods, bundled data
    python scripts/compare_methods.py --data bundled --data FOLDER --out DIR           # hours of 2 cores
    python scripts/compare_methods.py --methods dre gp tpe --designs test0 --out DIR   # some of it

FOLDER is in HPO-B's layout; ``bundled`` stands for the data that ship. Finished runs are kept in DIR: rerun the
command to resume. A method whose package is missing is left out, and said to be.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from study import errors_in_one_line, markdown_table

from dre_jax.data.files import make_folder, write_text
from dre_jax.errors import MissingExtraError
from dre_jax.hpob.jobs import BUNDLED, Job, check_method, collect, complete_methods, cost_of, make_jobs, run_jobs
from dre_jax.hpob.timing import HISTORY, REPEATS, SPACE, Times, suggestion_times
from dre_jax.methods import METHODS
from dre_jax.methods.dre.variants import LOSSES
from dre_jax.methods.registry import real_name
from dre_jax.report import Comparison, compare, write_results_and_report
from dre_jax.runtime.setup import prepare

AT = (5, 10, 25, 50, 100)
_TOP = """\
# Methods compared

Methods of the papers on the same loop, tasks and initial designs; made by `scripts/compare_methods.py`, do not
edit by hand. Rank (among the methods of this table; 1 is the best) and regret are means over search spaces, so that
none counts for more than another; ± is the standard error of that mean, tasks drawn within search spaces. Sorted by
the last rank. A suggestion is timed once it is warm."""
_TIMED = f"""\
Timed alone on the machine: learning from the past tasks of the bundled space `{SPACE}`; the first suggestion after
{HISTORY} trials on its first test task, which compiles; and the median of {REPEATS} more. All runs of the table, with
what was compiled for them, took the core minutes beside it, among other work, where they were made in one go."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # Those by a loss take 1000 epochs a trial, and have a page of their own (docs/results/losses.md).
    default = [name for name in METHODS if not name.startswith(tuple(LOSSES))]
    parser.add_argument("--methods", nargs="+", default=default, help="by name (default: all but those of losses)")
    parser.add_argument("--data", action="append", help="a folder, or bundled; may be given again (default: bundled)")
    parser.add_argument("--out", type=Path, required=True, help="results, page and the report")
    parser.add_argument("--designs", default="test0,test1,test2,test3,test4", help="initial designs")
    parser.add_argument("--trials", type=int, default=50, help="after the initial design")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    args = parser.parse_args()
    prepare()
    make_folder(args.out)
    names = available(args.methods)
    designs = tuple(args.designs.split(","))
    jobs = make_jobs(names, args.data or [BUNDLED], designs=designs, out=args.out, trials=args.trials)
    run_jobs(jobs, args.workers, "compare")
    results = {name: collect(jobs, name) for name in complete_methods(jobs)}
    times = {name: suggestion_times(name, args.out) for name in results}
    at = [t for t in AT if t <= args.trials] or [args.trials]
    text = page(compare(results), jobs, times, at)
    print(text)
    write_text(args.out / "methods.md", text)
    title = "Methods compared"
    write_results_and_report(results, args.out, at, reference="dre" if "dre" in results else None, title=title)


def available(names: Sequence[str]) -> list[str]:
    """The methods whose packages are there; the others are told of on standard error."""
    available_names = []
    for name in dict.fromkeys(map(real_name, names)):
        try:
            check_method(name)
            available_names.append(name)
        except MissingExtraError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return available_names


def page(comparison: Comparison, jobs: Sequence[Job], times: dict[str, Times], at: Sequence[int]) -> str:
    facts = (
        f"{len(comparison.runs)} runs a method of {jobs[0].trials} trials, {len(set(comparison.tasks))} test tasks of "
        f"{len(comparison.spaces)} search spaces ({', '.join(comparison.spaces)}), initial designs of each task: "
        f"{len(jobs[0].designs)}."
    )
    ranks = comparison.average_rank("spaces")
    regrets, errors = comparison.average_regret("spaces"), comparison.standard_error("spaces")
    rows, timed = [], []
    for i in np.argsort(ranks[:, at[-1]], kind="stable"):
        name = comparison.methods[i]
        transfer = "yes" if name in METHODS and METHODS[name].transfer else "no"  # a class of one's own sees no past
        numbers = [f"{ranks[i, t]:.2f}" for t in at] + [f"{regrets[i, t]:.4f} ± {errors[i, t]:.4f}" for t in at]
        fit, first, warm = times[name]
        seconds = cost_of(jobs, name).seconds
        rows.append([f"`{name}`", transfer, *numbers, f"{1e3 * warm:.0f}"])
        cells = [f"{fit:.1f}" if fit else "", f"{first:.1f}", f"{1e3 * warm:.1f}"]
        timed.append([f"`{name}`", *cells, f"{seconds / 60:.1f}" if seconds else ""])
    heads = ["method", "transfer", *(f"{what} at {t}" for what in ("rank", "regret") for t in at), "ms a suggestion"]
    parts = [_TOP, textwrap.fill(facts, 120), markdown_table(heads, rows), "## What it took", _TIMED]
    heads = ["method", "fit, s", "first suggestion, s", "suggestion, ms", "all runs, core minutes"]
    return "\n\n".join([*parts, markdown_table(heads, timed)]) + "\n"


if __name__ == "__main__":
    with errors_in_one_line():
        main()
