"""Derive meta-datasets from one: folds, fewer past tasks, smaller tables, misleading, diverged or equal responses.

``python scripts/derive_data.py --data DIR --out NEW [--space NAME] [--folds 6 | --past-tasks 3 --past-rows 20
--test-rows 400 --responses reversed --past-from DIR2 SPACE2]``

``--folds K`` writes NEW/fold-1 to NEW/fold-K: each task of the training, validation and test splits is a test task of
one fold, whose past tasks are all others. All folders are in HPO-B's layout, for ``dre-jax compare --data``. Drawn rows
and folds depend on names alone.
"""

import argparse
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import errors_in_one_line

from dre_jax.data import SearchSpace, Task, bundled
from dre_jax.data.hpob import list_spaces, load_space, write_dataset
from dre_jax.errors import ConfigError

_DESIGNS = 5
_SPLITS = ("train", "validation", "test")


class Derivation(NamedTuple):
    """What changes in a search space; nothing by default."""

    past_tasks: int | None = None
    """Number of past tasks."""
    past_rows: int | None = None
    """Number of rows of each past task."""
    past_from: Sequence[str] | None = None
    """Folder and search space of another model, whose training tasks become the past tasks."""
    test_rows: int | None = None
    """Number of rows of each test task, which gets new initial designs."""
    responses: str | None = None
    """One of `RESPONSES`."""
    design_rows: int = 2
    """Number of rows of the initial designs that are drawn."""


class Folding(NamedTuple):
    """Folds of the tasks of a search space."""

    folds: int
    """Their number."""
    splits: Sequence[str] = _SPLITS
    """Splits whose tasks are in the folds."""
    design_rows: int = 2
    """Number of rows of the initial designs that are drawn."""


def main(arguments: list[str] | None = None) -> None:
    """Writes the folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a folder in HPO-B's layout, or `bundled`")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--space", nargs="+", help="search spaces; all by default")
    parser.add_argument("--folds", type=int, help="number of folds; the other options apply to each of them")
    parser.add_argument("--splits", nargs="+", default=_SPLITS, help="tasks of the folds")
    parser.add_argument("--design-rows", type=int, default=2, help="rows of the initial designs that are drawn")
    parser.add_argument("--past-tasks", type=int, help="number of past tasks")
    parser.add_argument("--past-rows", type=int, help="number of rows of each past task")
    parser.add_argument("--past-from", nargs=2, metavar=("DIR", "SPACE"), help="past tasks of another model")
    parser.add_argument("--test-rows", type=int, help="number of rows of each test task, with new initial designs")
    parser.add_argument("--responses", choices=RESPONSES, help="of test tasks; the last two: of all tasks")
    args = parser.parse_args(arguments)
    data = folder(args.data)
    spaces = [load_space(data, name) for name in args.space or list_spaces(data)]
    derivation = Derivation(**{name: getattr(args, name) for name in Derivation._fields})
    if args.folds is None:
        write_dataset(args.out, [derive(space, derivation) for space in spaces])
        return
    folding = Folding(args.folds, args.splits, args.design_rows)
    for number in range(args.folds):
        folds = [derive(fold(space, number, folding), derivation) for space in spaces]
        write_dataset(args.out / f"fold-{number + 1}", folds)


def folder(data: str) -> Path:
    """Returns the folder of a meta-dataset."""
    return bundled.path() if data == "bundled" else Path(data)


def fold(space: SearchSpace, number: int, folding: Folding) -> SearchSpace:
    """Returns the space with the tasks of one fold as test tasks, and all others as past tasks."""
    tasks = {name: task for split in folding.splits for name, task in space.split(split).items()}
    if not 2 <= folding.folds <= len(tasks):
        raise ConfigError(f"--folds must be 2 to {len(tasks)}, the number of tasks, but got {folding.folds}")
    names = np.random.default_rng(0).permutation(list(tasks))
    test = {str(name): tasks[str(name)] for name in names[number :: folding.folds]}
    train = {name: task for name, task in tasks.items() if name not in test}
    designs = {name: space.designs.get(name) or draw_designs(task, folding.design_rows) for name, task in test.items()}
    return replace(space, train=train, validation={}, test=test, designs=designs)


def derive(space: SearchSpace, derivation: Derivation) -> SearchSpace:
    """Returns the space with other or fewer past tasks, fewer rows, and other responses."""
    train, test, designs = dict(space.train), dict(space.test), dict(space.designs)
    if derivation.past_from is not None:
        other = load_space(folder(derivation.past_from[0]), derivation.past_from[1], splits=["train"])
        columns = np.arange(space.n_columns) % other.n_columns  # cut, or repeated
        train = {name: replace(task, X=task.X[:, columns]) for name, task in other.train.items()}
    if derivation.past_tasks is not None:
        names = np.random.default_rng(zlib.crc32(space.name.encode())).permutation(list(train))
        train = {str(name): train[str(name)] for name in names[: derivation.past_tasks]}
    if derivation.past_rows is not None:
        train = {name: draw_rows(task, derivation.past_rows) for name, task in train.items()}
    if derivation.test_rows is not None:
        test = {name: draw_rows(task, derivation.test_rows) for name, task in test.items()}
        designs |= {name: draw_designs(task, derivation.design_rows) for name, task in test.items()}
    validation = dict(space.validation)
    if derivation.responses in OF_ALL_TASKS:
        change = OF_ALL_TASKS[derivation.responses]
        train, validation, test = ({n: change(t) for n, t in split.items()} for split in (train, validation, test))
    elif derivation.responses is not None:
        test = {name: misleading(task, derivation.responses) for name, task in test.items()}
    return replace(space, train=train, validation=validation, test=test, designs=designs)


def draw_designs(task: Task, rows: int) -> dict[str, Any]:
    """Returns initial designs of random rows."""
    return {f"test{i}": _random(task, f"design {i}").permutation(task.n_rows)[:rows] for i in range(_DESIGNS)}


def draw_rows(task: Task, rows: int) -> Task:
    """Returns random rows of a task, in their order."""
    chosen = np.sort(_random(task, "rows").permutation(task.n_rows)[:rows])
    return replace(task, X=task.X[chosen], y=task.y[chosen])


def misleading(task: Task, kind: str) -> Task:
    """Returns a task with its responses negated, or shuffled over its rows."""
    return replace(task, y=-task.y if kind == "reversed" else _random(task, kind).permutation(task.y))


def diverged(task: Task) -> Task:
    """Returns a task of which a third is far below the rest: those highest in a random direction, but no good ones."""
    direction = np.random.default_rng(7).normal(size=task.X.shape[1])
    place, size = task.X @ direction, np.exp(_random(task, "size").normal(2.0, 1.0, task.n_rows))
    far = (place > np.quantile(place, 2 / 3)) & (task.y < np.quantile(task.y, 0.9))
    return replace(task, y=np.where(far, task.y.min() - np.ptp(task.y) * size, task.y))


def plateau(task: Task) -> Task:
    """Returns a task of which the worst 85 % share one response, but for some that are slightly below it."""
    floor, rng = np.quantile(task.y, 0.85), _random(task, "plateau")
    below = np.where(rng.random(task.n_rows) < 0.15, 0.02 * np.ptp(task.y) * rng.random(task.n_rows), 0.0)
    return replace(task, y=np.where(task.y < floor, floor - below, task.y))


OF_ALL_TASKS = {"diverged": diverged, "plateau": plateau}
RESPONSES = ("reversed", "permuted", *OF_ALL_TASKS)


def _random(task: Task, purpose: str) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(text.encode()) for text in (task.name, purpose)])


if __name__ == "__main__":
    with errors_in_one_line():
        main()
