"""Time of a meta-training step, of a trial, and of compiling both: ``python -m benchmarks.core [--epochs N]``.

With the default sizes, on random tables. Compile time is apart; every figure is the median of repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax import DRE, FineTuneConfig, MetaTrainConfig, ModelConfig
from dre_jax.cli.runtime import prepare
from dre_jax.data import Task, build_table
from dre_jax.search.batch import BatchConfig, run_tasks
from dre_jax.training.meta_train import member_devices, portion, spread, start, train


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, list[float]]:
    """Seconds of the first call, and of each of the later ones."""
    seconds = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        jax.block_until_ready(work())
        seconds.append(time.perf_counter() - begun)
    return seconds[0], seconds[1:]


def row(name: str, unit: str, count: int, first: float, later: list[float]) -> dict[str, Any]:
    """A line of the table: median and spread of a unit of work."""
    each = [seconds / count for seconds in later]
    median = statistics.median(each)
    return {
        "name": name,
        "unit": unit,
        "median_s": median,
        "min_s": min(each),
        "max_s": max(each),
        "compile_s": max(0.0, first - median * count),
    }


def random_tasks(n_tasks: int, n_rows: int, n_columns: int) -> dict[str, Task]:
    """Tasks of random rows: speed does not depend on the values."""
    rng = np.random.default_rng(0)
    return {
        f"task-{i}": Task(f"task-{i}", rng.random((n_rows, n_columns), np.float32), rng.random(n_rows))
        for i in range(n_tasks)
    }


def meta_training(lists: int, columns: int, repeats: int) -> dict[str, Any]:
    """A meta-training step: ten members, deep set, lists of 100, tasks of 300 rows."""
    model, config = ModelConfig(), MetaTrainConfig(lists_per_step=lists)
    table, key = build_table(random_tasks(30, 300, columns)), jax.random.key(0)
    devices = member_devices(model)
    table, state = spread(table, start(model, config, columns, key), devices)
    steps = portion(config)

    def work() -> Any:
        nonlocal state
        state, losses = train(model, config, table, state, key, steps, devices)
        return losses

    return row(f"meta-train-step-{lists}", "step", steps, *timed(work, repeats))


def trials(history: int, rows: int, columns: int, epochs: int, repeats: int) -> dict[str, Any]:
    """A trial of one run among many: so many epochs, then acquisition; history up to the size given."""
    n_tasks = 2 * len(jax.devices())
    n_trials = history - 5 + 1
    tasks = random_tasks(n_tasks, rows, columns)
    designs = {name: {"test0": np.arange(5)} for name in tasks}
    method = DRE(fine_tuning=FineTuneConfig(epochs=epochs))
    params = start(method.model, MetaTrainConfig(), columns, jax.random.key(0)).params
    config = BatchConfig(tasks_at_once=n_tasks)

    def work() -> Any:
        keys = jax.random.key(1)
        # Every trial is made, as no run stops at its optimum.
        return list(
            run_tasks(method, params, tasks, designs, n_trials=n_trials, key=keys, config=config, stop_at_optimum=False)
        )

    return row(f"trial-{history}", "trial and run", n_tasks * n_trials, *timed(work, repeats))


def main() -> None:
    """Prints a table, and writes it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--out", help="JSON file")
    given = parser.parse_args()
    os.environ["DRE_JAX_CACHE"] = ""
    prepare()
    jnp.zeros(1).block_until_ready()
    rows = [
        meta_training(1, given.columns, given.repeats),
        meta_training(16, given.columns, given.repeats),
        trials(30, 300, given.columns, given.epochs, max(1, given.repeats // 2)),
    ]
    environment = {
        "device": str(jax.devices()[0].device_kind),
        "devices": len(jax.devices()),
        "cores": os.cpu_count(),
        "jax": jax.__version__,
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }
    print(", ".join(f"{name} {value}" for name, value in environment.items()))
    for line in rows:
        spread = f"{line['min_s'] * 1e3:.3f} to {line['max_s'] * 1e3:.3f}"
        print(
            f"{line['name']:<20} {line['median_s'] * 1e3:9.3f} ms a {line['unit']} ({spread}), "
            f"compile {line['compile_s']:.1f} s"
        )
    if given.out:
        with open(given.out, "w") as file:
            json.dump({"environment": environment, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
