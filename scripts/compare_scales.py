"""Methods side by side on a table of trainings whose tasks have features, such as the size of the model.

``python scripts/compare_scales.py --out searches.jsonl --csv FILE --task moe_name D --features N Na D
--parameters lr bs --log lr bs N Na D --value "smooth loss"
[--formula "lr=1.79*N**-0.713*D**0.307" "bs=0.58*D**0.571/2048"]``

Each row of a file is a training, with the name of its task, the features of the task, hyperparameters, and a value.
Hyperparameters that are texts are choices. Several files are several search spaces, whose tasks are averaged together.
Two protocols decide which tasks are new: each task in turn, with all others as its past (`leave-one-out`), or the
largest third (`small-to-large`). A search starts from no trial. If a suggested configuration is not in the table, the
nearest row that is left is evaluated. Regret is 0 at the best row of a task and 1 at its median row; that of random
search is its expectation. Finished searches are in ``--out``: rerun the command to resume. A search ends after
``--limit`` seconds, and a table does not count tasks whose searches did not finish.

BoTorch and BayBE are installed with ``pip install -r scripts/rivals/requirements.txt``; a method whose packages are
missing is left out.
"""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from command_line import errors_in_one_line
from compare_random import expected_random
from rivals.jobs import Study, append_searches, read_searches
from rivals.outcomes import regrets, standard_error
from rivals.problems import Problem, Rival, Table, Task
from rivals.scale_methods import METHODS, make_rival
from rivals.scale_tables import PROTOCOLS, Columns, ScaleTables, parse_formula, read_tables
from rivals.search import Maker, search

from dre_jax.errors import ConfigError, DataError
from dre_jax.runtime.setup import prepare
from dre_jax.tuning import Float
from dre_jax.tuning.trials.objectives import DIRECTIONS

AT = (0, 1, 3, 5, 10)
"""Numbers of trials after the first suggestion that the tables show."""
_N_TRIALS = max(AT) + 1


def main(arguments: list[str] | None = None) -> int:
    """Runs the searches that are missing, prints two tables for each protocol, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="finished searches, one JSON line each")
    parser.add_argument("--csv", type=Path, nargs="+", required=True, help="a row for each training")
    parser.add_argument("--task", nargs="+", required=True, help="columns that name a task together")
    parser.add_argument("--features", nargs="+", required=True, help="columns of features of the tasks")
    parser.add_argument("--parameters", nargs="+", default=[], help="columns of hyperparameters; by default all others")
    parser.add_argument(
        "--log",
        nargs="*",
        help="features and hyperparameters on a log scale; by default all whose "
        "numbers are positive and the largest more than ten times the smallest",
    )
    parser.add_argument("--value", required=True, help="the column of values")
    parser.add_argument("--direction", choices=DIRECTIONS, default="minimize")
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--formula", nargs="+", default=[], help="an expression in the features by hyperparameter")
    parser.add_argument("--size", help="an expression in the features that orders the tasks; by default their product")
    parser.add_argument("--tasks", type=int, default=1000, help="maximum number of new tasks of a file and protocol")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds of a search, after which it ends")
    args = parser.parse_args(arguments)
    prepare()
    if args.tasks < 1:
        raise ConfigError(f"--tasks must be 1 or more, but got {args.tasks}")
    columns = Columns(args.task, args.features, args.parameters, args.log, args.value, args.direction)
    spaces = [read_tables(path, columns) for path in args.csv]
    names = Counter(task for tables in spaces for task in tables.tasks)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise DataError(
            f"tasks of several files must have different names, but {repeated[0]!r} is in {names[repeated[0]]}"
        )
    methods = [name for name in METHODS if name in args.methods and (name != "formula" or args.formula)]
    methods = [name for name in methods if is_installed(name)]
    for protocol in args.protocols:
        curves = []
        for tables in spaces:
            formula = formula_of(args.formula, tables)
            splits = dict(tables.splits(protocol, args.size or " * ".join(args.features), args.tasks))
            for task, past in splits.items():
                run_searches(args.out, args.limit, protocol, tables, task, past, methods, formula)
            curves.append(read_curves(args.out, protocol, {task: tables.table(task) for task in splits}, methods))
        print(f"\n{protocol}\n")
        print_tables({title: np.concatenate([each[title] for each in curves]) for title in curves[0]})
    return 0


def is_installed(method: str) -> bool:
    """Returns whether the packages of a method are installed, and prints a line if they are not."""
    missing = [package for package in METHODS[method].packages if find_spec(package) is None]
    if missing:
        print(f"{method} is left out: {', '.join(missing)} must be installed", file=sys.stderr)
    return not missing


def formula_of(texts: Sequence[str], tables: ScaleTables) -> Mapping[str, str] | None:
    """Returns expressions by hyperparameter, None of no text. Raises `ConfigError` if a hyperparameter is a choice."""
    choices = [name for name, parameter in tables.space.items() if not isinstance(parameter, Float)]
    if texts and choices:
        raise ConfigError(f"--formula must be of numbers, but {choices[0]!r} is a choice")
    return parse_formula(texts, tables.columns.parameters) if texts else None


def run_searches(
    out: Path,
    limit: float,
    protocol: str,
    tables: ScaleTables,
    task: str,
    past: list[str],
    methods: list[str],
    formula: Mapping[str, str] | None,
) -> None:
    """Searches a new task by each method that has not done so, and appends the searches to a file."""
    done = read_searches(out, _N_TRIALS)
    of_table = tables.table(task)
    searched = Task(task, Problem(tables.space, {}), design=[], table=of_table)
    for method in methods:
        study = Study(method, protocol, task, 0)
        if study not in done:
            make = maker_of(partial(make_rival, method, tables, task, past, formula))
            found = search(searched, make, study.seed, _N_TRIALS, limit)
            append_searches(out, {study: found})
            print(f"{protocol}, {task}: {method}", file=sys.stderr, flush=True)


def maker_of(make: Callable[[int], Rival]) -> Maker:
    """Returns a function for `search` from one of the seed alone, which knows the problem."""
    return lambda _problem, _rows, seed: make(seed)


def read_curves(out: Path, protocol: str, tables: Mapping[str, Table], methods: list[str]) -> dict[str, np.ndarray]:
    """Returns the regrets f64[tasks, T] after each trial of each method, and of random search, by title."""
    searches = read_searches(out, _N_TRIALS)
    curves = {
        METHODS[method].title: np.array(
            [curve(each, searches[Study(method, protocol, task, 0)].values) for task, each in tables.items()]
        )
        for method in methods
    }
    return {**curves, "random search": np.array([random_curve(each) for each in tables.values()])}


def print_tables(curves: Mapping[str, np.ndarray]) -> None:
    """Prints the mean regret of each method, and the mean difference to the first one on the same tasks."""
    first, *others = curves
    print(table(curves))
    print(f"\nRegret minus that of {first} on the same tasks:\n")
    print(table({title: curves[title] - curves[first] for title in others}, sign="+"))


def table(curves: Mapping[str, np.ndarray], sign: str = "") -> str:
    """Returns means ± standard errors over tasks, in Markdown; NaN is that of a search that did not finish."""
    heads = ["method", "tasks", "first suggestion", *(f"after {t} more" for t in AT[1:])]
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for title, of_tasks in curves.items():
        finished = of_tasks[~np.isnan(of_tasks).any(axis=1)]
        cells = ["–"] * len(AT)
        if len(finished):
            mean, error = finished.mean(axis=0), standard_error(finished)
            cells = [f"{mean[t]:{sign}.3f} ± {error[t]:.3f}" for t in AT]
        lines.append(f"| {title} | {len(finished)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def curve(table: Table, values: list[float]) -> np.ndarray:
    """Returns the regret f64[T] after each trial."""
    return regrets(values, float(table.values.max()), float(np.median(table.values)), 1, _N_TRIALS - 1)


def random_curve(table: Table) -> np.ndarray:
    """Returns the expected regret f64[T] of random search after each trial."""
    rows = np.append(table.values, table.values.min())  # the last row is a first trial that is never better
    expected = expected_random(rows, np.array([len(table.values)]), _N_TRIALS)[1:]
    return curve(table, list(expected))


if __name__ == "__main__":
    with errors_in_one_line():
        sys.exit(main())
