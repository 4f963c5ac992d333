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

from comparing.page import page
from one_line import errors_in_one_line

from dre_jax.cli.compare import check_method, finished, run, save
from dre_jax.cli.runtime import prepare
from dre_jax.data.files import make_folder, write_text
from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.experiment import BUNDLED, Job, collect, cost_of, make_jobs, times_of
from dre_jax.methods import METHODS
from dre_jax.methods.ensembles import LOSSES
from dre_jax.report import compare

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
    given = arguments()
    if given.trials < 1:
        raise ConfigError(f"--trials must be at least 1, but got {given.trials}")
    prepare()
    make_folder(given.out)
    jobs = make_jobs(
        available(given.methods or [name for name in METHODS if not name.startswith(OF_LOSSES)]),
        given.data or [BUNDLED],
        designs=tuple(given.designs.split(",")),
        out=given.out,
        split=given.split,
        trials=given.trials,
        seeds=[given.seed],
    )
    if not given.table_only:
        run(jobs, given.workers, "compare", quiet=False)
    tell(given, jobs, finished(jobs))


def available(names: Sequence[str]) -> list[str]:
    """The methods whose packages are there; the others are told of on standard error."""
    found = []
    for name in dict.fromkeys(names):
        try:
            check_method(name)
        except MissingExtraError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        found.append(name)
    return found


def tell(given: argparse.Namespace, jobs: Sequence[Job], methods: Sequence[str]) -> None:
    results = {name: collect(jobs, name) for name in methods}
    comparison = compare(results)
    costs = {name: cost_of(jobs, name) for name in methods}
    at = tuple(t for t in AT if t <= comparison.n_trials) or (comparison.n_trials,)
    data = " ".join(f"--data {one if one == BUNDLED else Path(one).name}" for one in given.data or [BUNDLED])
    chosen = f" --methods {' '.join(given.methods)}" if given.methods else ""
    beside = f" --published {given.published.name}" if given.published else ""
    command = f"scripts/compare_methods.py{chosen} {data} --designs {given.designs} --trials {given.trials}{beside}"
    times = {name: times_of(name, given.out) for name in methods}
    text = page(given.title, f"{command} --out DIR", comparison, costs, times, jobs, at, given.published)
    print(text)
    write_text(given.page or given.out / "methods.md", text)
    save(results, given.out, at, reference="dre" if "dre" in results else None, title=given.title)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
