"""Writes tables whose tasks have features, for ``compare_scales.py``, from data that others publish.

``python scripts/scale_data.py kernels CHECKOUT --out FOLDER`` writes a file for each benchmark of the public repository
`tlranda/GC_TLA` (Randall et al. 2023): running times of programs by their transformations, of five problem sizes. The
largest size of each benchmark is left out, and so is Floyd-Warshall, whose two sizes between the others have the times
of its largest.

``python scripts/scale_data.py lcbench FOLDER --descriptions metadata.csv --out FILE`` writes trainings of networks
(Zimmer et al. 2021; a folder in HPO-B's layout), with the rows, columns and classes of their data sets from
`reports/datasets/4h/metadata.csv` of the public repository `openml/automlbenchmark`.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from command_line import errors_in_one_line

from dre_jax.data.hpob import list_spaces, load_space
from dre_jax.errors import DataError

SIZES = {
    "amg": (50, 75, 100, 125, 150),
    "rsbench": (100_000, 500_000, 1_000_000, 2_500_000, 5_000_000),
    "sw4lite": (3, 4, 5, 6, 7),
    "xsbench": (100_000, 500_000, 1_000_000, 2_500_000, 5_000_000),
    "3mm": (40, 110, 180, 490, 800),
    "covariance": (100, 180, 260, 830, 1400),
    "heat-3d": (20, 30, 40, 80, 120),
    "lu": (120, 260, 400, 1200, 2000),
    "syr2k": (60, 130, 200, 600, 1000),
}
"""Sizes of the problems that the repository names S, SM, M, ML and L, by benchmark, from its files `problem.py`."""
_LABELS = ("S", "SM", "M", "ML", "L")
_LCBENCH_COLUMNS = ("batch_size", "layers", "width", "learning_rate", "momentum", "weight_decay", "dropout")
"""Of the folder, in their order; each is from 0 to 1."""
_FAILED = 1.0
"""The time that a program of `sw4lite` has if it did not run; others take more than three seconds."""


def main(arguments: list[str] | None = None) -> int:
    """Writes the tables, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parsers = parser.add_subparsers(dest="data", required=True)
    kernels = parsers.add_parser("kernels")
    kernels.add_argument("checkout", type=Path)
    lcbench = parsers.add_parser("lcbench")
    lcbench.add_argument("folder", type=Path)
    lcbench.add_argument("--descriptions", type=Path, required=True, help="a row for each data set")
    for each in (kernels, lcbench):
        each.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    if args.data == "lcbench":
        lcbench_table(args.folder, args.descriptions).to_csv(args.out, index=False)
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    for benchmark in SIZES:
        kernel_table(args.checkout, benchmark).to_csv(args.out / f"{benchmark}.csv", index=False)
    return 0


def kernel_table(checkout: Path, benchmark: str) -> pd.DataFrame:
    """Returns the runs of a benchmark: its name, the size, transformations and the time in seconds.

    Raises `DataError` if the files of a size are missing.
    """
    parts = []
    for size, label in zip(SIZES[benchmark], _LABELS, strict=True):
        patterns = f"{benchmark}_{label}.csv", f"{benchmark}_{label}_*.csv"
        files = sorted(path for pattern in patterns for path in checkout.glob(f"Data/*/{benchmark}/*_*/{pattern}"))
        if not files:
            raise DataError(f"{checkout} has no runs of {benchmark}, size {label}")
        runs = pd.concat([pd.read_csv(path, keep_default_na=False) for path in files])
        names = [name for name in runs if name[0] == "p" and name[1:].isdigit()]  # others are of a tuner
        part = runs[names].replace({"": "none", " ": "none"})
        part.insert(0, "benchmark", benchmark)
        part.insert(1, "size", size)
        seconds = pd.to_numeric(runs["objective"], errors="coerce")
        parts.append(part.assign(seconds=seconds.where((benchmark != "sw4lite") | (seconds != _FAILED))))
    return pd.concat(parts)


def lcbench_table(folder: Path, descriptions: Path) -> pd.DataFrame:
    """Returns the trainings of all tasks: the data set, its features, hyperparameters and the accuracy.

    Raises `DataError` if a data set has no description.
    """
    [name] = list_spaces(folder)
    space = load_space(folder, name)
    described = pd.read_csv(descriptions).set_index("name")
    parts = []
    for task in (*space.train.values(), *space.validation.values(), *space.test.values()):
        if task.name not in described.index:
            raise DataError(f"{descriptions} has no data set {task.name!r}")
        part = pd.DataFrame(np.asarray(task.X, np.float64).round(6), columns=list(_LCBENCH_COLUMNS))
        of_data = described.loc[task.name, ["nrows", "nfeatures", "nclasses"]].astype(int)
        for i, (feature, value) in enumerate(zip(("rows", "columns", "classes"), of_data, strict=True)):
            part.insert(i, feature, value)
        part.insert(0, "data_set", task.name)
        parts.append(part.assign(accuracy=task.y))
    return pd.concat(parts)


if __name__ == "__main__":
    with errors_in_one_line():
        sys.exit(main())
