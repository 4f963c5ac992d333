"""Searches with features of tasks, useful or not, and the same searches without, on functions whose optimum is known.

``python scripts/compare_features.py --out searches.jsonl [--cases "3x1 moves" ...] [--pasts 8] [--tasks 4]``

A task is a function of three hyperparameters that falls from its optimum. In two cases, the first coordinate of the
optimum rises along a line in the first feature; in the two others, no feature says anything. There are 3 past tasks of
one feature, or 35 of ten, with twenty random trials each. Regret is 0 at the optimum and 1 at the median of random
configurations; ± is the standard error over pasts. Finished pasts are in ``--out``: rerun the command to resume.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command_line import errors_in_one_line
from compare_scales import AT
from rivals.jobs import append_searches
from rivals.outcomes import scaled_regret, standard_error

from dre_jax.runtime.setup import prepare
from dre_jax.tuning import Evaluated, Float, Linear, Optimizer, Space, Surrogate, past_of

_NAMES = ("x0", "x1", "x2")
SPACE = Space({name: Float(0.0, 1.0) for name in _NAMES})
_WEIGHTS, _POWER = np.array([4.0, 2.0, 1.0]), 1.5
_PAST_TRIALS = 20
_N_TRIALS = max(AT) + 1


class Case(NamedTuple):
    """A number of past tasks and features, and whether the first feature says where the optimum is."""

    tasks: int
    features: int
    moves: bool


CASES = {
    "3x1 moves": Case(3, 1, True),
    "3x1 useless": Case(3, 1, False),
    "35x10 one moves": Case(35, 10, True),
    "35x10 useless": Case(35, 10, False),
}


class Function(NamedTuple):
    """A task: its values by configuration f64[3], the largest one, and the median."""

    value: Callable[[np.ndarray], float]
    best: float
    median: float


def main(arguments: list[str] | None = None) -> int:
    """Runs the searches that are missing, prints a table, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="finished searches, one JSON line each")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--pasts", type=int, default=8, help="number of pasts of a case")
    parser.add_argument("--tasks", type=int, default=4, help="number of new tasks of a past")
    args = parser.parse_args(arguments)
    prepare()
    for seed in range(args.pasts):
        for name in args.cases:
            if (name, seed) not in read_regrets(args.out):
                regrets = compare(CASES[name], seed, args.tasks)
                append_searches(args.out, {(name, seed): [regrets.tolist()]})
                print(f"{name}: past {seed + 1} of {args.pasts}", file=sys.stderr, flush=True)
    found = read_regrets(args.out)
    print(table({name: np.stack([found[name, seed] for seed in range(args.pasts)]) for name in args.cases}))
    return 0


def read_regrets(path: Path) -> dict[tuple[str, int], np.ndarray]:
    """Returns regrets f64[tasks, 2, T] by case and past; a line cut short is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("]]]]")]
    return {(name, seed): np.array(regrets) for name, seed, regrets in rows}


def compare(case: Case, seed: int, n_new: int) -> np.ndarray:
    """Returns regrets f64[n_new, 2, T] of new tasks after each trial, with features and without."""
    rng = np.random.default_rng([seed, case.tasks, case.features, case.moves])
    trials, features = {}, {}
    for i in range(case.tasks):
        name, z = f"task {i}", rng.random(case.features)
        value = make_function(rng, z, case.moves).value
        rows = rng.random((_PAST_TRIALS, len(_NAMES)))
        trials[name] = [Evaluated(dict(zip(_NAMES, map(float, row), strict=True)), value(row)) for row in rows]
        features[name] = feature_values(z)
    types = dict.fromkeys(features["task 0"], Linear())
    with_features = past_of(SPACE, trials, direction="maximize", features=features, feature_types=types)
    without = past_of(SPACE, trials, direction="maximize")
    surrogates = [Surrogate.fit(past, quiet=True) for past in (with_features, without)]
    regrets = []
    for i in range(n_new):
        z = rng.random(case.features)
        function = make_function(rng, z, case.moves)
        known = feature_values(z), None
        regrets.append(
            [search(function, *each, 100 * seed + i) for each in zip(surrogates, known, strict=True)],
        )
    return np.array(regrets)


def make_function(rng: np.random.Generator, z: np.ndarray, moves: bool) -> Function:
    """Returns a function with features f64[P]; its optimum, scale and largest value are random."""
    optimum = 0.5 + (0.05 if moves else 0.1) * rng.normal(size=len(_NAMES))
    if moves:
        optimum[0] = 0.2 + 0.6 * z[0] + 0.03 * rng.normal()
    optimum = np.clip(optimum, 0.02, 0.98)
    scale, best = np.exp(rng.normal()), 10.0 * rng.normal()

    def value(x: np.ndarray) -> float:
        return best - scale * float(np.sum(_WEIGHTS * np.abs(x - optimum) ** _POWER))

    median = np.median([value(row) for row in np.random.default_rng(0).random((500, len(_NAMES)))])
    return Function(value, best, float(median))


def feature_values(z: np.ndarray) -> dict[str, float]:
    """Returns features by name."""
    return {f"z{i}": float(number) for i, number in enumerate(z)}


def search(function: Function, surrogate: Surrogate, features: dict[str, float] | None, seed: int) -> list[float]:
    """Returns the regret of the best trial after each trial."""
    optimizer = Optimizer(SPACE, surrogate, direction="maximize", seed=seed, features=features)
    optimizer.optimize(lambda trial: function.value(np.array([trial[name] for name in _NAMES])), _N_TRIALS)
    best = np.maximum.accumulate(np.array([trial.value for trial in optimizer.trials], np.float64))
    return scaled_regret(best, function.best, function.median).tolist()


def table(regrets: dict[str, np.ndarray]) -> str:
    """Returns mean regrets with and without features and their difference, in Markdown.

    ``regrets`` are f64[pasts, tasks, 2, T] by case.
    """
    heads = ["past tasks x features", "", "first suggestion", *(f"after {t} more" for t in AT[1:])]
    lines = [f"| {' | '.join(heads)} |", f"| --- | --- |{' ---: |' * len(AT)}"]
    for name, of_case in regrets.items():
        with_features, without = np.moveaxis(of_case.mean(axis=1), 1, 0)
        rows = {"with": with_features, "without": without, "difference": with_features - without}
        for label, each in rows.items():
            mean, error, sign = each.mean(axis=0), standard_error(each), "+" if label == "difference" else ""
            cells = [f"{mean[t]:{sign}.3f} ± {error[t]:.3f}" for t in AT]
            lines.append(f"| {name} | {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with errors_in_one_line():
        sys.exit(main())
