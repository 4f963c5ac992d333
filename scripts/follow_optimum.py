"""Why a run stalls: where a method ranks the best row of a table while it does not find it.

    python scripts/follow_optimum.py --task SPACE/DATASET [...] [--methods dre gcp] [--data FOLDER ...]

Methods learn from the training tasks and optimise the task from its designs, to 50 evaluations and on beyond the
optimum. Before the evaluations given by ``--at``, the rows left are sorted by what the method thinks of them. Prints
the median over designs of the best row's place among them (1 is tried next; "found" if most runs have it), and the
rank correlation of what the method thinks with the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from markdown_tables import markdown_table
from one_line import errors_in_one_line
from runs_of_tasks import Runs, runs_of
from scipy.stats import spearmanr

from dre_jax.data import SearchSpace, bundled, list_spaces, load_space
from dre_jax.errors import ConfigError
from dre_jax.methods import find
from dre_jax.runtime.setup import prepare
from dre_jax.search.loop import history_and_candidates, jitted_value
from dre_jax.search.method import Method

shown = jax.jit(history_and_candidates)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs="+", required=True, help="SPACE/DATASET, of any split")
    parser.add_argument("--methods", nargs="+", default=["dre", "gcp", "hedged-prior"])
    parser.add_argument("--at", type=int, nargs="+", default=[5, 10, 20, 50], help="evaluations")
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="folders beside the bundled data")
    return parser.parse_args()


def space_of(name: str, folders: Sequence[Path]) -> SearchSpace:
    """The search space of a task; the first folder that has both counts."""
    space, _, dataset = name.partition("/")
    for folder in folders:
        if space in list_spaces(folder):
            found = load_space(folder, space)
            if dataset in {**found.train, **found.validation, **found.test}:
                return found
    raise ConfigError(f"a task must be SPACE/DATASET of the data given, but got {name!r}")


def followed(method: Method, params: Any, runs: Runs, at: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Place of the best row, and rank correlation, before so many evaluations."""
    for n in at:
        places, correlations = [], []
        for rows in runs.rows:
            history, candidates = shown(runs.table, jnp.asarray(rows[: max(at)]), jnp.int32(n))
            values, _ = jitted_value(method, params, None, history, candidates, jax.random.key(0))
            left = np.asarray(candidates.where)
            values = np.asarray(values, np.float64)
            correlations.append(spearmanr(values[left], runs.y[left]).statistic)
            best = left & (runs.y == runs.y.max())
            found = (runs.y[rows[:n]] == runs.y.max()).any()
            places.append(0.0 if found else 1.0 + (values[left] > values[best].max()).sum())
        middle = np.median(places)
        yield "found" if middle == 0 else f"{middle:.0f} of {left.sum()}", f"{np.median(correlations):.2f}"


def main() -> None:
    given = arguments()
    prepare()
    rows = []
    for name in given.task:
        space, dataset = space_of(name, [bundled.path(), *given.data]), name.partition("/")[2]
        task = {**space.train, **space.validation, **space.test}[dataset]
        for method_name in given.methods:
            method = find(method_name).make()
            params = method.fit(space, jax.random.key(0))
            runs = runs_of(method, params, task, space.designs[dataset], max(given.at), jax.random.key(0))
            cells = [cell for pair in followed(method, params, runs, given.at) for cell in pair]
            rows.append([name, method_name, *cells])
            print(f"{name}: {method_name} is done", flush=True)
    heads = [head for n in given.at for head in (f"best row at {n}", "correlation")]
    print(markdown_table(["task", "method", *heads], rows))


if __name__ == "__main__":
    with errors_in_one_line():
        main()
