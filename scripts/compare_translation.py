"""Compares tuners on tables of several metrics, each with the other tables as past: docs/results/shipped.md.

    python scripts/compare_translation.py [TABLES] [--seeds 5] [--trials 50] [--goals front limit] [--tasks NAME ...]

TABLES is a JSON file, plain or gzipped: {"columns": [...], "metrics": [...], "tasks": {name: {"X": rows, "Y": rows}}}
with the metrics bleu, gpu_seconds and gpu_memory_mb, of which 0 is missing; without one, tables are generated. Each
task in turn is new, and a tuner chooses among its rows that are not evaluated. The goals are

    front   high BLEU in few GPU seconds: the share of the table's hypervolume above its worst values;
    limit   high BLEU where the memory is at most its median: regret as a share of the range of feasible values.
"""

import argparse
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import optuna
from command_line import errors_in_one_line

from dre_jax.data.files import read_json
from dre_jax.suggest.hypervolume import hypervolume
from dre_jax.tuning import Allowed, Evaluated, Float, Optimizer, Space, Surrogate, past_of

AT = (10, 20, 30, 50)
DIRECTIONS: Mapping[str, Literal["maximize", "minimize"]] = {"bleu": "maximize", "gpu_seconds": "minimize"}
SAMPLERS: Mapping[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "NSGA-II": lambda seed: optuna.samplers.NSGAIISampler(population_size=10, seed=seed),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


class Table(NamedTuple):
    """The evaluated configurations of a task."""

    rows: list[dict[str, float]]
    bleu: np.ndarray
    seconds: np.ndarray
    memory: np.ndarray
    """NaN where it is missing."""

    def outcome(self, row: int, limit: float) -> dict[str, float]:
        """The values of a row, and how far its memory is above a limit."""
        return {"bleu": self.bleu[row], "gpu_seconds": self.seconds[row], "excess": self.memory[row] - limit}


def read_tables(path: Path | None) -> dict[str, Table]:
    """Returns the tables of a file, or generated ones."""
    content = _generated() if path is None else read_json(path)
    tables = {}
    for name, task in content["tasks"].items():
        metrics = dict(zip(content["metrics"], np.array(task["Y"], float).T, strict=True))
        memory = metrics["gpu_memory_mb"]
        rows = [dict(zip(content["columns"], map(float, row), strict=True)) for row in task["X"]]
        tables[name] = Table(rows, metrics["bleu"], metrics["gpu_seconds"], np.where(memory > 0, memory, np.nan))
    return tables


def _generated() -> dict[str, Any]:
    """Returns three related tasks, in which wide networks are better, slower and larger."""
    rng, tasks = np.random.default_rng(0), {}
    x = [(width, 10.0**rate) for width in (64, 128, 256, 512) for rate in np.linspace(-4, -2, 15).round(3)]
    widths, rates = np.log2(np.array(x)).T
    for i, name in enumerate("abc"):
        bleu = 10 * (i + 1) + 2 * widths - (rates / np.log2(10) + 3 + i / 10) ** 2 + rng.normal(0, 0.1, len(x))
        memory = np.where(rng.random(len(x)) < 0.1, 0.0, 2.0**widths * 10)
        seconds = 2.0 ** (widths / 2) * np.exp(rng.normal(i, 0.1, len(x)))
        tasks[name] = {"X": x, "Y": np.column_stack([bleu, seconds, memory]).tolist()}
    return {"columns": ["width", "rate"], "metrics": ["bleu", "gpu_seconds", "gpu_memory_mb"], "tasks": tasks}


class Problem:
    """A new task, with the others as past studies."""

    def __init__(self, tables: Mapping[str, Table], name: str, goal: str) -> None:
        """Draws the space around all tables; only the rows of the task are allowed."""
        self.table, self.goal = tables[name], goal
        self.past_tables = {other: table for other, table in tables.items() if other != name}
        rows = [row for table in tables.values() for row in table.rows]
        bounds = {column: (min(row[column] for row in rows), max(row[column] for row in rows)) for column in rows[0]}
        parameters = {column: Float(low, high, log=True) for column, (low, high) in bounds.items()}
        self.space = Space(parameters, rules=[Allowed(self.table.rows)])
        self.index: dict[tuple[Any, ...], int] = {tuple(row.values()): i for i, row in enumerate(self.table.rows)}
        self.limit = float(np.nanmedian(self.table.memory))

    @property
    def directions(self) -> Mapping[str, Literal["maximize", "minimize"]]:
        """The objectives."""
        return DIRECTIONS if self.goal == "front" else {"bleu": "maximize"}

    @cached_property
    def surrogates(self) -> dict[str, Surrogate]:
        """What the other tasks teach of each objective."""
        return {name: self._surrogate(name, direction) for name, direction in self.directions.items()}

    def _surrogate(self, objective: str, direction: str) -> Surrogate:
        tasks = {}
        for name, table in self.past_tables.items():
            outcomes = [table.outcome(row, self.limit) for row in range(len(table.rows))]
            limits = [{"memory": outcome["excess"]} if self.goal == "limit" else None for outcome in outcomes]
            tasks[name] = [
                Evaluated(row, outcome[objective], constraints=limit)
                for row, outcome, limit in zip(table.rows, outcomes, limits, strict=True)
            ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of trials without a known memory, which are left out
            return Surrogate.fit(past_of(self.space, tasks, direction=direction), quiet=True)

    def score(self, rows: list[int]) -> float:
        """Returns what the evaluated rows have reached."""
        if self.goal == "limit":
            feasible = self.table.bleu[self.table.memory <= self.limit]
            found = [self.table.bleu[row] for row in rows if self.table.memory[row] <= self.limit]
            return float((feasible.max() - max(found, default=feasible.min())) / np.ptp(feasible))
        values = np.column_stack([self.table.bleu, -self.table.seconds])
        worst = values.min(axis=0)
        return hypervolume(values[rows], worst) / hypervolume(values, worst)


def search(problem: Problem, with_past: bool, seed: int, trials: int) -> list[int]:
    """Returns the rows that the optimizer of this library evaluates."""
    rows: list[int] = []
    past = problem.surrogates if with_past else {}
    if problem.goal == "front":
        optimizer = Optimizer(problem.space, past, directions=DIRECTIONS, seed=seed)
    else:
        optimizer = Optimizer(problem.space, past.get("bleu"), direction="maximize", seed=seed)
    for _ in range(trials):
        trial = optimizer.ask()
        rows.append(problem.index[tuple(trial.params[column] for column in problem.table.rows[0])])
        outcome = problem.table.outcome(rows[-1], problem.limit)
        if problem.goal == "front":
            optimizer.tell(trial, {name: outcome[name] for name in DIRECTIONS})
        else:
            optimizer.tell(trial, outcome["bleu"], constraints={"memory": outcome["excess"]})
    return rows


def search_by_optuna(sampler: str, problem: Problem, seed: int, trials: int) -> list[int]:
    """Returns the rows nearest to what Optuna suggests, by places among the values; each is evaluated once."""
    levels = {column: sorted({row[column] for row in problem.table.rows}) for column in problem.table.rows[0]}
    places = np.array([[levels[column].index(value) for column, value in row.items()] for row in problem.table.rows])
    scale = np.maximum(places.max(axis=0), 1)

    study = optuna.create_study(directions=list(problem.directions.values()), sampler=SAMPLERS[sampler](seed))
    rows: list[int] = []
    for _ in range(trials):
        trial = study.ask()
        wanted = np.array([trial.suggest_int(column, 0, len(values) - 1) for column, values in levels.items()])
        distance = np.linalg.norm((places - wanted) / scale, axis=1)
        distance[rows] = np.inf
        rows.append(int(np.argmin(distance)))
        outcome = problem.table.outcome(rows[-1], problem.limit)
        if problem.goal == "limit":  # Optuna has no unknown constraint
            trial.set_constraint("memory", 1.0 if np.isnan(outcome["excess"]) else outcome["excess"])
        study.tell(trial, [outcome[name] for name in problem.directions])
    return rows


TUNERS: Mapping[str, Callable[[Problem, int, int], list[int]]] = {
    "Optimizer, with past": lambda problem, seed, trials: search(problem, True, seed, trials),
    "Optimizer": lambda problem, seed, trials: search(problem, False, seed, trials),
    **{f"Optuna's {name}": partial(search_by_optuna, name) for name in SAMPLERS},
}


def compare(problems: Mapping[str, Problem], seeds: int, trials: int) -> dict[str, np.ndarray]:
    """Returns the scores f64[tasks, seeds, counts] of each tuner."""
    at = [count for count in AT if count <= trials]
    scores = {}
    for tuner, run in TUNERS.items():
        found = [[run(problem, seed, trials) for seed in range(seeds)] for problem in problems.values()]
        scores[tuner] = np.array(
            [
                [[problem.score(rows[:count]) for count in at] for rows in runs]
                for problem, runs in zip(problems.values(), found, strict=True)
            ]
        )
    return scores


def lines(scores: Mapping[str, np.ndarray], goal: str, trials: int) -> Iterable[str]:
    """Yields the lines of a table: means, and standard errors over tasks of the differences from the first tuner."""
    noun = "hypervolume" if goal == "front" else "regret"
    heads = [f"{noun} at {count}" for count in AT if count <= trials]
    yield "| tuner | " + " | ".join(heads) + " |"
    yield "| --- |" + " ---: |" * len(heads)
    first = next(iter(scores.values()))
    for tuner, values in scores.items():
        gaps = (values - first).mean(axis=1)
        errors = gaps.std(axis=0) / max(len(gaps) - 1, 1) ** 0.5
        cells = [f"{mean:.3f}" for mean in values.mean(axis=(0, 1))]
        if len(gaps) > 1:
            cells = [f"{cell} ± {error:.3f}" for cell, error in zip(cells, errors, strict=True)]
        yield f"| {tuner} | " + " | ".join(cells) + " |"


def main(arguments: list[str] | None = None) -> None:
    """Runs the searches and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--goals", nargs="+", default=["front", "limit"], choices=["front", "limit"])
    parser.add_argument("--tasks", nargs="+", help="new tasks; by default all in turn")
    args = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    tables = read_tables(args.tables)
    for goal in args.goals:
        problems = {name: Problem(tables, name, goal) for name in args.tasks or tables}
        scores = compare(problems, args.seeds, args.trials)
        print("\n".join(lines(scores, goal, args.trials)), flush=True)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
