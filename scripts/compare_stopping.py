"""Expected gains and warnings of the tuner on live functions: how often it stops too early, and warns without reason.

``python scripts/compare_stopping.py --out stopping.jsonl [--tuners recommended gp] [--families choice]
[--pasts "random 3x20" "reversed 5x20"] [--replicates 2] [--tasks 2] [--trials 60]``

Numbers are in the units of `scripts/compare_live.py`: 1 is the distance of the median random point to the optimum.
Finished studies are in the file, one line each: rerun the command to resume.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from compare_live import NO_PAST, Study, find_family, fitted, random, studies
from markdown_tables import markdown_table

FURTHER = 20
"""Trials after a stop."""
THRESHOLDS, PATIENCE = (0.1, 0.01, 0.001), (3, 5, 10)


class Record(NamedTuple):
    """One study, by trial."""

    expected: list[float]
    """Expected improvement when the trial was suggested; infinite before the method suggests."""
    best: list[float]
    """Least value so far, as the tuner sees it, above the optimum."""
    warned: int | None
    """Number of the trial before which the tuner warned of the past."""


def main() -> None:
    """Runs what is missing, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuners", nargs="+", default=["recommended", "gp"])
    parser.add_argument("--families", nargs="+", default=["choice"])
    parser.add_argument(
        "--pasts", nargs="+", default=["random 3x20", "random 5x20", "reversed 5x20", "irrelevant 5x20"]
    )
    parser.add_argument("--replicates", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("stopping.jsonl"))
    given = parser.parse_args()
    from dre_jax.runtime.setup import prepare

    prepare(1)
    done = read(given.out)
    with given.out.open("a") as out:
        for study in studies(given):
            if study not in done:
                done[study] = run(study, given.tasks, given.trials)
                out.write(json.dumps([*study, *done[study]]) + "\n")
                out.flush()
    records = {study: done[study] for study in studies(given)}
    print(warning_table(records), calibration_table(records.values()), stopping_table(records.values()), sep="\n\n")


def read(path: Path) -> dict[Study, Record]:
    """Records of the studies that are done."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("]")]
    return {Study(*row[:5]): Record(*row[5:]) for row in rows}


def run(study: Study, tasks: int, trials: int) -> Record:
    """One study of one tuner."""
    from dre_jax.tuning import Optimizer

    number = study.replicate * tasks + study.task
    task = find_family(study.family).draw(random(study.family, "task", number))
    surrogate = None if study.past == NO_PAST else fitted(*study[:4])
    noise = np.random.default_rng([number, 1])
    optimizer = Optimizer(task.space, surrogate, seed=number)
    expected: list[float] = []
    values: list[float] = []
    warned: int | None = None
    for n in range(trials):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trial = optimizer.ask()
        warned = n if warned is None and any("past studies mislead" in str(one.message) for one in caught) else warned
        expected.append(optimizer._improvements[-1] / task.spread)
        values.append(task.evaluate(trial.params, noise))
        optimizer.tell(trial, values[-1])
    best = (np.minimum.accumulate(values) - task.least) / task.spread
    return Record(expected, best.tolist(), warned)


def warning_table(records: dict[Study, Record]) -> str:
    """How often the tuner warns of each kind of past."""
    rows = []
    for past in dict.fromkeys(study.past for study in records if study.past != NO_PAST):
        warned = [record.warned for study, record in records.items() if study.past == past]
        at = [n for n in warned if n is not None]
        rows.append([past, str(len(warned)), str(len(at)), f"{np.median(at):.0f}" if at else "-"])
    return markdown_table(["past", "studies", "warned", "median trial of the warning"], rows)


def calibration_table(records: Iterable[Record]) -> str:
    """Expected and realised improvements of single trials, by the expected one."""
    pairs = np.array([pair for r in records for pair in zip(r.expected[1:], -np.diff(r.best), strict=True)])
    pairs, rows = pairs[np.isfinite(pairs[:, 0])], []
    edges = [np.inf, 0.1, 0.01, 1e-3, 1e-4, 0.0]
    for high, low in itertools.pairwise(edges):
        expected, realised = pairs[(pairs[:, 0] < high) & (pairs[:, 0] >= low)].T
        if len(realised) > 1:
            error = realised.std(ddof=1) / np.sqrt(len(realised))
            span = f"{low:g} to {high:g}"
            rows.append([span, str(len(realised)), f"{expected.mean():.2g}", f"{realised.mean():.2g} ± {error:.1g}"])
    return markdown_table(["expected", "trials", "mean expected", "mean realised"], rows)


def stopping_table(records: Iterable[Record]) -> str:
    """How often a search stops, when, and how often further trials would have gained more than the threshold."""
    rows, records = [], list(records)
    for threshold in THRESHOLDS:
        for patience in PATIENCE:
            stops = [(record, stop(record, threshold, patience)) for record in records]
            ended = [(record, n) for record, n in stops if n is not None]
            gains = np.array([record.best[n - 1] - record.best[n - 1 + FURTHER] for record, n in ended])
            cells = [f"{threshold:g}", str(patience), f"{len(ended)} of {len(stops)}"]
            if ended:
                mean = np.mean([n for _, n in ended])
                cells += [f"{mean:.0f}", f"{np.mean(gains > threshold):.2f}", f"{gains.mean():.2g}"]
            rows.append([*cells, *["-"] * (6 - len(cells))])
    heads = ["gain below", "times in a row", "stopped", "mean trials", "too early", f"mean gain of {FURTHER} more"]
    return markdown_table(heads, rows)


def stop(record: Record, threshold: float, patience: int) -> int | None:
    """The number of trials after which a search stops; None if it does not while `FURTHER` trials follow."""
    run_length = 0
    for n, expected in enumerate(record.expected[: len(record.expected) - FURTHER], start=1):
        run_length = run_length + 1 if expected < threshold else 0
        if run_length == patience:
            return n
    return None


if __name__ == "__main__":
    main()
