"""How far the recommended method's intervals can be trusted: predictions of rows not evaluated yet, against the truth.

    python scripts/calibrate.py [--data FOLDER ...] [--split test] [--at 5 10 30]

The method optimises every task of the split from its designs. After so many trials, those of the design among them, it
predicts all rows that are left, on its own scale of responses; the truth is put on that scale by the trials that it has
seen. Prints, as means over search spaces with the standard error over tasks: the share of rows within the central
intervals of 50 and 90 %; the deviation of z = (truth - mean) / deviation, robustly (by quartiles), 1 if calibrated; and
of the row that is tried next, how probable an improvement was thought to be, and how often it was one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from markdown_tables import markdown_table
from one_line import errors_in_one_line
from runs_of_tasks import runs_of
from scipy.stats import norm

from dre_jax.data import SearchSpace, Task, bundled, list_spaces, load_space
from dre_jax.methods import find
from dre_jax.methods.hedged_prior.method import HedgedPrior
from dre_jax.methods.hedged_prior.weights import WeighedPriors
from dre_jax.runtime.setup import prepare
from dre_jax.search import History
from dre_jax.search.loop import SearchTask, history_and_candidates

NAMES = ("within 50 %", "within 90 %", "deviation of z", "improvement expected", "improvement found")
_QUARTILES = 2.0 * norm.ppf(0.75)


class Predicted(NamedTuple):
    """Predictions of N rows after a history."""

    history: History
    scaled: Array
    """f[C]: the trials on the method's scale."""
    mean: Array
    deviation: Array
    left: Array
    """bool[N]: not evaluated yet."""


@partial(jax.jit, static_argnames="method")
def predict(method: HedgedPrior, params: WeighedPriors, table: SearchTask, rows: Array, n: Array) -> Predicted:
    """Predictions after the first n of a run's rows."""
    history, candidates = history_and_candidates(table, rows, n)
    return Predicted(history, *method.predict(params, history, candidates.x), candidates.where)


def on_its_scale(response: np.ndarray, found: Predicted) -> np.ndarray:
    """Responses f64[N] where the method's scale has them: between trials on a line, beyond the ends as far off as the
    standardised response is."""
    where = np.asarray(found.history.where)
    order = np.argsort(np.asarray(found.history.level)[where])[::-1]
    own, scaled = (np.asarray(a, np.float64)[where][order] for a in (found.history.response, found.scaled))
    slope = np.std(scaled) / max(np.std(own), 1e-9) / 2.0  # the standardised half of the scale
    beyond = np.minimum(response - own[0], 0.0) + np.maximum(response - own[-1], 0.0)
    inside: np.ndarray = np.interp(response, own, scaled) + slope * beyond
    return inside


def measures(found: Predicted, response: np.ndarray, next_row: int) -> list[float]:
    """The numbers that `NAMES` tells of one history; responses f64[N] on the history's scale."""
    left = np.asarray(found.left)
    mean, deviation = (np.asarray(a, np.float64) for a in (found.mean, found.deviation))
    z = (on_its_scale(response, found) - mean) / deviation
    quartiles = np.subtract(*np.quantile(z[left], [0.75, 0.25]))
    expected = norm.sf((float(jnp.max(jnp.where(found.history.where, found.scaled, -jnp.inf))) - mean) / deviation)
    within = [float(np.mean(np.abs(z[left]) < norm.ppf(0.5 + share / 2.0))) for share in (0.5, 0.9)]
    return [*within, float(quartiles / _QUARTILES), float(expected[next_row]), float(response[next_row] > 1.0)]


def of_task(
    method: HedgedPrior, params: WeighedPriors, task: Task, designs: dict[str, np.ndarray], at: Sequence[int]
) -> np.ndarray:
    """Means over designs, f64[len(at), 5]."""
    runs = runs_of(method, params, task, designs, max(at) + 1, jax.random.key(0))
    found = []
    for rows in runs.rows:
        for n in at:
            seen = runs.y[rows[:n]]
            response = (runs.y - seen.min()) / max(np.ptp(seen), 1e-12)  # the history's own scale
            found.append(
                measures(predict(method, params, runs.table, jnp.asarray(rows), jnp.int32(n)), response, rows[n])
            )
    return np.array(found).reshape(-1, len(at), len(NAMES)).mean(axis=0)


def of_space(method: HedgedPrior, space: SearchSpace, split: str, at: Sequence[int]) -> Iterator[np.ndarray]:
    """Of every task that can be varied and has rows left."""
    asked: dict[str, Any] = {split: {}}  # not learned from
    params = method.fit(replace(space, **asked), jax.random.key(0))
    for name, task in getattr(space, split).items():
        if task.n_rows > max(at) + 1:
            yield of_task(method, params, task, {s: np.asarray(r) for s, r in space.designs[name].items()}, at)


def table(by_space: Sequence[np.ndarray], at: Sequence[int]) -> str:
    """Search spaces' tasks, f64[tasks, len(at), 5] each."""
    mean = np.mean([one.mean(axis=0) for one in by_space], axis=0)
    variances = [one.var(axis=0, ddof=1) / len(one) for one in by_space]
    error = np.sqrt(np.sum(variances, axis=0)) / len(by_space)
    rows = [[str(n), *(f"{m:.2f} ± {e:.2f}" for m, e in zip(mean[i], error[i], strict=True))] for i, n in enumerate(at)]
    return markdown_table(["trials", *NAMES], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="folders beside the bundled data")
    parser.add_argument("--split", default="test", choices=["test", "validation"])
    parser.add_argument("--at", type=int, nargs="+", default=[5, 10, 30], help="trials")
    given = parser.parse_args()
    prepare()
    method = find("recommended").make()
    assert isinstance(method, HedgedPrior)
    found = []
    for folder in [bundled.path(), *given.data]:
        for name in list_spaces(folder):
            found.append(np.array(list(of_space(method, load_space(folder, name), given.split, given.at))))
            print(f"{folder.name}/{name}: {len(found[-1])} tasks", flush=True)
    print(table(found, given.at))


if __name__ == "__main__":
    with errors_in_one_line():
        main()
