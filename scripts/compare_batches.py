"""Several trials at once: what those of a batch are taken to give, by regret per evaluation on validation tasks.

``python scripts/compare_batches.py [--method recommended] [--sizes 1 4 8] [--trials 48] [--out batches.json]``

Prints the mean regret over tasks with its standard error.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from markdown_tables import markdown_table, regret_cells
from one_line import errors_in_one_line

from dre_jax.data import Results, bundled, list_spaces, load_space
from dre_jax.data.files import read_json, write_json
from dre_jax.methods import find
from dre_jax.report import compare
from dre_jax.runtime.setup import prepare
from dre_jax.search import ExecutionConfig, run_tasks
from dre_jax.search.loop import ParallelTrials

AT = (8, 16, 24, 48)
Done = dict[str, dict[str, Any]]
"""Size and strategy -> search space -> dataset -> design -> trace."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="recommended")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--strategies", nargs="+", default=["none", "min", "mean", "max", "believer", "draw"])
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--designs", nargs="+", default=["test0", "test1", "test2"])
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="folders beside the bundled data")
    parser.add_argument("--out", type=Path, default=Path("batches.json"), help="what is done is kept here")
    return parser.parse_args()


def main() -> None:
    given = parse()
    prepare()
    # With one trial at a time no response is imputed, but a draw is another way to choose.
    alone = ["-", *(strategy for strategy in given.strategies if strategy == "draw")]
    batches = [(size, strategy) for size in given.sizes for strategy in (alone if size == 1 else given.strategies)]
    done: Done = read_json(given.out) if given.out.exists() else {}
    for folder in [bundled.path(), *given.data]:
        for space in list_spaces(folder):
            evaluate(given, folder, space, batches, done)
    at = [t for t in AT if t <= given.trials]
    found = compare({batch: Results(_arrays(traces)) for batch, traces in done.items()})
    cells = dict(zip(found.methods, regret_cells(found, at), strict=True))
    rows = [[str(size), strategy, *cells[f"{size} {strategy}"]] for size, strategy in batches]
    print(markdown_table(["trials at once", "strategy", *(f"regret at {t}" for t in at)], rows))


def _arrays(traces: dict[str, Any]) -> dict[str, Any]:
    return jax.tree.map(np.asarray, traces, is_leaf=lambda value: isinstance(value, list))


def evaluate(given: argparse.Namespace, folder: Path, name: str, batches: list[tuple[int, str]], done: Done) -> None:
    """Does the runs that are missing on one search space; a method is fitted once."""
    fitted, space, label = None, load_space(folder, name), f"{folder.name}/{name}"
    designs = {dataset: {s: space.designs[dataset][s] for s in given.designs} for dataset in space.validation}
    method = find(given.method).make()
    for size, strategy in batches:
        traces = done.setdefault(f"{size} {strategy}", {})
        if label in traces:
            continue
        fitted = fitted or method.fit(replace(space, validation={}), jax.random.key(0))
        config = ExecutionConfig(parallel=ParallelTrials(size, "none" if strategy == "-" else strategy))
        go = {"n_trials": given.trials, "key": jax.random.key(1), "config": config}
        traces[label] = {}
        for dataset, seed, trace in run_tasks(method, fitted, space.validation, designs, **go):
            traces[label].setdefault(dataset, {})[seed] = trace.tolist()
        write_json(given.out, done)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
