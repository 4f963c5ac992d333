"""Tuners on live functions of known optimum, with pasts of every kind: which past helps, and which holds one back.

``python scripts/compare_live.py --out live.jsonl [--tuners recommended gp-mixture tpe] [--families choice]
[--pasts "random 3x20"] [--replicates 2] [--tasks 4] [--trials 100]``

A past is drawn for each replicate; as many new tasks are tuned with it as are asked for, in one program where tuner and
functions are in JAX. Tuners without a past run on the same tasks once. Finished studies are in the file, one line each:
rerun the command to resume. Optuna's GPSampler needs torch==2.13.0.
"""

import argparse
import itertools
import json
import multiprocessing
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from command_line import errors_in_one_line
from live.contestants import ALONE, run_group
from live.functions import CHOICE, REPORT, draw_task
from live.pasts import draw_past
from live.tables import medians, non_inferiority, paired_differences, tables
from live.wide import WIDE_CHOICE, WIDE_FAMILIES, WIDE_REPORT

from dre_jax.errors import ConfigError
from dre_jax.functions.bench import random
from dre_jax.functions.families import FAMILIES
from dre_jax.hpob.workers import end_with_parent
from dre_jax.runtime.setup import prepare
from dre_jax.tuning import Surrogate

AT = (5, 10, 20, 30, 40, 60, 100)
NO_PAST = "none"


class Study(NamedTuple):
    """One tuner on one task."""

    tuner: str
    """A method that learns from past tasks, or one of `live.contestants.ALONE`."""
    family: str
    past: str
    """As `live.pasts.draw_past` has it."""
    replicate: int
    task: int


def main(arguments: list[str] | None = None) -> None:
    """Runs what is missing, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuners", nargs="+", default=["recommended", "gp-mixture", "tpe", "random"])
    parser.add_argument(
        "--families", nargs="+", default=["choice"], help="choice, report, wide-choice, wide-report, or names"
    )
    parser.add_argument("--pasts", nargs="+", default=["random 1x20", "random 3x20", "random 20x20", "irrelevant 1x20"])
    parser.add_argument("--replicates", type=int, default=2, help="pasts of each kind")
    parser.add_argument("--tasks", type=int, default=4, help="new tasks of each replicate")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("live.jsonl"))
    args = parser.parse_args(arguments)
    selected_studies = list(studies(args))
    finished_studies = read_studies(args.out)
    missing = (study for study in selected_studies if study not in finished_studies)
    jobs = [(list(group), args.trials) for _, group in itertools.groupby(missing, key=lambda s: s[:3])]
    # Hundreds of compiled programs in one process end in a crash inside XLA.
    with multiprocessing.get_context("spawn").Pool(args.workers, end_with_parent, maxtasksperchild=1) as pool:
        for i, results in enumerate(pool.imap_unordered(work, jobs), start=1):
            with args.out.open("a") as file:
                file.writelines(json.dumps([*study, regrets]) + "\n" for study, regrets in results)
            print(f"{i} of {len(jobs)}: {results[0][0]}", flush=True)
    finished_studies = read_studies(args.out)
    regrets_by_study = {study: finished_studies[study] for study in selected_studies}
    at = [t for t in AT if t <= args.trials]
    print(tables(regrets_by_study, at))
    if len({study.family for study in selected_studies}) == 1:
        print(medians(regrets_by_study, at))
    if "gp-mixture" in args.tuners and (others := [tuner for tuner in args.tuners if tuner in ALONE[1:]]):
        print(paired_differences(regrets_by_study, "gp-mixture", others, at))
    if "recommended" in args.tuners and len(args.tuners) > 1:
        print(non_inferiority(regrets_by_study, at[1:]))


def studies(args: argparse.Namespace) -> Iterable[Study]:
    """All studies; those that share a past follow each other."""
    groups = {"choice": CHOICE, "report": REPORT, "wide-choice": WIDE_CHOICE, "wide-report": WIDE_REPORT}
    families = [name for group in args.families for name in groups.get(group, (group,))]
    for tuner, family in itertools.product(args.tuners, families):
        if family in WIDE_FAMILIES and tuner not in ALONE and not WIDE_FAMILIES[family].alike:
            raise ConfigError(f"tasks of {family} have no past in common: choose tuners of {ALONE}, not {tuner!r}")
        for past in [NO_PAST] if tuner in ALONE else args.pasts:
            for replicate, task in itertools.product(range(args.replicates), range(args.tasks)):
                yield Study(tuner, family, past, replicate, task)


def read_studies(path: Path) -> dict[Study, list[float]]:
    """Regrets after every trial of the studies in a file; a line cut short is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("]]")]
    return {Study(*study): regrets for *study, regrets in rows}


def work(job: tuple[list[Study], int]) -> list[tuple[Study, list[float]]]:
    """Studies of a tuner, a family and a kind of past; those of a replicate share a past, and a seed."""
    prepare(1)
    studies_of_job, trials = job
    results: list[tuple[Study, list[float]]] = []
    for (tuner, name, past, replicate), group in itertools.groupby(studies_of_job, key=lambda s: s[:4]):
        family, surrogate, selected = (FAMILIES | WIDE_FAMILIES)[name], None, list(group)
        if past != NO_PAST:
            studies_of_past = draw_past(past, family, random(name, past, replicate))
            surrogate = Surrogate.fit(studies_of_past, method=tuner, seed=replicate)
        tasks = {study.task: draw_task(family, random(name, "task", replicate, study.task)) for study in selected}
        results += zip(selected, run_group(tuner, family, tasks, trials, replicate, surrogate), strict=True)
    return results


if __name__ == "__main__":
    with errors_in_one_line():
        main()
