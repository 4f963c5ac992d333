"""Rivals side by side: tuners of other libraries, and ours, with the same past studies, designs and numbers of trials.

``python scripts/compare_rivals.py --out rivals.jsonl [--data DIR ...] [--yahpo DIR --spaces rbv2_rpart iaml_glmnet]
[--wide levy-50 digits-66]
[--rivals hedged-prior baybe random] [--trials 18] [--seeds 1] [--tasks 5] [--workers 1]``

``--data`` names folders in HPO-B's layout; tasks and past studies are those of ``compare_random.py``. ``--yahpo`` is a
checkout of the public repository `slds-lmu/yahpo_data`; the past studies are random trials of other tasks. ``--wide``
names tasks of many hyperparameters without past studies (`rivals/wide_tasks.py`). Each task
begins with a design of two random trials, which ``--trials`` does not count. Regret is 0 at the best known value of a
task and 1 at the median random configuration. Finished searches are in the file: rerun the command to resume.

Install the rivals with ``pip install -r scripts/rivals/requirements.txt``; one whose packages are missing is left out.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from command_line import errors_in_one_line
from compare_random import family_of
from derive_data import folder
from rivals.jobs import Job, Study, read_searches, run_jobs
from rivals.live_tasks import LiveFamily
from rivals.outcomes import frame_of, mean_curves, table
from rivals.registry import RIVALS
from rivals.search import Search
from rivals.table_tasks import TableFamily
from rivals.wide_tasks import WIDE, WideFamily

from dre_jax.data.files import write_json
from dre_jax.data.hpob import list_spaces
from dre_jax.errors import ConfigError
from dre_jax.runtime.setup import prepare

AT = (3, 8, 18, 38, 58, 98)
"""Numbers of trials after the design that the table shows."""
_N_DESIGNS = 5
AnyFamily = TableFamily | LiveFamily | WideFamily


def main(arguments: list[str] | None = None) -> int:
    """Runs what is missing, prints the tables, and returns the exit status: 1 if a rival failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="finished searches, one JSON line each")
    parser.add_argument("--data", nargs="+", default=[], help="folders in HPO-B's layout, or `bundled`")
    parser.add_argument("--yahpo", type=Path, help="a checkout of yahpo_data")
    parser.add_argument("--spaces", nargs="+", default=["rbv2_rpart", "iaml_glmnet"], help="live spaces")
    parser.add_argument("--wide", nargs="+", choices=WIDE, default=[], help="tasks of many hyperparameters")
    parser.add_argument("--rivals", nargs="+", choices=list(RIVALS), default=list(RIVALS))
    parser.add_argument("--trials", type=int, default=18, help="number after the design")
    parser.add_argument("--seeds", type=int, default=1, help=f"designs of each task, at most {_N_DESIGNS}")
    parser.add_argument("--tasks", type=int, default=5, help="maximum number of tasks of a family")
    parser.add_argument("--studies", type=int, default=10, help="maximum number of past studies")
    parser.add_argument("--past-rows", type=int, default=60, help="number of trials of a past study of a table")
    parser.add_argument("--past-trials", type=int, default=40, help="number of trials of a live past study")
    parser.add_argument("--rows", type=int, default=800, help="maximum number of rows of a table")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds of a search, after which it ends")
    parser.add_argument("--by-family", action="store_true", help="print a table of each family too")
    parser.add_argument("--together", nargs="+", default=[], help="prefixes of search spaces that count as one family")
    parser.add_argument("--curves", type=Path, metavar="FILE", help="write the mean regret after each trial, as JSON")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args(arguments)
    prepare()
    families = families_of(args)
    rivals = list(installed(args.rivals))
    done = frozenset(read_searches(args.out, args.trials))
    jobs = [
        Job(rival, family, group, seed, args.trials, args.limit, done)
        for seed in range(args.seeds)
        for family in families
        for group in family.groups()
        for rival in rivals
        if not all(Study(rival, family.name, task, seed) in done for task in samples_of(family))
    ]
    has_failed = run_jobs(jobs, args.out, args.workers)
    searches, frame = read_families(families, args)
    print_tables(searches, frame, rivals, args)
    if args.curves:
        write_json(args.curves, curves_of(frame, args.seeds))
    return int(has_failed)


def families_of(args: argparse.Namespace) -> list[AnyFamily]:
    """Returns the families that are asked for. Raises `ConfigError` for none, or too many designs."""
    if not (args.data or args.wide) and args.yahpo is None:
        raise ConfigError("rivals are compared on --data, --yahpo or --wide, but got none of them")
    if not 1 <= args.seeds <= _N_DESIGNS:
        raise ConfigError(f"--seeds must be 1 to {_N_DESIGNS}, but got {args.seeds}")
    tables = [
        TableFamily(name, data, args.tasks, args.studies, args.past_rows, args.rows)
        for data in args.data
        for name in list_spaces(folder(data))
    ]
    spaces = args.spaces if args.yahpo is not None else []
    live = (LiveFamily(name, args.yahpo, args.tasks, args.studies, args.past_trials) for name in spaces)
    return [*tables, *live, *(WideFamily(name, args.tasks) for name in args.wide)]


@cache
def samples_of(family: AnyFamily) -> dict[str, np.ndarray]:
    """Returns values of all or many configurations of each task of a family, which take seconds to compute."""
    return family.samples()


def installed(rivals: Sequence[str]) -> Iterator[str]:
    """Yields the rivals whose packages are installed, and prints a line about each other one."""
    for name in rivals:
        missing = RIVALS[name].missing_packages()
        if missing:
            print(f"{name} is left out: {', '.join(missing)} must be installed", file=sys.stderr)
        else:
            yield name


def read_families(families: Sequence[AnyFamily], args: argparse.Namespace) -> tuple[dict[Study, Search], pd.DataFrame]:
    """Returns the searches of all tasks of the families, and their regrets after the design and after each trial.

    Families that count as one have its name, and the names of their tasks begin with their own.
    """
    samples = {(family.name, name): values for family in families for name, values in samples_of(family).items()}
    searches = {study: found for study, found in read_searches(args.out, args.trials).items() if study[1:3] in samples}
    frame = frame_of(searches, samples, range(args.trials + 1), args.trials)
    names = {study: _counted(study, args.together) for study in searches}
    frame.index = pd.MultiIndex.from_tuples([names[Study(*key)] for key in frame.index], names=Study._fields)
    return {names[study]: found for study, found in searches.items()}, frame


def _counted(study: Study, together: Sequence[str]) -> Study:
    family = family_of(study.family, together)
    return study if family == study.family else study._replace(family=family, task=f"{study.family}/{study.task}")


def curves_of(frame: pd.DataFrame, n_seeds: int) -> dict[str, Any]:
    """Returns the mean regret of each rival after the design and after each trial, by family, with numbers of tasks."""
    tasks = frame.index.droplevel(["rival", "seed"]).unique().get_level_values("family")
    frame = frame[frame.index.get_level_values("seed") < n_seeds]
    return {"tasks": tasks.value_counts(sort=False).to_dict(), "families": mean_curves(frame)}


def print_tables(
    searches: dict[Study, Search], frame: pd.DataFrame, rivals: Sequence[str], args: argparse.Namespace
) -> None:
    """Prints a table of the tasks with a past and one of those without, and with `--by-family` one for each family."""
    frame = frame[[t for t in AT if t <= args.trials]]
    selected = {study: found for study, found in searches.items() if study.rival in rivals and study.seed < args.seeds}
    with_past = {study[1:3] for study in selected if RIVALS[study.rival].transfer}
    for title, has_past in (("with", True), ("without", False)):
        part = {study: found for study, found in selected.items() if (study[1:3] in with_past) == has_past}
        if part:
            print(f"\nTasks {title} past studies.\n\n{table(frame.loc[list(part)], part)}")
    for family in dict.fromkeys(study.family for study in selected) if args.by_family else []:
        part = {study: found for study, found in selected.items() if study.family == family}
        print(f"\n{family}.\n\n{table(frame.loc[list(part)], part)}")


if __name__ == "__main__":
    with errors_in_one_line():
        sys.exit(main())
