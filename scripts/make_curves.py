"""Writes recorded learning curves of public repositories as files that ``compare_fidelity.py --curves`` reads.

``python scripts/make_curves.py --algoperf DIR --out OUT [--workloads criteo1tb fastmri ...]``
``python scripts/make_curves.py --hpo-rl-bench DIR --out OUT [--workloads Pong-v0 ...]``

A checkout of `mlcommons/submissions_algorithms` has the trainings of a benchmark of optimisers: a workload is a task, a
submission with its hyperparameters a configuration. One of `releaunifreiburg/HPO-RL-Bench` has those of agents of PPO:
an environment is a task. A configuration has the mean curve of its repetitions, each at shares of its own length. A
folder of OUT gets a file for each task.
"""

import argparse
import csv
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import errors_in_one_line

from dre_jax.data.files import read_json, write_json
from dre_jax.errors import DataError

_N_POINTS = 100
_SHARES = np.arange(1, _N_POINTS + 1) / _N_POINTS
_LOSSES, _RATES = ("wer", "loss"), ("ssim", "accuracy", "mean_average_precision", "bleu")
_NAMES = {
    "learning_rate": "learning_rate",
    "weight_decay": "weight_decay",
    "l2": "weight_decay",
    "dropout_rate": "dropout_rate",
    "label_smoothing": "label_smoothing",
    "warmup": "warmup",
    "warmup_factor": "warmup",
    "warmup_steps_fraction": "warmup",
}
"""Names of hyperparameters, by those in submissions."""


class Training(NamedTuple):
    """A recorded training; values are maximised."""

    task: str
    config: Mapping[str, Any]
    values: np.ndarray
    """f64[_N_POINTS], after each share of the training."""


def main(arguments: list[str] | None = None) -> int:
    """Writes the files, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sources = parser.add_mutually_exclusive_group(required=True)
    sources.add_argument("--algoperf", type=Path, help="a checkout of mlcommons/submissions_algorithms")
    sources.add_argument("--hpo-rl-bench", type=Path, help="a checkout of releaunifreiburg/HPO-RL-Bench")
    parser.add_argument("--workloads", nargs="+", help="the tasks to read; by default all")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    name, read = ("algoperf", algoperf) if args.algoperf else ("hpo-rl-bench", hpo_rl_bench)
    folder = args.algoperf or args.hpo_rl_bench
    repetitions: dict[str, dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    for training in read(folder, args.workloads):
        repetitions[training.task][json.dumps(training.config, sort_keys=True)].append(training.values)
    if not repetitions:
        raise DataError(f"{folder} must have trainings of {args.workloads or 'any task'}, but has none")
    (args.out / name).mkdir(parents=True, exist_ok=True)
    for task, configurations in sorted(repetitions.items()):
        rows = [
            {"config": json.loads(config), "curve": curve_of(np.mean(values, axis=0)), "diverged": False}
            for config, values in configurations.items()
        ]
        write_json(args.out / name / f"{task}.json", rows)
        print(f"{task}: {len(rows)} configurations, {sum(map(len, configurations.values()))} trainings")
    return 0


def curve_of(values: np.ndarray) -> list[tuple[float, float]]:
    """Returns pairs of a share and a value."""
    return list(zip(_SHARES.tolist(), values.round(6).tolist(), strict=True))


def algoperf(folder: Path, workloads: list[str] | None) -> Iterator[Training]:
    """Yields the trainings of workloads by submissions whose hyperparameters were tuned."""
    for path in sorted(folder.glob("previous_leaderboards/*/logs/external_tuning/*/study_*/*/trial_*/hparams.json")):
        submission, workload = path.parts[-5], re.sub("_(jax|pytorch)$", "", path.parts[-3])
        measurements = path.with_name("eval_measurements.csv")
        if (workloads is None or workload in workloads) and measurements.exists():
            curve = _validation_curve(measurements)
            if len(curve) > 2:
                config = {"submission": submission, **_hyperparameters(read_json(path))}
                yield Training(workload, config, _at_shares(curve))


def _validation_curve(path: Path) -> dict[float, float]:
    """Returns the validation metric by step: the rate of a workload, or minus its loss."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    names = [f"validation/{name}" for name in (*_RATES, *_LOSSES)]
    metric = next((name for name in names if rows and rows[0].get(name)), None)
    if metric is None:
        return {}
    sign = -1.0 if metric.endswith(_LOSSES) else 1.0
    values = {float(row["global_step"]): sign * float(row[metric] or "nan") for row in rows}
    return {step: value for step, value in values.items() if math.isfinite(value)}


def _hyperparameters(values: Mapping[str, Any]) -> dict[str, float]:
    """Returns the numbers that most submissions have, under the same names."""
    numbers = {_NAMES[name]: float(value) for name, value in values.items() if name in _NAMES}
    for beta in ("beta1", "beta2"):
        if beta in values:
            numbers[f"one_minus_{beta}"] = round(1.0 - float(values[beta]), 9)
        elif f"one_minus_{beta}" in values:
            numbers[f"one_minus_{beta}"] = float(values[f"one_minus_{beta}"])
    return numbers


def hpo_rl_bench(folder: Path, environments: list[str] | None) -> Iterator[Training]:
    """Yields the trainings of agents of PPO, with one value for all of a training."""
    for path in sorted(folder.glob("data_hpo_rl_bench/PPO/*/*_random_*_eval.json")):
        if environments is None or path.parent.name in environments:
            record = read_json(path)
            config = {name: float(record[name]) for name in ("learning_rate", "gamma", "clip")}
            returns = {float(step): value for step, value in enumerate(record["returns_eval"], 1)}
            yield Training(path.parent.name, config, _at_shares(returns))


def _at_shares(curve: Mapping[float, float]) -> np.ndarray:
    """Returns the values of a curve at shares of its last step."""
    steps = np.array(sorted(curve), float)
    return np.interp(_SHARES * steps[-1], steps, [curve[step] for step in steps])


if __name__ == "__main__":
    with errors_in_one_line():
        sys.exit(main())
