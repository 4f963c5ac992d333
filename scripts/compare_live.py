"""Tuners on live functions of known optimum, with pasts of every kind: which past helps, and which holds one back.

``python scripts/compare_live.py --out live.jsonl [--tuners recommended gp tpe] [--families choice]
[--pasts "random 3x20"] [--replicates 2] [--tasks 4] [--trials 100]``

A past is drawn for each replicate; as many new tasks are tuned with it as are asked for. Tuners without a past run on
the same tasks once. Finished studies are in the file, one line each: rerun the command to resume. Optuna's GPSampler
needs torch==2.13.0, and tuners of other libraries (`live.rivals`) need an environment that `scripts/rivals` makes.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from finished_studies import append_study, read_studies

if TYPE_CHECKING:
    from live.rivals import Studies

    from dre_jax.tuning import Surrogate

AT = (5, 10, 20, 40, 60, 100)
NO_PAST = "none"
_GROUPS_A_PROCESS = 8  # hundreds of compiled programs in one process end in a crash inside XLA


class Study(NamedTuple):
    """One tuner on one task."""

    tuner: str
    """A method that learns from past tasks, or one of `live.contestants.ALONE` or `live.rivals.RIVALS`."""
    family: str
    past: str
    """As `live.pasts.settings` has it."""
    replicate: int
    task: int


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuners", nargs="+", default=["recommended", "gp", "tpe", "random"])
    parser.add_argument("--families", nargs="+", default=["choice"], help="choice, rough, report, models, or names")
    parser.add_argument("--pasts", nargs="+", default=["random 1x20", "random 3x20", "random 20x20", "irrelevant 1x20"])
    parser.add_argument("--replicates", type=int, default=2, help="pasts of each kind")
    parser.add_argument("--tasks", type=int, default=4, help="new tasks of each replicate")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("live.jsonl"))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Runs what is missing, and prints the tables."""
    args = parse(arguments)
    from live.tables import non_inferiority, tables

    selected = list(studies(args))
    finished = read_studies(args.out, Study)
    groups = [list(group) for _, group in itertools.groupby((s for s in selected if s not in finished), key=_group)]
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(args.workers, maxtasksperchild=_GROUPS_A_PROCESS) as pool:
        jobs = [(group, args.tasks, args.trials) for group in groups]
        for i, results in enumerate(pool.imap_unordered(work, jobs)):
            for study, regrets in results:
                append_study(args.out, study, regrets)
            print(f"{time.monotonic() - start:.0f} s: {i + 1} of {len(groups)}: {results[0][0]}", flush=True)
    finished = read_studies(args.out, Study)
    regrets_by_study = {study: finished[study] for study in selected}
    at = [t for t in AT if t <= args.trials]
    print(tables(regrets_by_study, at))
    if "recommended" in args.tuners and len(args.tuners) > 1:
        print(non_inferiority(regrets_by_study, at[1:]))


def studies(args: argparse.Namespace) -> Iterable[Study]:
    """All studies; those that share a past follow each other."""
    from live.contestants import ALONE
    from live.functions import CHOICE, MODELS, REPORT, ROUGH

    groups = {"choice": CHOICE, "rough": ROUGH, "report": REPORT, "models": MODELS}
    families = [name for group in args.families for name in groups.get(group, (group,))]
    for tuner, family in itertools.product(args.tuners, families):
        for past in [NO_PAST] if tuner in ALONE else args.pasts:
            for replicate, task in itertools.product(range(args.replicates), range(args.tasks)):
                yield Study(tuner, family, past, replicate, task)


def _group(study: Study) -> tuple[str, str, str, int]:
    return study[:4]


def work(job: tuple[list[Study], int, int]) -> list[tuple[Study, list[float]]]:
    """Studies that share a past, one after the other."""
    from live.contestants import run

    from dre_jax.runtime.setup import prepare

    prepare(1)
    group, tasks, trials = job
    past = past_for(group[0]) if group[0].past != NO_PAST else None
    results = []
    for study in group:
        number = study.replicate * tasks + study.task
        task = find_family(study.family).draw(random(study.family, "task", number))
        results.append((study, run(study.tuner, task, trials, number, past)))
    return results


def find_family(name: str) -> Any:
    """Returns the family of functions or of models of a name."""
    from live.functions import FAMILIES

    if name in FAMILIES:
        return FAMILIES[name]
    from live.models import ModelFamily

    return ModelFamily(name)


def past_for(study: Study) -> Surrogate | Studies:
    """Returns what a method learns from the past of a study; the past studies themselves for a rival."""
    from live.pasts import settings
    from live.rivals import RIVALS

    from dre_jax.tuning import Surrogate

    setting, family = settings()[study.past], find_family(study.family)
    numbers = random(study.family, study.past, study.replicate)
    if study.tuner in RIVALS:
        return setting.draw_studies(family, numbers)
    return Surrogate.fit(setting.draw(family, numbers), method=study.tuner, seed=study.replicate)


def random(*names: Any) -> np.random.Generator:
    """Random numbers that depend on names alone."""
    return np.random.default_rng([zlib.crc32(str(name).encode()) for name in names])


if __name__ == "__main__":
    main()
