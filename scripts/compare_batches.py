"""Several trials at once: what those of a batch are taken to give, by regret per evaluation on validation tasks.

``python scripts/compare_batches.py [--method committee] [--sizes 1 4 8] [--trials 48] [--out batches.json]``
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from markdown_tables import markdown_table

AT = (8, 16, 24, 48)


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="committee")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--lies", nargs="+", default=["none", "min", "mean", "max"])
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--designs", nargs="+", default=["test0", "test1", "test2"])
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="folders beside the bundled data")
    parser.add_argument("--out", type=Path, default=Path("batches.json"), help="what is done is kept here")
    return parser.parse_args()


def main() -> None:
    """Runs what is missing, and prints the table."""
    given = parse()
    from dre_jax.cli.runtime import prepare

    prepare()
    from dre_jax.data import bundled, list_spaces

    done: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    for folder in [bundled.path(), *given.data]:
        for space in list_spaces(folder):
            evaluate(given, folder, space, done)
    print(
        markdown_table(
            ["trials at once", "lie", *(f"regret at {t}" for t in AT if t <= given.trials)], rows(given, done)
        )
    )


def evaluate(given: argparse.Namespace, folder: Path, name: str, done: dict[str, Any]) -> None:
    """All batches on one search space; a method is fitted once."""
    import jax

    from dre_jax.data import load_space
    from dre_jax.methods import find
    from dre_jax.search import BatchConfig, run_tasks
    from dre_jax.search.loop import Batch

    fitted = None
    space = load_space(folder, name)
    designs = {d: {s: space.designs[d][s] for s in given.designs} for d in space.validation}
    for size, lie in batches(given):
        key = f"{folder.name}/{name} {size} {lie}"
        if key in done:
            continue
        method = find(given.method).make()
        fitted = fitted or method.fit(space, jax.random.key(0))
        config = BatchConfig(at_once=Batch(size, lie))
        runs = run_tasks(
            method, fitted, space.validation, designs, n_trials=given.trials, key=jax.random.key(1), config=config
        )
        done[key] = {f"{dataset} {seed}": (1.0 - trace).tolist() for dataset, seed, trace in runs}
        given.out.write_text(json.dumps(done))


def batches(given: argparse.Namespace) -> list[tuple[int, str]]:
    """Sizes and lies; with one trial at a time there is none to tell."""
    return [(size, lie) for size in given.sizes for lie in (["none"] if size == 1 else given.lies)]


def rows(given: argparse.Namespace, done: dict[str, Any]) -> list[list[str]]:
    """Mean regret over tasks, the mean over designs first, with its standard error."""
    found = []
    for size, lie in batches(given):
        by_task: dict[str, list[list[float]]] = {}
        for key, runs in done.items():
            space, n, what = key.rsplit(" ", 2)
            if (int(n), what) == (size, lie):
                for run, regret in runs.items():
                    by_task.setdefault(f"{space} {run.rpartition(' ')[0]}", []).append(regret)
        means = np.array([np.mean(runs, axis=0) for runs in by_task.values()])
        error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
        shown = [f"{means[:, t].mean():.4f} ± {error[t]:.4f}" for t in AT if t <= given.trials]
        found.append([str(size), lie if size > 1 else "-", *shown])
    return found


if __name__ == "__main__":
    main()
