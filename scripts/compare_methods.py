"""Every method on the same tasks and initial designs: a table, the report's page, and where DRE loses.

    python scripts/compare_methods.py --out DIR                                        # all methods, bundled data
    python scripts/compare_methods.py --data bundled --data FOLDER --out DIR           # hours of 2 cores
    python scripts/compare_methods.py --methods dre gp tpe --designs test0 --out DIR   # some of it

FOLDER is in HPO-B's layout; ``bundled`` stands for the data that ship. What is finished is kept in DIR: the same
command goes on where it was, run by run. A method whose package is missing is left out, and said to be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from comparing.jobs import BUNDLED, Job, collect, cost_of, jobs, run_all
from comparing.page import page
from comparing.timing import times_of
from one_line import errors_in_one_line

from dre_jax.cli.progress import Bar
from dre_jax.cli.runtime import prepare
from dre_jax.data import write_results
from dre_jax.data.files import make_folder, write_text
from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.methods import METHODS, find
from dre_jax.methods.ensembles import LOSSES
from dre_jax.report import compare, write_report

AT = (5, 10, 25, 50)
# Those by a loss take 1000 epochs a trial, and have a page of their own (docs/losses.md).
OF_LOSSES = tuple(LOSSES)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", help="by name (default: all, but not those of other losses)")
    parser.add_argument("--data", action="append", help="a folder, or bundled; may be given again (default: bundled)")
    parser.add_argument("--out", type=Path, required=True, help="results, tables and the report")
    parser.add_argument("--split", choices=("test", "validation"), default="test", help="whose tasks are optimised")
    parser.add_argument("--designs", default="test0,test1,test2,test3,test4", help="initial designs")
    parser.add_argument("--trials", type=int, default=50, help="after the initial design")
    parser.add_argument("--seed", type=int, default=0, help="of fitting and of the picks")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--page", type=Path, help="where the tables go (default: OUT/methods.md)")
    parser.add_argument("--title", default="Methods compared", help="of that page")
    parser.add_argument("--published", type=Path, help="results published for HPO-B, whose order is compared")
    parser.add_argument("--table-only", action="store_true", help="make the tables of what is finished")
    return parser.parse_args()


def main() -> None:
    """Runs what is missing, prints the table, and writes page and report."""
    given = arguments()
    if given.trials < 1:
        raise ConfigError(f"--trials must be at least 1, but got {given.trials}")
    prepare()
    make_folder(given.out)
    methods = available(given.methods or [name for name in METHODS if not name.startswith(OF_LOSSES)])
    todo = jobs(
        methods,
        given.data or [BUNDLED],
        split=given.split,
        designs=tuple(given.designs.split(",")),
        trials=given.trials,
        seed=given.seed,
        out=given.out,
    )
    if not given.table_only:
        finished_jobs = run_all(todo, given.workers)
        begun, total = next(finished_jobs)
        with Bar("compare", total, quiet=False, start=begun, unit="jobs") as bar:
            for done, _ in finished_jobs:
                bar.advance_to(done)
    tell(given, todo, finished(todo, methods))


def available(names: Sequence[str]) -> list[str]:
    """The methods whose packages are there; the others are told of on standard error."""
    found = []
    for name in dict.fromkeys(names):
        entry = find(name)
        try:
            if entry.host is not None:
                entry.host()
        except MissingExtraError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        found.append(name)
    return found


def finished(todo: Sequence[Job], methods: Sequence[str]) -> list[str]:
    """The methods that are done on every search space; the others are told of on standard error."""
    done = []
    for name in methods:
        own = [job for job in todo if job.method == name]
        ready = sum(job.costs().exists() for job in own)
        if ready == len(own):
            done.append(name)
        else:
            print(f"{name} is left out: finished on {ready} of {len(own)} search spaces", file=sys.stderr)
    return done


def tell(given: argparse.Namespace, todo: Sequence[Job], methods: Sequence[str]) -> None:
    """The page, and the report on the same runs."""
    results = {name: collect(todo, name) for name in methods}
    comparison = compare(results)
    costs = {name: cost_of(todo, name) for name in methods}
    at = tuple(t for t in AT if t <= comparison.n_trials) or (comparison.n_trials,)
    data = " ".join(f"--data {one if one == BUNDLED else Path(one).name}" for one in given.data or [BUNDLED])
    chosen = f" --methods {' '.join(given.methods)}" if given.methods else ""
    beside = f" --published {given.published.name}" if given.published else ""
    command = f"scripts/compare_methods.py{chosen} {data} --designs {given.designs} --trials {given.trials}{beside}"
    times = {name: times_of(name, given.out) for name in methods}
    text = page(given.title, f"{command} --out DIR", comparison, costs, times, todo, at, given.published)
    print(text)
    write_text(given.page or given.out / "methods.md", text)
    files = {}
    make_folder(given.out / "results")
    for name, found in results.items():
        files[name] = given.out / "results" / f"{name}.json"
        write_results(files[name], found)
    write_report(files, given.out / "report", at=at, reference="dre" if "dre" in files else None, title=given.title)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
