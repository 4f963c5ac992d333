"""Compares searches that pause or stop trainings with those that train every configuration to the end.

``python scripts/compare_fidelity.py --out OUT.jsonl --yahpo DIR --spaces rbv2_rpart iaml_glmnet [--curves PATH ...]``

A training has 27 steps; a search spends those of ``--trainings`` whole ones. Live spaces are those of YAHPO Gym, with
random trials of other tasks as the past. Recorded curves are a file for each task, a list of ``{"config", "curve",
"diverged"}``; the tasks of a folder are each other's past (``make_curves.py`` writes such folders). Regret is 0 at the
best known final value of a task, and 1 at the median of random configurations. Finished searches are in the file: rerun
the command to resume; use another file for another past. Install the others by ``pip install -r
scripts/rivals/requirements.txt``.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command_line import errors_in_one_line
from rivals.budget_methods import (
    Losses,
    Meter,
    Method,
    after_pauses,
    optuna_search,
    ours,
    random_search,
    syne_tune_search,
)
from rivals.budget_tasks import STEPS, BudgetTask, live_tasks
from rivals.jobs import Study, append_searches
from rivals.outcomes import standard_error
from rivals.recorded_tasks import recorded_tasks

from dre_jax.errors import ConfigError
from dre_jax.runtime.setup import prepare

METHODS: dict[str, Method] = {
    "past": partial(ours, has_past=True),
    "past-full": partial(ours, has_past=True, has_fidelity=False),
    "alone": partial(ours, has_past=False),
    "alone-full": partial(ours, has_past=False, has_fidelity=False),
    "alone-stop": partial(ours, has_past=False, has_fidelity=False, stops=True),
    "optuna-asha": partial(optuna_search, sampler="random", pruner="asha"),
    "optuna-tpe-hyperband": partial(optuna_search, sampler="tpe", pruner="hyperband"),
    "syne-asha": partial(syne_tune_search, scheduler="ASHA"),
    "syne-bohb": partial(syne_tune_search, scheduler="BOHB"),
    "random": random_search,
}
AFTER_PAUSES: dict[str, Method] = {
    f"pauses-{rows}": partial(after_pauses, rows=rows) for rows in ("finished", "far", "forecast", "all")
}
"""Whole trainings, with a past of searches that paused."""
ALL = METHODS | AFTER_PAUSES


class Outcome(NamedTuple):
    """Regrets of a search after each step, and what it lost."""

    at_any_step: list[float]
    """Of the best value at any step."""
    at_the_end: list[float]
    """Of the best value at the last step."""
    losses: Losses


Searches = dict[Study, Outcome]
REFERENCES = ("optuna-asha", "past-full", "alone-full", "pauses-finished")
AT = (1, 2, 3, 5, 7, 10, 15, 20)
"""Spent steps that the tables show, in whole trainings."""
HEADS, RULE = "".join(f" {at} |" for at in AT), " ---: |" * len(AT)


def main(arguments: list[str] | None = None) -> None:
    """Runs the searches that are missing, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="finished searches, one JSON line each")
    parser.add_argument("--yahpo", type=Path, help="a checkout of yahpo_data")
    parser.add_argument("--spaces", nargs="+", default=[], help="live spaces")
    parser.add_argument("--curves", nargs="+", type=Path, default=[], help="files or folders of recorded curves")
    parser.add_argument("--methods", nargs="+", choices=list(ALL), default=list(METHODS))
    parser.add_argument("--trainings", type=int, default=max(AT))
    parser.add_argument("--tasks", type=int, default=5, help="maximum number of tasks of a live space")
    parser.add_argument("--past-trainings", type=int, default=8, help="spent by each past search with pauses")
    parser.add_argument("--studies", type=int, default=10, help="maximum number of past studies")
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args(arguments)
    prepare()
    warnings.simplefilter("ignore")
    tasks = list(read_tasks(args))
    done = read_searches(args.out)
    for task in tasks:
        for method in args.methods:
            for seed in range(args.seeds):
                study = Study(method, task.family, task.name, seed)
                is_done = study in done and len(done[study].at_the_end) >= args.trainings * STEPS
                if can_search(method, task) and not is_done:
                    done[study] = run_search(task, ALL[method], seed, args.trainings)
                    append_searches(args.out, {study: done[study]})
                    print(*study, file=sys.stderr, flush=True)
    for i, title in enumerate(("Best value at any step", "Best value at the last step")):
        print(f"\n{title}: regret by spent steps, in whole trainings\n")
        print_table(tasks, args.methods, done, i, args.seeds)
        print_differences(tasks, args.methods, done, i, args.seeds)
    print_losses(tasks, args.methods, done, args.seeds)


def read_tasks(args: argparse.Namespace) -> Iterator[BudgetTask]:
    """Yields the tasks."""
    if args.spaces and args.yahpo is None:
        raise ConfigError("live spaces need --yahpo, but got none")
    for name in args.spaces:
        yield from live_tasks(Path(args.yahpo), name, args.tasks, args.studies, 40, args.past_trainings)
    for path in args.curves:
        yield from recorded_tasks(path, 300)


def can_search(method: str, task: BudgetTask) -> bool:
    """Returns whether a method can search a task: with a past if it has one, and in its table if it is one."""
    if method.startswith("pauses"):
        return task.past_curves is not None
    if method.startswith("past"):
        return bool(task.problem.past)
    return not (method.startswith("syne") and task.rows)


def run_search(task: BudgetTask, method: Method, seed: int, trainings: int) -> Outcome:
    """Returns the outcome of a search."""
    meter = Meter(task, trainings * STEPS)
    method(meter, seed)
    values = meter.best_at_any_step[1:], meter.best_at_the_end[1:]
    at_any_step, at_the_end = (task.regret(best).round(5).tolist() for best in values)
    return Outcome(at_any_step, at_the_end, meter.losses())


def read_searches(path: Path) -> Searches:
    """Returns the searches of a file; a line that was cut short is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("]]")]
    return {Study(*row[:4]): Outcome(row[4], row[5], Losses(*row[6])) for row in rows}


def print_table(tasks: list[BudgetTask], methods: list[str], searches: Searches, which: int, seeds: int) -> None:
    """Prints the mean regrets of each method on each family, and on all tasks."""
    print(f"| method | family | tasks |{HEADS}\n| --- | --- | ---: |{RULE}")
    for family in [*dict.fromkeys(task.family for task in tasks), "all"]:
        for method in methods:
            own_tasks = [task for task in tasks if family in ("all", task.family)]
            own_tasks = searched_tasks(own_tasks, [method], searches)
            if own_tasks:
                regrets = mean_curves(own_tasks, method, searches, which, seeds)
                print(f"| {method} | {family} | {len(regrets)} |{cells(regrets)}")


def print_differences(tasks: list[BudgetTask], methods: list[str], searches: Searches, which: int, seeds: int) -> None:
    """Prints the regrets minus those of a reference on the same tasks, and when its last mean regret is reached."""
    for reference in REFERENCES:
        pairs = {name: searched_tasks(tasks, [name, reference], searches) for name in methods if name != reference}
        if not any(pairs.values()):
            continue
        print(f"\nMinus {reference} on the same tasks, and the trainings that reach its regret at the end\n")
        print(f"| method | tasks |{HEADS} reached after |\n| --- | ---: |{RULE} ---: |")
        for method, both in pairs.items():
            if not both:
                continue
            own, other = (mean_curves(both, name, searches, which, seeds) for name in (method, reference))
            is_reached = own.mean(axis=0) <= other.mean(axis=0)[-1]
            reached = f"{(int(is_reached.argmax()) + 1) / STEPS:.1f}" if is_reached.any() else "not"
            print(f"| {method} | {len(both)} |{cells(own - other, sign='+')} {reached} |")


def print_losses(tasks: list[BudgetTask], methods: list[str], searches: Searches, seeds: int) -> None:
    """Prints how many searches lost the best of the configurations that they started, by the final value."""
    print("\nBest configurations that were started, but not trained to the end\n")
    print("| method | family | searches | started | lost | regret of the best that ended, minus theirs |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for family in [*dict.fromkeys(task.family for task in tasks), "all"]:
        for method in methods:
            own_tasks = searched_tasks([task for task in tasks if family in ("all", task.family)], [method], searches)
            studies = [Study(method, task.family, task.name, seed) for task in own_tasks for seed in range(seeds)]
            if studies:
                started, lost, regret = np.array([searches[study].losses for study in studies]).T
                cells = (
                    f"{started.mean():.0f} | {lost.mean():.2f} | {regret.mean():.3f} ± {standard_error(regret):.3f} |"
                )
                print(f"| {method} | {family} | {len(studies)} | {cells}")


def searched_tasks(tasks: list[BudgetTask], methods: list[str], searches: Searches) -> list[BudgetTask]:
    """Returns the tasks that all methods have searched."""
    return [task for task in tasks if all(Study(name, task.family, task.name, 0) in searches for name in methods)]


def mean_curves(tasks: list[BudgetTask], method: str, searches: Searches, which: int, seeds: int) -> np.ndarray:
    """Returns the regrets f64[tasks, steps] of a method that has searched all tasks, means over seeds."""
    studies = [[Study(method, task.family, task.name, seed) for seed in range(seeds)] for task in tasks]
    return np.array([np.mean([searches[study][which] for study in of_task], axis=0) for of_task in studies])


def cells(curves: np.ndarray, sign: str = "") -> str:
    """Returns the cells of means ± standard errors over tasks of f64[tasks, steps]; dashes after shorter searches."""
    means, errors = curves.mean(axis=0), standard_error(curves)
    rows = [at * STEPS - 1 for at in AT]
    return "".join(f" {means[i]:{sign}.3f} ± {errors[i]:.3f} |" if i < len(means) else " – |" for i in rows)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
