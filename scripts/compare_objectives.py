"""Tuners on problems of two and three objectives, with and without past studies: hypervolume by trials.

    python scripts/compare_objectives.py --out objectives.jsonl [--problems zdt1] [--tuners gp dre-past] [--seeds 5]
    python scripts/compare_objectives.py --out objectives.jsonl --report

Problems are families of functions or of scikit-learn models (`live.objectives`). A seed draws the member to optimise,
and five others for the past, with 30 random trials each; a reversed past has negative values, and an unrelated past has
other functions (`live.pasts`) for each objective. Finished studies are in the file, one line each: rerun the command to
resume. The reference point is as far beyond the worst point of the front as the front is wide.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from live.contestants import suggest
from live.functions import FAMILIES
from live.objectives import MODEL_FAMILIES, PROBLEMS, draw_member, draw_params
from live.pasts import draw_past
from scipy.stats import wilcoxon
from study import append_study, errors_in_one_line, markdown_table, mean_cell, read_studies

from dre_jax.errors import ConfigError
from dre_jax.search.hypervolume import Floats, hypervolume
from dre_jax.tuning import Evaluated, Optimizer, Space, Surrogate, past_of

TRIALS, PAST_MEMBERS, PAST_TRIALS = 50, 5, 30
AT = (10, 20, 30, 40, 50)
OURS = ("dre-past", "dre-reversed", "dre-unrelated", "dre")
SAMPLERS = {"gp": "GPSampler", "tpe": "TPESampler", "nsga2": "NSGAIISampler", "random": "RandomSampler"}


def surrogates(
    problem: str, space: Space, n_objectives: int, random: np.random.Generator, tuner: str
) -> dict[str, Surrogate | None]:
    """Learns from other members or from other functions; by names of the objectives."""
    if tuner == "dre-unrelated":
        if problem not in PROBLEMS:
            raise ConfigError(f"{tuner} is for problems of functions, but got {problem!r}")
        name = f"irrelevant {PAST_MEMBERS}x{PAST_TRIALS}"
        pasts = [draw_past(name, FAMILIES["hartmann-6"], random) for _ in range(n_objectives)]
    else:
        studies = []
        for _ in range(PAST_MEMBERS):
            params = draw_params(space, PAST_TRIALS, random)
            values = draw_member(problem, random, past=True).values(params)
            studies.append((params, -values if tuner == "dre-reversed" else values))
        pasts = []
        for m in range(n_objectives):
            rows = {str(i): [Evaluated(p, y[m]) for p, y in zip(*one, strict=True)] for i, one in enumerate(studies)}
            pasts.append(past_of(space, rows, direction="minimize"))
    return {f"f{m}": Surrogate.fit(past, quiet=True) for m, past in enumerate(pasts)}


def run(problem: str, tuner: str, seed: int) -> list[float]:
    """Shares of the front's hypervolume after each trial."""
    random = np.random.default_rng(seed)
    member = draw_member(problem, random, past=False)
    front = member.front()
    names = [f"f{m}" for m in range(front.shape[1])]
    trials: list[Floats] = []

    def evaluate(params: dict[str, Any]) -> list[float]:
        trials.append(member.values([params])[0])
        return trials[-1].tolist()

    if tuner in OURS:
        past = None if tuner == "dre" else surrogates(problem, member.space, len(names), random, tuner)
        optimizer = Optimizer(member.space, past, directions=dict.fromkeys(names, "minimize"), seed=seed)
        optimizer.optimize(lambda trial: dict(zip(names, evaluate(trial.params), strict=True)), TRIALS)
    else:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        more = {"population_size": 10} if tuner == "nsga2" else {}
        sampler = getattr(optuna.samplers, SAMPLERS[tuner])(seed=seed, **more)
        study = optuna.create_study(directions=["minimize"] * len(names), sampler=sampler)
        study.optimize(lambda trial: evaluate(suggest(trial, member.space)), TRIALS)
    reference = front.max(axis=0) + np.ptp(front, axis=0)
    whole = hypervolume(-front, -reference)
    return [hypervolume(-np.array(trials[:n]), -reference) / whole for n in range(1, TRIALS + 1)]


def report(results: dict[tuple[str, str, int], list[float]], problems: list[str], tuners: list[str]) -> None:
    """Prints means with standard errors over the studies that all tuners have, by problem too, and comparisons."""
    index = pd.MultiIndex.from_tuples(list(results), names=["problem", "tuner", "seed"])
    frame = pd.DataFrame(list(results.values()), index, range(1, TRIALS + 1))[list(AT)]
    shares = frame.unstack("tuner").swaplevel(axis=1)[tuners].dropna()
    heads = [f"at {t} trials" for t in AT]
    for selected in (problems, *([name] for name in problems)):
        part = shares[shares.index.isin(selected, level="problem")]
        rows = [[tuner, *(mean_cell(part[tuner][t]) for t in AT)] for tuner in tuners]
        print(f"\n{', '.join(selected)}: {len(part)} studies per tuner\n\n{markdown_table(['tuner', *heads], rows)}")
    rows = []
    for one, other in itertools.product(OURS, ("dre", *SAMPLERS)):
        if one != other and {one, other} <= set(tuners):
            gaps = shares[one] - shares[other]
            tests = [f"{gaps[t].mean():+.3f} ({wilcoxon(gaps[t]).pvalue:.1g})" for t in AT]
            rows.append([f"{one} - {other}", *tests])
    print(f"\nmean difference (p of the signed-rank test over studies)\n\n{markdown_table(['', *heads], rows)}")


def main() -> None:
    """Runs the studies that the file does not have, or reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of the studies")
    parser.add_argument("--problems", nargs="+", choices=(*PROBLEMS, *MODEL_FAMILIES), default=list(PROBLEMS))
    parser.add_argument("--tuners", nargs="+", choices=(*OURS, *SAMPLERS), default=[*OURS, *SAMPLERS])
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    parser.add_argument("--report", action="store_true", help="print the tables of the file")
    args = parser.parse_args()
    results = read_studies(args.out, lambda *study: study)
    if args.report:
        report(
            {key: shares for key, shares in results.items() if key[0] in args.problems and key[2] < args.seeds},
            args.problems,
            args.tuners,
        )
        return
    for seed, problem, tuner in itertools.product(range(args.seeds), args.problems, args.tuners):
        if (problem, tuner, seed) not in results:
            shares = run(problem, tuner, seed)
            append_study(args.out, (problem, tuner, seed), shares)
            print(f"{problem} {tuner} {seed}: {shares[-1]:.4f}", flush=True)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
