"""Every method on the same tasks and initial designs: a table, and the report's page.

    python scripts/compare_methods.py --out DIR                                        # all methods, bundled data
    python scripts/compare_methods.py --data bundled --data FOLDER --out DIR           # hours of 2 cores
    python scripts/compare_methods.py --methods dre gp tpe --designs test0 --out DIR   # some of it
    python scripts/compare_methods.py --methods dre gp --reverse --permute --out DIR   # where the past misleads

FOLDER is in HPO-B's layout; ``bundled`` stands for the data that ship. Finished runs are kept in DIR: rerun the
command to resume. A method whose package is missing is left out, and said to be.

``--reverse`` and ``--permute`` have the methods learn from the true past and optimise test tasks whose responses are
reversed, or dealt out to other rows. Such tasks are written to DIR/data. Their results, reports and page have names of
their own, so that DIR may hold the true tasks' too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from comparing.misled import GUARD, misled_page
from comparing.page import page
from data_variants import write_variant
from one_line import errors_in_one_line

from dre_jax.checks import parse_trials
from dre_jax.data.files import make_folder, write_text
from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.hpob.jobs import (
    BUNDLED,
    Job,
    check_method,
    collect,
    complete_methods,
    cost_of,
    make_jobs,
    run_jobs,
)
from dre_jax.hpob.timing import suggestion_times
from dre_jax.methods import METHODS
from dre_jax.methods.dre.variants import LOSSES
from dre_jax.methods.registry import real_name
from dre_jax.report import compare, write_results_and_report
from dre_jax.runtime.setup import prepare

AT = (5, 10, 25, 50, 100)
# Those by a loss take 1000 epochs a trial, and have a page of their own (docs/results/losses.md).
OF_LOSSES = tuple(LOSSES)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", help="by name (default: all, but not those of other losses)")
    parser.add_argument("--data", action="append", help="a folder, or bundled; may be given again (default: bundled)")
    parser.add_argument("--out", type=Path, required=True, help="results, tables and the report")
    parser.add_argument("--split", choices=("test", "validation"), default="test", help="whose tasks are optimised")
    parser.add_argument("--designs", default="test0,test1,test2,test3,test4", help="initial designs")
    parser.add_argument("--trials", type=int, default=50, help="after the initial design")
    parser.add_argument("--at", help="trials of the tables (default: those of 5,10,25,50,100 that there are)")
    for name, how in (("--reverse", "reversed"), ("--permute", "permuted")):
        parser.add_argument(name, dest="variants", action="append_const", const=how, help=f"test tasks are {how}")
    parser.add_argument("--seed", type=int, default=0, help="of fitting and of the picks")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--page", type=Path, help="where the tables go (default: OUT/methods.md or reversed.md)")
    parser.add_argument("--title", default="Methods compared", help="of that page")
    parser.add_argument("--table-only", action="store_true", help="make the tables of what is finished")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    at = table_trials(args)
    prepare()
    make_folder(args.out)
    names = available(args.methods or [name for name in METHODS if not name.startswith(OF_LOSSES)])
    if args.variants:
        compare_variants(args, names, at)
        return
    jobs = jobs_of(args, names, args.data or [BUNDLED])
    if not args.table_only:
        run_jobs(jobs, args.workers, "compare")
    write_page(args, jobs, complete_methods(jobs), at)


def table_trials(args: argparse.Namespace) -> tuple[int, ...]:
    """The trials of the tables. Raises `ConfigError` for options that do not go together as well."""
    if args.trials < 1:
        raise ConfigError(f"--trials must be at least 1, but got {args.trials}")
    if args.variants and args.split != "test":
        raise ConfigError(f"--reverse and --permute are for test tasks, but got --split {args.split}")
    default = [t for t in AT if t <= args.trials] or [args.trials]
    at = sorted(set(parse_trials(args.at, "--at"))) if args.at else default
    if not 1 <= at[0] <= at[-1] <= args.trials:
        raise ConfigError(f"--at must be from 1 to --trials {args.trials}, but got {args.at}")
    return tuple(at)


def jobs_of(args: argparse.Namespace, names: Sequence[str], data: Sequence[str]) -> list[Job]:
    return make_jobs(
        names,
        data,
        designs=tuple(args.designs.split(",")),
        out=args.out,
        split=args.split,
        trials=args.trials,
        seed=args.seed,
    )


def compare_variants(args: argparse.Namespace, names: Sequence[str], at: tuple[int, ...]) -> None:
    """Compares methods on variants of the data, each by itself."""
    if GUARD not in names:
        raise ConfigError(f"--reverse and --permute compare with {GUARD}, but --methods are {', '.join(names)}")
    data = args.data or [BUNDLED]
    jobs = {
        how: jobs_of(args, names, [write_variant(one, args.out / "data", how) for one in data])
        for how in dict.fromkeys(args.variants)
    }
    if not args.table_only:
        run_jobs([job for own in jobs.values() for job in own], args.workers, "compare")
    results = {how: {name: collect(own, name) for name in complete_methods(own)} for how, own in jobs.items()}
    flags = {"reversed": "--reverse", "permuted": "--permute"}
    command = command_of(args, *(flags[how] for how in jobs))
    text = misled_page(args.title, command, {how: compare(of_variant) for how, of_variant in results.items()}, at)
    print(text)
    write_text(args.page or args.out / f"{'-'.join(jobs)}.md", text)
    for how, of_variant in results.items():
        write_results_and_report(of_variant, args.out / how, at, reference=GUARD, title=f"{args.title}, {how}")


def available(names: Sequence[str]) -> list[str]:
    """The methods whose packages are there; the others are told of on standard error."""
    available_names = []
    for name in dict.fromkeys(map(real_name, names)):
        try:
            check_method(name)
        except MissingExtraError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        available_names.append(name)
    return available_names


def write_page(args: argparse.Namespace, jobs: Sequence[Job], methods: Sequence[str], at: tuple[int, ...]) -> None:
    results = {name: collect(jobs, name) for name in methods}
    comparison = compare(results)
    costs = {name: cost_of(jobs, name) for name in methods}
    times = {name: suggestion_times(name, args.out) for name in methods}
    text = page(args.title, command_of(args), comparison, costs, times, jobs, at)
    print(text)
    write_text(args.page or args.out / "methods.md", text)
    write_results_and_report(results, args.out, at, reference="dre" if "dre" in results else None, title=args.title)


def command_of(args: argparse.Namespace, *more: str) -> str:
    data = " ".join(f"--data {one if one == BUNDLED else Path(one).name}" for one in args.data or [BUNDLED])
    methods = f" --methods {' '.join(args.methods)}" if args.methods else ""
    at = ["--at", args.at] if args.at else []
    options = "".join(f" {word}" for word in (*at, *more))
    return (
        f"scripts/compare_methods.py{methods} {data} --designs {args.designs} --trials {args.trials}{options} --out DIR"
    )


if __name__ == "__main__":
    with errors_in_one_line():
        main()
