"""How many trials a tuner's method is shown: what a suggestion takes, and how good the next ones are.

``python scripts/compare_lengths.py [--trials 200 400] [--longest 192 1000] [--asks 8] [--seeds 5]``

Without a surrogate, on functions with a known optimum. A study so far has even points, as many steps from the best of
them, and then the suggestions that are measured.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from markdown_tables import markdown_table
from one_line import errors_in_one_line
from tuners.objectives import Objective, objectives

from dre_jax.runtime.setup import prepare
from dre_jax.search.candidates import sobol_points
from dre_jax.tuning.engine import Engine, EngineConfig, Observation

LEAST = {"branin": 0.397887, "hartmann-6": -3.32237, "ackley-10": 0.0}
"""Least values of the functions, which are negated."""
STEP = 0.1
"""Deviation of the steps from the best, of a coordinate's range."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, nargs="+", default=[200, 400])
    parser.add_argument("--longest", type=int, nargs="+", default=[192, 1000])
    parser.add_argument("--asks", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--functions", nargs="+", default=list(LEAST))
    given = parser.parse_args()
    prepare()
    rows = []
    for trials in given.trials:
        for longest in given.longest:
            found = {one.name: [measure(one, trials, longest, given.asks, s) for s in range(given.seeds)]
                     for one in objectives(given.functions)}  # fmt: skip
            seconds = [second for runs in found.values() for _, times in runs for second in times]
            gaps = [spread([gap for gap, _ in runs]) for runs in found.values()]
            rows.append([str(trials), str(longest), f"{statistics.median(seconds):.2f}", *gaps])
            print(rows[-1], flush=True)
    print(markdown_table(["trials", "shown at most", "a suggestion, s", *given.functions], rows))


def spread(gaps: list[float]) -> str:
    """The mean with its standard error."""
    error = np.std(gaps, ddof=1) / len(gaps) ** 0.5 if len(gaps) > 1 else float("nan")
    return f"{np.mean(gaps):.3g} ± {error:.1g}"


def measure(objective: Objective, trials: int, longest: int, asks: int, seed: int) -> tuple[float, list[float]]:
    """How far above the least value the best of the suggestions is, and what each of them took but the first."""
    engine = Engine(objective.space, seed=seed, config=EngineConfig(max_history=longest))
    told, times = list(history(objective, trials, seed)), []
    for number in range(trials, trials + asks):
        begun = time.perf_counter()
        params = engine.suggest(told, number=number)
        times.append(time.perf_counter() - begun)
        told.append(Observation(params, objective.evaluate(params)))
    best = max(o.response for o in told)
    return -best - LEAST[objective.name], times[1:]


def history(objective: Objective, trials: int, seed: int) -> Iterator[Observation]:
    """A history of `trials` points, the first half even, the others around the best."""
    space, rng = objective.space, np.random.default_rng(seed)
    scored: list[tuple[float, Any]] = []
    for i, point in enumerate(sobol_points(1024, len(space), seed)[:trials]):
        if i >= trials // 2:
            point = np.clip(max(scored, key=lambda pair: pair[0])[1] + STEP * rng.normal(size=len(space)), 0, 1)
        params = space.params(point)
        scored.append((objective.evaluate(params), point))
        yield Observation(params, scored[-1][0])


if __name__ == "__main__":
    with errors_in_one_line():
        main()
