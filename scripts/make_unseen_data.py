"""Make nine small real search spaces that no choice of the library was made on, in HPO-B's layout.

    python scripts/make_unseen_data.py --out DIR            # an hour of one core
    python scripts/make_unseen_data.py --out DIR --quick    # tiny sizes, to try the script

Trees, ensembles of them, linear models and perceptrons, on the sub-tasks of the bundled data, some with their score and
some with the share of right answers. Needs scikit-learn and no network. Each search space is kept in DIR/SPACE once it
is there; DIR/all holds them together.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from bundled.results import DECIMALS, DESIGN_ROWS, DESIGNS, stream
from bundled.spaces import sample
from bundled.tasks import Problem, problems
from bundled.unseen import SPACES, response
from one_line import errors_in_one_line
from threadpoolctl import threadpool_limits

from dre_jax.data import SearchSpace, Task, load_space, write_dataset

QUICK_TASKS, QUICK_ROWS = 2, 8


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--space", action="append", choices=sorted(SPACES), help="may be given again (default: all)")
    return parser.parse_args()


def task_of(name: str, problem: Problem, rows: int) -> Task:
    """A task of so many configurations at random."""
    unseen, rng = SPACES[name], stream(name, problem.name)
    x = np.array([unseen.space.encode(sample(unseen.space, rng)) for _ in range(rows)]).round(DECIMALS)
    y = np.array([response(unseen, row, problem) for row in x]).round(6)
    print(f"{name} {problem.name}: best {y.max():.4f}, median {np.median(y):.4f}", flush=True)
    return Task(problem.name, x.astype(np.float32), y)


def space_of(name: str, *, quick: bool) -> SearchSpace:
    """A search space with the sub-tasks of the bundled data and initial designs."""
    rows = QUICK_ROWS if quick else SPACES[name].rows
    splits = {
        split: {one.name: task_of(name, one, rows) for one in (some[:QUICK_TASKS] if quick else some)}
        for split, some in problems().items()
    }
    designs = {
        task: {
            f"test{i}": stream(name, task, f"design {i}").choice(rows, DESIGN_ROWS, replace=False)
            for i in range(DESIGNS)
        }
        for split in ("validation", "test")
        for task in splits[split]
    }
    return SearchSpace(name, splits["train"], splits["validation"], splits["test"], designs)


def main() -> None:
    given, spaces = arguments(), []
    for name in given.space or SPACES:
        folder = given.out / name
        if not folder.exists():
            write_dataset(folder, [space_of(name, quick=given.quick)])
        spaces.append(load_space(folder, name))
    write_dataset(given.out / "all", spaces)
    print(f"wrote {', '.join(space.name for space in spaces)}")


if __name__ == "__main__":
    with errors_in_one_line(), threadpool_limits(1):
        main()
