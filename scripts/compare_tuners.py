"""Tuners of live models, from nothing: this library's, with and without past tasks, beside Optuna's.

``python scripts/compare_tuners.py --out tuners.jsonl [--seeds 10] [--trials 30] [--page docs/results/tuners.md]``

The objectives are scikit-learn models, cross-validated on problems that no training task has rows of, and three
functions with a known optimum. Optuna's GPSampler needs torch==2.13.0. Finished studies are in the file, one line each:
rerun the command to resume.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

AT = (1, 5, 10, 15, 30)


def parse() -> argparse.Namespace:
    """The options."""
    from tuners.tuners import TUNERS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuners", nargs="+", default=TUNERS)
    parser.add_argument("--on", nargs="+", default=["live", "functions"], help="live, validation, functions, or names")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("tuners.jsonl"))
    parser.add_argument("--page", type=Path, help="writes the tables there")
    return parser.parse_args()


def main() -> None:
    """Runs what is missing, and prints the tables."""
    given = parse()
    from tuners.tables import page

    done = read(given.out)
    jobs = [job for job in wanted(given) if job not in done]
    begun = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool, given.out.open("a") as out:
        for i, (job, values, seconds) in enumerate(pool.imap_unordered(work, [(*job, given.trials) for job in jobs])):
            out.write(json.dumps([*job, values, round(seconds, 2)]) + "\n")
            out.flush()
            if i % 20 == 0:
                print(
                    f"{time.monotonic() - begun:.0f} s: {i + 1} of {len(jobs)}: {' '.join(map(str, job))}", flush=True
                )
    command = f"python scripts/compare_tuners.py --seeds {given.seeds} --trials {given.trials}"
    found = {job: values for job, values in read(given.out).items() if job in set(wanted(given))}
    text = page(found, given.tuners, AT, command)
    print(text)
    if given.page:
        given.page.write_text(text)


def wanted(given: argparse.Namespace) -> list[tuple[str, str, int]]:
    """Objective, tuner and seed of every study; those that share compiled programs follow each other."""
    from tuners.objectives import objectives
    from tuners.tuners import WITH_SURROGATE

    grid = itertools.product(given.tuners, objectives(given.on), range(given.seeds))
    return [(o.name, tuner, seed) for tuner, o, seed in grid if o.model or tuner not in WITH_SURROGATE]


def read(path: Path) -> dict[tuple[str, str, int], list[float]]:
    """Values of the studies that are done."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("]")]
    return {(objective, tuner, seed): values for objective, tuner, seed, values, *_ in rows}


def work(job: tuple[str, str, int, int]) -> tuple[tuple[str, str, int], list[float], float]:
    """One study, in a process of its own."""
    from tuners.objectives import objectives
    from tuners.tuners import run

    from dre_jax.runtime.setup import prepare

    prepare(1)
    name, tuner, seed, trials = job
    begun = time.monotonic()
    values: list[Any] = run(tuner, objectives([name])[0], seed, trials)
    return (name, tuner, seed), values, time.monotonic() - begun


if __name__ == "__main__":
    main()
