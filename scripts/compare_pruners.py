"""Compares pruners on learning curves that were recorded: docs/results/shipped.md has the results.

    python scripts/compare_pruners.py [CURVES] [--past CURVES] [--studies 10] [--trials 60] [--raw-steps]

CURVES is a JSON file, plain or gzipped: a list of {"curve": [[step, accuracy], ...], "diverged": false}; without one,
curves are generated. A study draws trials that did not diverge, and replays them one after the other. They report at
each tenth of their own training, or at their own steps. The past is three studies of as many other trials of the file,
or of another one.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from command_line import errors_in_one_line

from dre_jax.data.files import read_json
from dre_jax.errors import DataError
from dre_jax.tuning import PastCurves
from dre_jax.tuning.optuna import DREPruner

N_PAST = 3
Curve = dict[float, float]


class Outcome(NamedTuple):
    """A study: percentage of steps used, whether the best trial was pruned, and the regret of the best complete one."""

    steps: float
    lost: bool
    regret: float


def read_curves(path: Path | None, raw_steps: bool = False) -> list[Curve]:
    """Returns the curves of a file by step, or generated ones; tenths of each training unless `raw_steps`."""
    trials = _generated() if path is None else read_json(path)
    curves = [one["curve"] for one in trials if not one["diverged"] and len(one["curve"]) > 1]
    if not curves:
        raise DataError(f"{path} has no trial with a curve")
    if raw_steps:
        return [{float(step): float(value) for step, value in curve} for curve in curves]
    tenths = np.arange(1, 11)
    values = [np.interp(tenths / 10 * curve[-1][0], *np.array(curve, float).T).tolist() for curve in curves]
    return [dict(zip(tenths.tolist(), row, strict=True)) for row in values]


def _generated() -> list[dict[str, Any]]:
    """Returns curves that approach asymptotes at rates of their own, some of which cross."""
    rng, steps = np.random.default_rng(0), np.arange(1, 21)
    ends, rises, rates = rng.beta(5.0, 2.0, 400), rng.uniform(0.2, 1.0, 400), rng.uniform(0.05, 0.5, 400)
    values = ends[:, None] - np.outer(rises, np.ones(20)) * np.exp(-np.outer(rates, steps))
    values += rng.normal(0.0, 0.005, values.shape)
    return [{"curve": list(zip(steps.tolist(), row, strict=True)), "diverged": False} for row in values.tolist()]


def pruners(past: PastCurves, horizon: float) -> dict[str, Callable[[], optuna.pruners.BasePruner]]:
    """Returns the pruners by name."""
    return {
        "DREPruner, with past": lambda: DREPruner(past),
        "DREPruner": DREPruner,
        "Median": optuna.pruners.MedianPruner,
        "Hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=max(1, int(horizon))),
        "SuccessiveHalving": optuna.pruners.SuccessiveHalvingPruner,
    }


def run_study(curves: Sequence[Curve], pruner: optuna.pruners.BasePruner) -> Outcome:
    """Replays trials one after the other."""
    # Hyperband's brackets depend on the name.
    study = optuna.create_study(study_name="study", direction="maximize", pruner=pruner)
    finals, kept = [curve[max(curve)] for curve in curves], []
    for curve, final in zip(curves, finals, strict=True):
        trial, last = study.ask(), max(curve)
        for step, value in curve.items():
            trial.report(value, int(step))
            if step < last and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, final)
            kept.append(final)
    n_steps = sum(len(trial.intermediate_values) for trial in study.trials)
    regret = max(finals) - max(kept)
    return Outcome(100 * n_steps / sum(map(len, curves)), regret > 0, regret)


def compare(
    curves: Sequence[Curve], past: Sequence[Curve] | None, studies: int, trials: int
) -> dict[str, list[Outcome]]:
    """Returns the outcomes of each pruner; the past is drawn from the other curves if None."""
    needed = trials * (1 if past else 1 + N_PAST)
    if len(curves) < needed or (past and len(past) < N_PAST * trials):
        raise DataError(f"{trials} trials a study need {needed} curves and {N_PAST * trials} past ones")
    outcomes: dict[str, list[Outcome]] = {}
    for seed in range(studies):
        rng = np.random.default_rng(seed)
        drawn = [curves[i] for i in rng.permutation(len(curves))]
        earlier = [past[i] for i in rng.permutation(len(past))] if past else drawn[trials:]
        tasks = PastCurves({str(i): earlier[i * trials : (i + 1) * trials] for i in range(N_PAST)}, same_kind=True)
        for name, make in pruners(tasks, max(map(max, drawn))).items():
            outcomes.setdefault(name, []).append(run_study(drawn[:trials], make()))
    return outcomes


def rows(outcomes: dict[str, list[Outcome]]) -> Iterable[str]:
    """Yields the lines of the table."""
    yield "| pruner | steps used | best trial lost | regret |"
    yield "| --- | ---: | ---: | ---: |"
    for name, runs in outcomes.items():
        steps, lost, regret = (np.array(column, float) for column in zip(*runs, strict=True))
        share = f"{steps.mean():.0f} ± {steps.std() / len(runs) ** 0.5:.1f} %"
        yield f"| {name} | {share} | {lost.sum():.0f} of {len(runs)} | {regret.mean():.5f} |"


def main(arguments: list[str] | None = None) -> None:
    """Runs the studies and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", type=Path, nargs="?")
    parser.add_argument("--past", type=Path)
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--raw-steps", action="store_true")
    args = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    past = read_curves(args.past, args.raw_steps) if args.past else None
    print("\n".join(rows(compare(read_curves(args.curves, args.raw_steps), past, args.studies, args.trials))))


if __name__ == "__main__":
    with errors_in_one_line():
        main()
