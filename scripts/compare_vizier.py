"""Vizier's Gaussian processes on the live functions and on the tables of docs/results/tuners.md.

    VIZIER_PYTHON=PYTHON python scripts/compare_vizier.py --out FILE [--on live|tables] [--tuners vizier vizier-stacked]

PYTHON is one of an environment as `live.vizier_process` wants it. `vizier` is Vizier's default and has no past;
`vizier-stacked` is its Gaussian process on the residuals of one for each past study. Tasks and pasts are those of
``compare_live.py`` with as many replicates and tasks, or random rows of training tasks and the initial design
``test0``: on tables, the nearest row to a suggestion is evaluated. Finished studies are in the file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from compare_live import Study, random
from live.contestants import regrets
from live.functions import FAMILIES
from live.pasts import draw_past
from live.tables import tables
from study import append_study, markdown_table, mean_cell, read_studies

from dre_jax.data import Task, bundled
from dre_jax.search.host import run_host
from dre_jax.tuning import Evaluated

AT = (5, 10, 20, 30, 50)
REPORTED = [
    "hartmann-3",
    "rosenbrock-4",
    "levy-6",
    "griewank-5",
    "styblinski-tang-8",
    "rotated-bowl-10",
    "ackley-20",
    "branin-noisy",
]
_FLAGS = {"0", "1"}


class Vizier:
    """One study in Vizier's process, of points of the cube; columns of flags are choices."""

    def __init__(self, flags: Sequence[bool], past: Sequence[tuple[np.ndarray, np.ndarray]] | None, seed: int) -> None:
        self._flags, self._n_sent = flags, 0
        server = Path(__file__).with_name("live") / "vizier_process.py"
        self._process = subprocess.Popen(
            [os.environ["VIZIER_PYTHON"], str(server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        start = {f"x{d}": sorted(_FLAGS) if flag else None for d, flag in enumerate(flags)}
        studies = past and [([self._configuration(row) for row in x], loss.tolist()) for x, loss in past]
        self._send({"start": start, "past": studies, "seed": seed})

    def suggest(self, x: np.ndarray, loss: np.ndarray) -> np.ndarray:
        """Returns a point f64[D] after the trials so far, points f64[n, D] and losses f64[n]."""
        parts = zip(x[self._n_sent :], loss[self._n_sent :].tolist(), strict=True)
        self._send({"trials": [[self._configuration(row), value] for row, value in parts]})
        self._n_sent = len(x)
        answer = json.loads(self._process.stdout.readline())
        return np.array([float(answer[f"x{d}"]) for d in range(len(self._flags))])

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any = None) -> int:
        """Returns the pending row next to what is suggested."""
        point = self.suggest(np.asarray(X_obs), -np.asarray(y_obs)[:, 0])
        return int(((X_pen - point) ** 2).sum(1).argmin())

    def end(self) -> None:
        """Ends the process."""
        self._process.communicate()

    def _configuration(self, row: np.ndarray) -> dict[str, Any]:
        parts = enumerate(zip(row.tolist(), self._flags, strict=True))
        return {f"x{d}": str(int(value)) if flag else float(value) for d, (value, flag) in parts}

    def _send(self, message: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def live(study: Study, tasks: int, trials: int) -> list[float]:
    """Returns regrets after every trial."""
    family = FAMILIES[study.family]
    past = None
    if study.past != "none":
        drawn = draw_past(study.past, family, random(study.family, study.past, study.replicate))
        past = [(one.X.astype(float), -one.y) for one in drawn.tasks.values()]
    number = study.replicate * tasks + study.task
    task = family.draw(random(study.family, "task", number))
    vizier = Vizier([False] * family.n_columns, past, number)
    noise = np.random.default_rng([number, 1])
    points, done = np.zeros((0, family.n_columns)), []
    for _ in range(trials):
        point = vizier.suggest(points, np.array([one.value for one in done]))
        points = np.vstack([points, point])
        params = family.space.params(point)
        done.append(Evaluated(params, task.evaluate(params, noise)))
    vizier.end()
    return list(regrets(task, done))


def on_table(study: Study, past: Sequence[Task], task: Task, design: np.ndarray, trials: int) -> list[float]:
    """Returns regrets with the initial design and after every trial."""
    flags = np.isin(np.concatenate([one.X for one in past]), (0.0, 1.0)).all(axis=0)
    studies = None if study.past == "none" else [(one.X.astype(float), -one.y) for one in past]
    vizier = Vizier(flags.tolist(), studies, 0)
    trace = run_host(vizier, task.X, task.y, design, trials)
    vizier.end()
    return list(1.0 - trace)


def table_jobs(tuner: str, past: str, tasks: int, trials: int) -> Iterator[tuple[Study, Any]]:
    """Yields studies of tables, each with its work."""
    n_tasks, n_rows = map(int, (past if past != "none" else "5x20").removeprefix("random ").split("x"))
    for name in bundled.spaces():
        space = bundled.load(name)
        rng = np.random.default_rng(0)
        some = spread(list(space.train.values()), n_tasks)
        rows = [rng.permutation(one.n_rows)[:n_rows] for one in some]
        drawn = [Task(one.name, one.X[part], one.y[part]) for one, part in zip(some, rows, strict=True)]
        for number, task in enumerate(spread(list(space.test.values()), tasks)):
            study = Study(tuner, name, past, 0, number)
            design = space.designs[task.name]["test0"]
            yield study, lambda s=study, p=drawn, t=task, d=design: on_table(s, p, t, d, trials)


def spread(tasks: Sequence[Task], n: int) -> list[Task]:
    """Returns n tasks of a list, evenly spaced, since tasks of one origin are neighbours."""
    return [tasks[i] for i in np.linspace(0, len(tasks) - 1, min(n, len(tasks))).round().astype(int)]


def main() -> None:
    """Runs what the file does not have, and prints regrets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--on", choices=("live", "tables"), default="live")
    parser.add_argument("--tuners", nargs="+", default=["vizier", "vizier-stacked"])
    parser.add_argument("--pasts", nargs="+", default=["random 5x20", "random 20x20"])
    parser.add_argument("--replicates", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=1)
    parser.add_argument("--trials", type=int, default=50)
    args = parser.parse_args()
    jobs: list[tuple[Study, Any]] = []
    for tuner in args.tuners:
        for past in ["none"] if tuner == "vizier" else args.pasts:
            if args.on == "tables":
                jobs += table_jobs(tuner, past, args.tasks, args.trials)
                continue
            for replicate, family, task in itertools.product(range(args.replicates), REPORTED, range(args.tasks)):
                study = Study(tuner, family, past, replicate, task)
                jobs.append((study, lambda s=study: live(s, args.tasks, args.trials)))
    finished = read_studies(args.out, Study)
    for study, work in jobs:
        if study not in finished:
            values = work()
            append_study(args.out, study, values)
            print(study, f"{values[-1]:.4f}", file=sys.stderr, flush=True)
    finished = read_studies(args.out, Study)
    at = [t for t in AT if t <= args.trials]
    if args.on == "live":
        print(tables({study: finished[study] for study, _ in jobs}, at))
        return
    for key, group in itertools.groupby((study for study, _ in jobs), key=lambda s: (s.past, s.tuner)):
        values = np.array([finished[study][: args.trials + 1] for study in group])
        print(markdown_table(["past", "tuner", *map(str, at)], [[*key, *(mean_cell(values[:, t]) for t in at)]]))


if __name__ == "__main__":
    main()
