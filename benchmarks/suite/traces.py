"""The best responses of runs on this machine's devices, to compare devices: ``python -m benchmarks.suite.traces``."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import numpy as np

from dre_jax.data import bundled
from dre_jax.methods import find
from dre_jax.search.batch import ExecutionConfig, run_tasks

Traces = dict[str, list[list[float]]]
"""By method: the best response so far of each run, after every trial."""
METHODS = ("gp", "dre")
TASKS, DESIGNS, DESIGN_ROWS, TRIALS = 4, 2, 5, 20


def traces() -> Traces:
    """Returns the traces of runs on tasks of the bundled `svm` space, by one device."""
    space = bundled.load("svm")
    tasks = dict(list(space.test.items())[:TASKS])
    designs = {name: {str(i): np.arange(DESIGN_ROWS) + 10 * i for i in range(DESIGNS)} for name in tasks}
    result: Traces = {}
    for name in METHODS:
        method = find(name).make({"training.steps": 200, "fine_tuning.epochs": 50} if name == "dre" else {})
        params = method.fit(space, jax.random.key(0))
        config = ExecutionConfig(devices=1)
        runs = run_tasks(method, params, tasks, designs, n_trials=TRIALS, key=jax.random.key(1), config=config)
        result[name] = [np.asarray(trace[2]).tolist() for trace in sorted(runs, key=lambda trace: trace[:2])]
    return result


def equal_share(ours: Traces, others: Traces) -> dict[str, float]:
    """Returns by method the share of trials before the first one of each run at which the best responses differ."""
    shares = {}
    for name, runs in ours.items():
        before = []
        for one, other in zip(runs, others[name], strict=True):
            differs = (i for i, (a, b) in enumerate(zip(one, other, strict=True)) if abs(a - b) > 1e-6)
            before.append(next(differs, len(one)) / len(one))
        shares[name] = sum(before) / len(before)
    return shares


def traces_of_cpu() -> Traces:
    """Returns the traces of a process that sees the CPU alone, with as many devices: members are trained on all."""
    only_cpu = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(jax.device_count())}
    command = [sys.executable, "-m", "benchmarks.suite.traces"]
    process = subprocess.run(command, env=os.environ | only_cpu, capture_output=True, text=True, check=True)
    return dict(json.loads(process.stdout.strip().splitlines()[-1]))


if __name__ == "__main__":
    print(json.dumps(traces()))
