"""Tuners on functions where trials fail or are infeasible: how many do, and the best value of the others.

``python scripts/compare_feasibility.py [--problems edge gardner] [--tuners gp tpe] [--seeds 3] [--out FILE]``

Problems are on the unit cube. `edge` fails beyond x0 = 0.5, where values improve up to there; `half-space` fails beyond
a diagonal plane in six columns, and `disc` in a disc far from the optimum; `chance` fails one time in ten, wherever it
is. `gardner` (Gardner et al. 2014) and `norm` (Hartmann's function with |x| <= 1, Letham et al. 2019) have a
constraint. `hedged-prior` learned from three past studies of 20 random trials that succeeded, of shifted functions.
`gp-without` has no model of failures. Finished studies are in the file, one line each: rerun the command to resume.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from live.functions import Floats, hartmann
from markdown_tables import markdown_table

N_PAST, N_PAST_TRIALS = 3, 20


@dataclass(frozen=True)
class Problem:
    """A function on the unit cube, of points f64[D]; a past study has it shifted."""

    n_columns: int
    loss: Callable[[Floats], float]
    optimum: float
    fails: Callable[[Floats, np.random.Generator], bool] = lambda x, random: False
    constraint: Callable[[Floats], float] | None = None


def _hartmann(x: Floats) -> float:
    return float(hartmann(x[None])[0])


PROBLEMS = {
    "edge": Problem(2, lambda x: float(0.3 * (x[1] - 0.3) ** 2 - x[0]), -0.5, lambda x, _: bool(x[0] > 0.5)),
    "half-space": Problem(6, _hartmann, -3.32237, lambda x, _: bool(x.sum() > 2.5)),
    "disc": Problem(
        2,
        lambda x: float((x[0] - 0.7) ** 2 + 3 * (x[1] - 0.7) ** 2),
        0.0,
        lambda x, _: bool(np.sum((x - 0.25) ** 2) < 0.0625),
    ),
    "chance": Problem(6, _hartmann, -3.32237, lambda _, random: bool(random.random() < 0.1)),
    "gardner": Problem(
        2,
        lambda x: float(np.sin(6 * x[0]) + 6 * x[1]),
        float(np.arcsin(0.95)) - 1.0,
        constraint=lambda x: float(np.sin(6 * x[0]) * np.sin(6 * x[1]) + 0.95),
    ),
    "norm": Problem(6, _hartmann, -3.32237, constraint=lambda x: float(np.linalg.norm(x) - 1.0)),
}
TUNERS = ("gp", "gp-without", "hedged-prior", "tpe", "tpe-univariate", "random")


class Study(NamedTuple):
    """One tuner on one problem."""

    problem: str
    tuner: str
    seed: int


class Result(NamedTuple):
    """What came of a study."""

    bad: int
    """Trials that failed or were infeasible."""
    regret: float
    """Of the best other one."""


def run(study: Study, trials: int) -> tuple[Study, Result]:
    """One study."""
    from dre_jax.runtime.setup import prepare

    prepare(1)
    warnings.simplefilter("ignore")
    problem, random = PROBLEMS[study.problem], np.random.default_rng([study.seed, 1])
    losses: list[float] = []

    def evaluate(params: Any) -> tuple[float, dict[str, float]]:
        """The loss, NaN if it failed, and the constraints."""
        x = np.array([params[f"x{i}"] for i in range(problem.n_columns)])
        loss = float("nan") if problem.fails(x, random) else problem.loss(x)
        constraints = {} if problem.constraint is None else {"c": problem.constraint(x)}
        if loss == loss and all(value <= 0 for value in constraints.values()):
            losses.append(loss)
        return loss, constraints

    (_optuna if study.tuner in ("tpe", "tpe-univariate", "random") else _ours)(study, evaluate, trials)
    regret = min(losses) - problem.optimum if losses else float("inf")
    return study, Result(trials - len(losses), regret)


def _ours(study: Study, evaluate: Callable[[Any], tuple[float, dict[str, float]]], trials: int) -> None:
    from dre_jax import EngineConfig, Evaluated, Float, Optimizer, Space, Surrogate, past_of

    problem = PROBLEMS[study.problem]
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(problem.n_columns)})
    surrogate = None
    if study.tuner == "hedged-prior":
        random = np.random.default_rng([study.seed, 2])
        tasks = {}
        for task in range(N_PAST):
            shift = random.uniform(-0.1, 0.1, problem.n_columns)
            points = [x for x in random.random((200, problem.n_columns)) if not problem.fails(x, random)]
            tasks[str(task)] = [Evaluated(space.params(x), problem.loss(x + shift)) for x in points[:N_PAST_TRIALS]]
        surrogate = Surrogate.fit(past_of(space, tasks, direction="minimize"), seed=study.seed)
    config = EngineConfig(failure_model=study.tuner != "gp-without")
    optimizer = Optimizer(space, surrogate, seed=study.seed, config=config)
    for _ in range(trials):
        trial = optimizer.ask()
        value, constraints = evaluate(trial)
        optimizer.tell(trial, value, constraints=constraints)


def _optuna(study: Study, evaluate: Callable[[Any], tuple[float, dict[str, float]]], trials: int) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=study.seed),
        "tpe-univariate": lambda: optuna.samplers.TPESampler(seed=study.seed, multivariate=False),
        "random": lambda: optuna.samplers.RandomSampler(seed=study.seed),
    }

    def objective(trial: Any) -> float:
        names = [f"x{i}" for i in range(PROBLEMS[study.problem].n_columns)]
        value, constraints = evaluate({name: trial.suggest_float(name, 0.0, 1.0) for name in names})
        for name, constraint in constraints.items():
            trial.set_constraint(name, constraint)
        return value  # NaN: failed

    optuna.create_study(sampler=samplers[study.tuner]()).optimize(objective, n_trials=trials)


def main() -> None:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--tuners", nargs="+", default=list(TUNERS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("feasibility.jsonl"))
    given = parser.parse_args()
    names = [(problem, tuner) for problem in given.problems for tuner in given.tuners]
    names = [(p, t) for p, t in names if t != "gp-without" or PROBLEMS[p].constraint is None]
    studies = [Study(*name, seed) for name in names for seed in range(given.seeds)]
    done = read(given.out)
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool, given.out.open("a") as out:
        jobs = [pool.apply_async(run, (study, given.trials)) for study in studies if study not in done]
        for i, job in enumerate(jobs):
            study, result = job.get()
            out.write(json.dumps([*study, *result]) + "\n")
            out.flush()
            print(f"{i + 1} of {len(jobs)}: {' '.join(map(str, study))}: {result}", flush=True)
    done = read(given.out)
    rows = []
    for name in names:
        results = np.array([done[Study(*name, seed)] for seed in range(given.seeds)])
        bad, regret = results.T
        cells = [f"{bad.mean():.1f} ± {_error(bad):.1f}", "some have none"]
        cells[1] = f"{regret.mean():.2g} ± {_error(regret):.1g}" if np.isfinite(regret).all() else cells[1]
        rows.append([*name, *cells, f"{np.median(regret):.2g}"])
    print(markdown_table(["problem", "tuner", "failed or infeasible", "regret", "median regret"], rows))


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def read(path: Path) -> dict[Study, Result]:
    """Results of the studies that are done."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("]")]
    return {Study(*row[:3]): Result(*row[3:]) for row in rows}


if __name__ == "__main__":
    main()
