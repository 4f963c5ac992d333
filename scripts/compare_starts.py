"""First trials: a set that is chosen over the past tasks, the method's own, or rows at random, on validation tasks.

``python scripts/compare_starts.py [--method recommended] [--sizes 1 2 4 8] [--trials 30] [--data FOLDER ...]``

A chosen set is `start_configurations.start_rows`, by the nearest rows of the task's table; "its own" leaves
all trials to the method, the first from an empty history. Prints the mean regret over tasks after so many evaluations,
those of the start among them, with its standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
from markdown_tables import markdown_table, regret_cells
from one_line import errors_in_one_line
from scipy.spatial import cKDTree

from dre_jax import Suggester
from dre_jax.data import Results, SearchSpace, Task, bundled, list_spaces, load_space
from dre_jax.data.tasks import unit_scale
from dre_jax.methods import find
from dre_jax.methods.start_configurations import start_rows
from dre_jax.report import compare
from dre_jax.runtime.setup import prepare
from dre_jax.search import run_tasks

AT = (1, 2, 5, 10, 15, 20, 30)
OWN, BY_CHANCE = "its own", "5 at random"
Designs = dict[str, dict[str, np.ndarray]]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="recommended")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4, 8], help="of chosen sets")
    parser.add_argument("--trials", type=int, default=30, help="evaluations in all")
    parser.add_argument("--designs", nargs="+", default=["test0", "test1", "test2", "test3", "test4"])
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="folders beside the bundled data")
    return parser.parse_args()


def main() -> None:
    given = parse()
    prepare()
    traces: dict[str, dict[str, dict[str, dict[str, np.ndarray]]]] = {}
    method = find(given.method).make()
    for folder in [bundled.path(), *given.data]:
        for name in list_spaces(folder):
            space = load_space(folder, name)
            params = method.fit(replace(space, validation={}), jax.random.key(0))
            for start, designs in starts(given, space, Suggester(method, params, seed=0)).items():
                found = traces.setdefault(start, {}).setdefault(f"{folder.name}/{name}", {})
                for n in {len(rows) for of_task in designs.values() for rows in of_task.values()}:
                    alike = {d: {s: r for s, r in of.items() if len(r) == n} for d, of in designs.items()}
                    alike = {dataset: of for dataset, of in alike.items() if of}
                    tasks = {dataset: space.validation[dataset] for dataset in alike}
                    go = {"n_trials": given.trials - n, "key": jax.random.key(1)}
                    for dataset, seed, trace in run_tasks(method, params, tasks, alike, **go):
                        found.setdefault(dataset, {})[seed] = whole(tasks[dataset], alike[dataset][seed], trace)
            print(f"{folder.name}/{name} is done", flush=True)
    print(table({start: Results(found) for start, found in traces.items()}, [t for t in AT if t <= given.trials]))


def starts(given: argparse.Namespace, space: SearchSpace, suggester: Suggester) -> dict[str, Designs]:
    """Rows to begin with, by the kind of start."""
    chosen = start_rows(space.train, max(given.sizes), seed=0)

    def repeated(rows: Mapping[str, np.ndarray]) -> Designs:
        return {dataset: dict.fromkeys(given.designs, row) for dataset, row in rows.items()}

    def near(task: Task, n: int) -> np.ndarray:
        return np.array(list(dict.fromkeys(cKDTree(task.X).query(chosen[:n])[1].tolist())))

    def first(task: Task) -> np.ndarray:
        return np.array([suggester.observe_and_suggest(task.X[:0], task.y[:0], task.X)])

    tasks = space.validation
    found = {BY_CHANCE: {d: {s: np.asarray(space.designs[d][s]) for s in given.designs} for d in tasks}}
    found[OWN] = repeated({dataset: first(task) for dataset, task in tasks.items()})
    for n in given.sizes:
        found[f"{n} chosen"] = repeated({dataset: near(task, n) for dataset, task in tasks.items()})
    return found


def whole(task: Task, rows: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Incumbents from before the first evaluation, which count as the worst response, to the last."""
    return np.concatenate([[0.0], np.maximum.accumulate(unit_scale(task.y)[rows]), trace[1:]])


def table(results: Mapping[str, Results], at: list[int]) -> str:
    found = compare(dict(results))
    rows = [[start, *cells] for start, cells in zip(found.methods, regret_cells(found, at), strict=True)]
    return markdown_table(["start", *(f"regret at {t}" for t in at)], rows)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
