"""A surrogate from a benchmark of Syne Tune's blackbox repository.

The repository holds LCBench, FCNet, NAS-Bench-201, TabRepo, PD1 and HPO-B as one folder each: ``configspace.json``,
``metadata.json``, configurations in parquet files, and an array of learning curves. The value of a configuration is the
mean over seeds of the last number of its curve. The folder does not say whether the objective is minimised, so the
command needs the direction. The script needs ``pip install pandas pyarrow``.

``python examples/syne_tune.py FOLDER DIRECTION [--objective NAME] [--surrogate OUT]``
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from gallery import run

from dre_jax.tuning import Categorical, Float, Int, Past, Space, Surrogate, from_frame


def read_space(path: Path) -> Space:
    """Returns the search space of a ``configspace.json`` without its constants."""
    domains = json.loads(path.read_text())
    return Space({name: parameter(domain) for name, domain in domains.items() if isinstance(domain, dict)})


def parameter(domain: dict[str, Any]) -> Float | Int | Categorical:
    """Returns the hyperparameter of a domain; ordinals and finite ranges are ordered categoricals."""
    kind, options = domain["domain_cls"], domain["domain_kwargs"]
    if kind in ("Float", "Integer"):
        log = "Log" in domain.get("sampler_cls", "") and options["lower"] > 0
        return (Float if kind == "Float" else Int)(options["lower"], options["upper"], log=log)
    if kind == "FiniteRange":
        space = np.geomspace if options.get("log_scale") else np.linspace
        values = space(options["lower"], options["upper"], options["size"]).tolist()
        return Categorical(list(dict.fromkeys(map(round, values) if options.get("cast_int") else values)), ordered=True)
    return Categorical(options["categories"], ordered=kind != "Categorical")


def read_benchmark(folder: Path, *, direction: str, objective: str | None = None) -> Past:
    """Returns the past tasks in a folder; all tasks share their configurations, or each task has its own."""
    metadata, space = json.loads((folder / "metadata.json").read_text()), read_space(folder / "configspace.json")
    column = metadata["objectives_names"].index(objective or metadata["metric_default"])
    shared = (folder / "hyperparameters.parquet").exists()
    tables = np.load(folder / "objectives_evaluations.npy", mmap_mode="r") if shared else None
    frames = []
    for index, task in enumerate(metadata["task_names"]):
        prefix = "" if shared else f"{task}-"
        table = np.load(folder / f"{task}-objectives_evaluations.npy") if tables is None else tables[index]
        curves = pd.DataFrame(table[..., column].reshape(-1, table.shape[2]))  # one row per configuration and seed
        ends = curves.ffill(axis=1).iloc[:, -1].to_numpy(float).reshape(table.shape[:2])
        frame = pd.read_parquet(folder / f"{prefix}hyperparameters.parquet")
        frames.append(frame.assign(task=task, value=pd.DataFrame(ends).mean(axis=1)))
    return from_frame(pd.concat(frames), space, direction=direction)


def main() -> None:
    """Reads a benchmark and saves a surrogate of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("direction", choices=["minimize", "maximize"])
    parser.add_argument("--objective", help="by default the benchmark's own choice")
    parser.add_argument("--surrogate", type=Path, default=Path("surrogate"), help="folder of the surrogate")
    arguments = parser.parse_args()
    past = read_benchmark(arguments.folder, direction=arguments.direction, objective=arguments.objective)
    print(f"{len(past)} past tasks", *past.exclusions, sep="\n")
    Surrogate.fit(past).save(arguments.surrogate)
    print(f"surrogate: {arguments.surrogate}")


if __name__ == "__main__":
    run(main)
