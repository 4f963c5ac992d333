"""Tuners on functions of two and three objectives, with and without past studies: hypervolume by trials.

    python scripts/compare_objectives.py --out objectives.jsonl [--problems zdt1 zdt2] [--tuners gp past] [--seeds 5]
    python scripts/compare_objectives.py --out objectives.jsonl --report

A problem is a family of ZDT (Zitzler, Deb and Thiele 2000) or DTLZ (Deb et al. 2002) with six hyperparameters: a member
moves the optimum of the distance variables, and scales each objective. A seed draws the member to optimise, and five
others for the past, with 30 random trials each. Finished studies are in the file, one line each: rerun the command to
resume. The reference point is as far beyond the worst point of the front as the front is wide.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from finished_studies import append_study, read_studies
from markdown_tables import markdown_table, mean_cell
from one_line import errors_in_one_line
from scipy.stats import wilcoxon

from dre_jax.search.hypervolume import Floats, dominates, hypervolume
from dre_jax.tuning import Evaluated, Float, Optimizer, Space, Surrogate, past_of

SIZE, TRIALS, PAST_MEMBERS, PAST_TRIALS = 6, 50, 5, 30
AT = (10, 20, 30, 40, 50)
SPACE = Space({f"x{i}": Float(0.0, 1.0) for i in range(SIZE)})
TUNERS = ("dre-past", "dre", "gp", "tpe", "nsga2", "random")


def zdt(shape: Callable[[Floats, Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    """A problem of positions f64[n, 1] and distances f64[n, K] from the optimum, two objectives to minimise."""

    def values(position: Floats, distance: Floats) -> Floats:
        g = 1.0 + 9.0 * distance.mean(axis=1)
        return np.stack([position[:, 0], g * shape(position[:, 0], position[:, 0] / g)], axis=1)

    return values


def dtlz2(position: Floats, distance: Floats) -> Floats:
    """Three objectives; the front is an eighth of a sphere."""
    a, b = 0.5 * np.pi * position.T
    unit = np.stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)], axis=1)
    return (1.0 + (distance**2).sum(axis=1))[:, None] * unit


def dtlz7(position: Floats, distance: Floats) -> Floats:
    """Three objectives; the front has four parts."""
    g = 2.0 + 9.0 * distance.mean(axis=1)
    h = 3.0 - (position / g[:, None] * (1.0 + np.sin(3.0 * np.pi * position))).sum(axis=1)
    return np.column_stack([position, g * h])


PROBLEMS: dict[str, tuple[Callable[[Floats, Floats], Floats], int]] = {
    "zdt1": (zdt(lambda x, share: 1.0 - np.sqrt(share)), 1),
    "zdt2": (zdt(lambda x, share: 1.0 - share**2), 1),
    "zdt3": (zdt(lambda x, share: 1.0 - np.sqrt(share) - share * np.sin(10.0 * np.pi * x)), 1),
    "dtlz2": (dtlz2, 2),
    "dtlz7": (dtlz7, 2),
}
"""Objectives of positions and distances, and the number of position variables."""


class Member(NamedTuple):
    """A member of a problem's family."""

    problem: str
    optimum: Floats
    """f64[K], of the distance variables."""
    scale: Floats
    """f64[M], of the objectives."""

    def values(self, x: Floats) -> Floats:
        """Values f64[n, M] of configurations f64[n, 6], to minimise."""
        function, split = PROBLEMS[self.problem]
        return self.scale * function(x[:, :split], np.abs(x[:, split:] - self.optimum))

    def front(self) -> Floats:
        """A dense front."""
        _, split = PROBLEMS[self.problem]
        axis = np.linspace(0.0, 1.0, {1: 1000, 2: 40}[split])
        position = np.stack([one.ravel() for one in np.meshgrid(*[axis] * split)], axis=1)
        values = self.values(np.hstack([position, np.tile(self.optimum, (len(position), 1))]))
        return values[~dominates(-values).any(axis=0)]


def draw_member(problem: str, rng: np.random.Generator) -> Member:
    """Draws a member."""
    _, split = PROBLEMS[problem]
    return Member(problem, rng.uniform(0.2, 0.5, SIZE - split), rng.uniform(0.7, 1.4, split + 1))


def surrogates(problem: str, rng: np.random.Generator, names: tuple[str, ...]) -> dict[str, Surrogate | None]:
    """Learns from other members."""
    tasks: dict[str, tuple[list[dict[str, Any]], Floats]] = {}
    for number in range(PAST_MEMBERS):
        x = rng.uniform(size=(PAST_TRIALS, SIZE))
        tasks[str(number)] = (
            [dict(zip(SPACE, row, strict=True)) for row in x.tolist()],
            draw_member(problem, rng).values(x),
        )
    learned: dict[str, Surrogate | None] = {}
    for m, name in enumerate(names):
        rows = {task: [Evaluated(p, y[m]) for p, y in zip(*one, strict=True)] for task, one in tasks.items()}
        learned[name] = Surrogate.fit(past_of(SPACE, rows, direction="minimize"), quiet=True)
    return learned


def run(problem: str, tuner: str, seed: int) -> list[float]:
    """Shares of the front's hypervolume after each trial."""
    rng = np.random.default_rng(seed)
    member = draw_member(problem, rng)
    names = tuple(f"f{m}" for m in range(len(member.scale)))
    trials: list[Floats] = []

    def evaluate(params: dict[str, Any]) -> Floats:
        trials.append(member.values(np.array([[params[name] for name in SPACE]]))[0])
        return trials[-1]

    if tuner.startswith("dre"):
        past = surrogates(problem, rng, names) if tuner == "dre-past" else None
        optimizer = Optimizer(SPACE, past, directions=dict.fromkeys(names, "minimize"), seed=seed)
        optimizer.optimize(lambda trial: dict(zip(names, evaluate(trial.params).tolist(), strict=True)), TRIALS)
    else:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers = optuna.samplers
        kinds = {"gp": "GPSampler", "tpe": "TPESampler", "nsga2": "NSGAIISampler", "random": "RandomSampler"}
        more = {"population_size": 10} if tuner == "nsga2" else {}
        study = optuna.create_study(
            directions=["minimize"] * len(names), sampler=getattr(samplers, kinds[tuner])(seed=seed, **more)
        )
        study.optimize(lambda trial: evaluate({k: trial.suggest_float(k, 0.0, 1.0) for k in SPACE}).tolist(), TRIALS)
    front = member.front()
    reference = front.max(axis=0) + np.ptp(front, axis=0)
    whole = hypervolume(-front, -reference)
    return [hypervolume(-np.array(trials[:n]), -reference) / whole for n in range(1, TRIALS + 1)]


def report(results: dict[tuple[str, str, int], list[float]]) -> None:
    """Prints means with standard errors over the studies that all tuners have, by problem too, and comparisons."""
    tuners = [tuner for tuner in TUNERS if any(key[1] == tuner for key in results)]
    whole = {key for key in results if all((key[0], tuner, key[2]) in results for tuner in tuners)}

    def shares_of(tuner: str, problems: tuple[str, ...]) -> Floats:
        keys = sorted(key for key in whole if key[1] == tuner and key[0] in problems)
        return np.array([results[key] for key in keys])

    heads = ("tuner", *(f"at {t} trials" for t in AT))
    for problems in (tuple(PROBLEMS), *((name,) for name in PROBLEMS)):
        rows = []
        for tuner in tuners:
            shares = shares_of(tuner, problems)[:, np.array(AT) - 1]
            rows.append([tuner, *map(mean_cell, shares.T)])
        print(f"\n{', '.join(problems)}: {len(shares)} studies per tuner\n\n{markdown_table(heads, rows)}")
    rows = []
    for one, other in [("dre", two) for two in tuners[2:]] + [("dre-past", two) for two in tuners[1:]]:
        gaps = (shares_of(one, tuple(PROBLEMS)) - shares_of(other, tuple(PROBLEMS)))[:, np.array(AT) - 1]
        tests = (f"{gap.mean():+.3f} ({wilcoxon(gap).pvalue:.1g})" for gap in gaps.T)
        rows.append([f"{one} - {other}", *tests])
    print(f"\nmean difference (p of the signed-rank test over studies)\n\n{markdown_table(('', *heads[1:]), rows)}")


def main() -> None:
    """Runs the studies that the file does not have, or reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of the studies")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--tuners", nargs="+", choices=TUNERS, default=list(TUNERS))
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--report", action="store_true", help="print the tables of the file")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    results = read_studies(args.out, lambda *study: study)
    if args.report:
        report({study: shares for study, shares in results.items() if study[2] in seeds})
        return
    for seed, problem, tuner in itertools.product(seeds, args.problems, args.tuners):
        if (problem, tuner, seed) not in results:
            shares = run(problem, tuner, seed)
            append_study(args.out, (problem, tuner, seed), shares)
            print(f"{problem} {tuner} {seed}: {shares[-1]:.4f}", flush=True)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
