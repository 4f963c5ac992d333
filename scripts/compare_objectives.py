"""Tuners on problems of two and three objectives, with and without past studies: hypervolume by trials.

    python scripts/compare_objectives.py --out objectives.jsonl [--problems zdt1] [--tuners gp dre-past] [--seeds 5]
    python scripts/compare_objectives.py --out objectives.jsonl --report

Problems are families of functions or of scikit-learn models (`live.objectives`). A seed draws the member to optimise,
and five others for the past, with 30 random trials each; a reversed past has negative values. Finished studies are
in the file, one line each: rerun the command to resume. The reference point is as far beyond the worst point of the
front as the front is wide.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from finished_studies import append_study, read_studies
from live.contestants import suggest
from live.objectives import MODEL_FAMILIES, PROBLEMS, draw_member, draw_params
from markdown_tables import markdown_table, mean_cell
from one_line import errors_in_one_line
from scipy.stats import wilcoxon

from dre_jax.search.hypervolume import Floats, hypervolume
from dre_jax.tuning import Evaluated, Optimizer, Space, Surrogate, past_of

TRIALS, PAST_MEMBERS, PAST_TRIALS = 50, 5, 30
AT = (10, 20, 30, 40, 50)
TUNERS = ("dre-past", "dre-reversed", "dre", "gp", "tpe", "nsga2", "random")


def surrogates(problem: str, space: Space, random: np.random.Generator, sign: float) -> dict[str, Surrogate | None]:
    """Learns from other members, with negative values if the sign is -1; by names of the objectives."""
    studies = []
    for _ in range(PAST_MEMBERS):
        params = draw_params(space, PAST_TRIALS, random)
        studies.append((params, sign * draw_member(problem, random, past=True).values(params)))
    learned: dict[str, Surrogate | None] = {}
    for m in range(studies[0][1].shape[1]):
        rows = {str(i): [Evaluated(p, y[m]) for p, y in zip(*one, strict=True)] for i, one in enumerate(studies)}
        learned[f"f{m}"] = Surrogate.fit(past_of(space, rows, direction="minimize"), quiet=True)
    return learned


def run(problem: str, tuner: str, seed: int) -> list[float]:
    """Shares of the front's hypervolume after each trial."""
    random = np.random.default_rng(seed)
    member = draw_member(problem, random, past=False)
    front = member.front()
    names = tuple(f"f{m}" for m in range(front.shape[1]))
    trials: list[Floats] = []

    def evaluate(params: dict[str, Any]) -> Floats:
        trials.append(member.values([params])[0])
        return trials[-1]

    if tuner.startswith("dre"):
        past = (
            None
            if tuner == "dre"
            else surrogates(problem, member.space, random, -1.0 if tuner == "dre-reversed" else 1.0)
        )
        optimizer = Optimizer(member.space, past, directions=dict.fromkeys(names, "minimize"), seed=seed)
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
        study.optimize(lambda trial: evaluate(suggest(trial, member.space)).tolist(), TRIALS)
    reference = front.max(axis=0) + np.ptp(front, axis=0)
    whole = hypervolume(-front, -reference)
    return [hypervolume(-np.array(trials[:n]), -reference) / whole for n in range(1, TRIALS + 1)]


def report(results: dict[tuple[str, str, int], list[float]], every: tuple[str, ...], tuners: list[str]) -> None:
    """Prints means with standard errors over the studies that all tuners have, by problem too, and comparisons."""
    whole = {key for key in results if all((key[0], tuner, key[2]) in results for tuner in tuners)}

    def shares_of(tuner: str, problems: tuple[str, ...]) -> Floats:
        keys = sorted(key for key in whole if key[1] == tuner and key[0] in problems)
        return np.array([results[key] for key in keys])

    heads = ("tuner", *(f"at {t} trials" for t in AT))
    for problems in (every, *((name,) for name in every)):
        rows = []
        for tuner in tuners:
            shares = shares_of(tuner, problems)[:, np.array(AT) - 1]
            rows.append([tuner, *map(mean_cell, shares.T)])
        print(f"\n{', '.join(problems)}: {len(shares)} studies per tuner\n\n{markdown_table(heads, rows)}")
    rows = []
    others = [tuner for tuner in tuners if not tuner.startswith("dre")]
    pairs = [(one, other) for one in ("dre", "dre-past", "dre-reversed") for other in ("dre", *others) if one != other]
    for one, other in (pair for pair in pairs if set(pair) <= set(tuners)):
        gaps = (shares_of(one, every) - shares_of(other, every))[:, np.array(AT) - 1]
        tests = (f"{gap.mean():+.3f} ({wilcoxon(gap).pvalue:.1g})" for gap in gaps.T)
        rows.append([f"{one} - {other}", *tests])
    print(f"\nmean difference (p of the signed-rank test over studies)\n\n{markdown_table(('', *heads[1:]), rows)}")


def main() -> None:
    """Runs the studies that the file does not have, or reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of the studies")
    parser.add_argument("--problems", nargs="+", choices=(*PROBLEMS, *MODEL_FAMILIES), default=list(PROBLEMS))
    parser.add_argument("--tuners", nargs="+", choices=TUNERS, default=list(TUNERS))
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--report", action="store_true", help="print the tables of the file")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    results = read_studies(args.out, lambda *study: study)
    if args.report:
        of_seeds = {study: shares for study, shares in results.items() if study[2] in seeds}
        report(of_seeds, tuple(args.problems), args.tuners)
        return
    for seed, problem, tuner in itertools.product(seeds, args.problems, args.tuners):
        if (problem, tuner, seed) not in results:
            shares = run(problem, tuner, seed)
            append_study(args.out, (problem, tuner, seed), shares)
            print(f"{problem} {tuner} {seed}: {shares[-1]:.4f}", flush=True)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
