"""Searches of many trials: what a model of all trials gives beyond one of 192, the default `EngineConfig.max_history`.

``python scripts/compare_history.py --out FOLDER [--wide levy-50 digits-66] [--first 300] [--more 60] [--sizes 192 512]
[--tasks 2]``

A search of the default settings makes the first trials of each task, which FOLDER keeps. From there the search goes on
with each size of the history. Regret is 0 at the best value known of a task and 1 at the median random configuration.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from command_line import errors_in_one_line
from rivals.outcomes import scaled_regret, standard_error
from rivals.problems import Task
from rivals.wide_tasks import WIDE, WideFamily

from dre_jax.data.files import read_json, write_json
from dre_jax.runtime.setup import prepare
from dre_jax.tuning import EngineConfig, Optimizer

Found = dict[str, Any]
AT = (10, 20, 40, 60, 100)
"""Numbers of further trials that the table shows."""


def main(arguments: list[str] | None = None) -> None:
    """Searches and prints a table for each family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the searches")
    parser.add_argument("--wide", nargs="+", choices=WIDE, default=["levy-50", "digits-66"])
    parser.add_argument("--first", type=int, default=300, help="number of trials before the histories differ")
    parser.add_argument("--more", type=int, default=60, help="number of trials after them")
    parser.add_argument("--sizes", type=int, nargs="+", default=[192, 512], help="sizes of the history")
    parser.add_argument("--tasks", type=int, default=2)
    args = parser.parse_args(arguments)
    prepare()
    for name in args.wide:
        family = WideFamily(name, args.tasks)
        samples = family.samples()
        found = [search_task(args, family, group, samples) for group in family.groups()]
        print(f"\n{name}, {len(found)} tasks, {args.first} trials before\n")
        seconds = np.median([seconds for _, seconds in found], axis=0)
        print("\n".join(table(np.array([regret for regret, _ in found]), seconds, args.sizes)))


def search_task(
    args: argparse.Namespace, family: WideFamily, group: int, samples: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, list[float]]:
    """Returns the regret f64[sizes, 1 + more] and the processor seconds of a suggestion by size of the history."""
    (task,) = family.tasks(group, 0)
    stem = f"{family.name}-{group}-{args.first}"
    known = _kept(args.out / f"{stem}.json", lambda: first_trials(task, args.first))
    searches = [
        _kept(args.out / f"{stem}-{size}-{args.more}.json", partial(go_on, task, known, size, args.more))
        for size in args.sizes
    ]
    values = np.array([[max(known["values"]), *search["values"]] for search in searches])
    sample = samples[task.name]
    highest = np.maximum.accumulate(values, axis=1)
    best = max(sample.max(), values.max())
    return scaled_regret(highest, best, float(np.median(sample))), [search["seconds"] for search in searches]


def first_trials(task: Task, count: int) -> Found:
    """Returns the configurations and values of a search of the default settings."""
    optimizer = Optimizer(task.problem.space, direction="maximize", seed=0)
    _search(optimizer, task, count)
    trials = optimizer.trials
    return {"params": [dict(trial.params) for trial in trials], "values": [trial.value for trial in trials]}


def go_on(task: Task, known: Found, size: int, count: int) -> Found:
    """Returns the values of further trials, and the processor seconds of a suggestion, with a history of a size."""
    config = EngineConfig(max_history=size)
    optimizer = Optimizer(task.problem.space, direction="maximize", seed=1, config=config)
    for params, value in zip(known["params"], known["values"], strict=True):
        optimizer.add(params, value)
    seconds = _search(optimizer, task, count)
    return {"values": [trial.value for trial in optimizer.trials[-count:]], "seconds": float(np.median(seconds))}


def table(regret: np.ndarray, seconds: np.ndarray, sizes: Sequence[int]) -> Iterator[str]:
    """Yields the lines of a table of regrets f[tasks, sizes, trials] and seconds f[sizes]; ± is over tasks."""
    at = [t for t in AT if t < regret.shape[2]]
    heads = ["history", "before", *(f"after {t}" for t in at), *(f"minus {sizes[0]} at {t}" for t in at), "seconds"]
    yield "| " + " | ".join(heads) + " |"
    yield "| " + " | ".join(["---:"] * len(heads)) + " |"
    for i, size in enumerate(sizes):
        mean, gap = regret[:, i].mean(axis=0), regret[:, i] - regret[:, 0]
        error, columns = standard_error(gap), [f"{mean[t]:.4f}" for t in (0, *at)]
        columns += ["" if i == 0 else f"{gap.mean(axis=0)[t]:+.4f} ± {error[t]:.4f}" for t in at]
        yield "| " + " | ".join([str(size), *columns, f"{seconds[i]:.2f}"]) + " |"


def _search(optimizer: Optimizer, task: Task, count: int) -> list[float]:
    """Returns the processor seconds of each suggestion."""
    assert task.evaluate is not None
    seconds = []
    for _ in range(count):
        start = time.process_time()
        trial = optimizer.ask()
        seconds.append(time.process_time() - start)
        optimizer.tell(trial, float(task.evaluate([trial.params])[0]))
    return seconds


def _kept(path: Path, compute: Callable[[], Found]) -> Found:
    """Returns what the file has, or else computes and writes it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, compute())
    found: Found = read_json(path)
    return found


if __name__ == "__main__":
    with errors_in_one_line():
        main()
