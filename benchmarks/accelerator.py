"""Speed on an accelerator, in one command: ``python -m benchmarks.accelerator [--out FILE.json] [--full] [--small]``.

The rows of ``python -m benchmarks`` against both PyTorch peers on the same GPU; all 430 runs of HPO-B, 100 trials of
1000 epochs each, on synthetic tables of its real shapes, and the memory that they take; 500,000 meta-training steps of
one list (a part is timed unless ``--full``); and runs of two methods beside the same on the CPU: do they find the same?
``--small`` does all of it in miniature, on a CPU if there is nothing else. Peers run only where PyTorch sees a GPU;
without one they are left out, or run on the CPU with ``--small``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from benchmarks.suite import floors, ours, plan
from benchmarks.suite.hpob_shapes import DESIGN_ROWS, DESIGNS, SPACES
from benchmarks.suite.rows import Row, Timing
from benchmarks.suite.traces import equal_share, traces, traces_of_cpu
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.runtime.setup import prepare

STEPS = 500_000
ROWS = (
    *(f"trial-{n}" for n in (105, 30, 10)),
    *(f"trial-105-candidates-{n}" for n in (3000, 30000)),
    *(f"meta-train-step-{n}" for n in (1, 16, 100)),
    *(f"trial-{n}-published" for n in (105, 30, 10)),
    "meta-train-step-published",
    "suggest",
)
LARGE: dict[str, Any] = {"epochs": 1000, "repeats": 5, "side_by_side": 64, "eager_epochs": 10}
SMALL: dict[str, Any] = {"epochs": 4, "repeats": 1, "side_by_side": 2, "eager_epochs": 4}
"""Fields of `benchmarks.suite.plan.Bench`."""
SMALL_ROWS = ("meta-train-step-1",)


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accelerator",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--full", action="store_true", help="do all meta-training steps, not a part of them")
    parser.add_argument("--small", action="store_true", help="in miniature, to see that it works")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_compilation_cache", False)  # compile time is measured
    os.environ["DRE_JAX_NATIVE"] = "0"  # in miniature, on a CPU, the loops are an accelerator's too
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the peers need memory too
    prepare()
    small = options.small
    sizes, model, catalogue = SMALL if small else LARGE, ours.default_model(2 if small else 10), plan.catalogue()
    portions = STEPS // 200 if options.full else 1 if small else 50
    rows: dict[str, plan.Measure] = {
        "same-as-cpu": same_as_cpu_row,
        "hpob-430-runs": partial(hpob_row, model=model, small=small),
        f"meta-train-{STEPS}": partial(steps_row, model=model, portions=portions, most_rows=128 if small else 10**9),
    }
    rows |= {name: catalogue[name] for name in (SMALL_ROWS if small else ROWS)}
    device = peer_device(small)
    return plan.run("benchmarks.accelerator", arguments, rows, options.out, device=device, **sizes)


def peer_device(small: bool) -> str | None:
    """Returns where the peers run: on the GPU that PyTorch sees; in miniature on the CPU; otherwise nowhere."""
    try:
        import torch
    except ImportError:
        return None
    on_gpu = jax.devices()[0].platform not in ("cpu", "tpu") and torch.cuda.is_available()
    return "cuda" if on_gpu else "cpu" if small else None


def same_as_cpu_row(bench: plan.Bench, name: str) -> Row:
    """Compares runs on one device with those of a process that sees the CPU alone."""
    begin = time.perf_counter()
    on_device = traces()
    seconds = time.perf_counter() - begin
    return Row(
        name=name,
        unit="8 runs of 20 trials of gp and of dre, with compiling and 200 steps of meta-training",
        ours=Timing(median=seconds, low=seconds, high=seconds),
        notes=("the share of trials before the best response first differs from the CPU's, by method",),
        extra={"equal": equal_share(on_device, traces_of_cpu())},
    )


def hpob_row(bench: plan.Bench, name: str, *, model: ModelConfig, small: bool) -> Row:
    """Measures all runs of HPO-B's test split as `dre-jax evaluate` does: on an accelerator, search spaces together."""
    n_spaces, trials, most_rows = (1, 2, 64) if small else (16, 100, 10**9)
    spaces = SPACES[:n_spaces]
    rows = {one.name: min(one.rows_per_task, most_rows) for one in spaces}
    tasks = {one.name: ours.random_tasks(one.test_tasks, rows[one.name], one.columns) for one in spaces}
    n_runs, compile_times = DESIGNS * sum(map(len, tasks.values())), list[float]()

    def add_compile_time(event: str, duration_secs: float, **_: Any) -> None:
        if event.endswith("backend_compile_duration"):
            compile_times.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(add_compile_time)
    seconds = ours.runs_of_spaces(model, tasks, design=DESIGN_ROWS, designs=DESIGNS, trials=trials, epochs=bench.epochs)
    compile_s = sum(compile_times)
    floor = 0.0
    for one in spaces:
        work = floors.run(model, one.columns, DESIGN_ROWS, trials, rows[one.name], bench.epochs)
        floor += one.test_tasks * DESIGNS * work.seconds(*bench.rates)
    total = seconds - compile_s
    memory = jax.devices()[0].memory_stats() or {}  # empty on a CPU
    return Row(
        name=name,
        unit=f"all {n_runs} runs of {trials} trials, {bench.epochs} epochs each",
        ours=Timing(median=total, low=total, high=total, compile_s=compile_s),
        floor_s=floor,
        notes=("once; synthetic tables of HPO-B's shapes; no peer, as theirs take hours",),
        extra={"rows_per_task": rows, "runs": n_runs, "peak_bytes": memory.get("peak_bytes_in_use")},
    )


def steps_row(bench: plan.Bench, name: str, *, model: ModelConfig, portions: int, most_rows: int) -> Row:
    """Measures half a million steps of one list on the largest search space."""
    space = max(SPACES, key=lambda one: one.columns)
    rows = min(space.train_rows // space.train_tasks, most_rows)
    one = ours.meta_step(model, lists=1, columns=space.columns, repeats=portions, tasks=space.train_tasks, rows=rows)
    return Row(
        name=name,
        unit=f"{STEPS:,} steps of one list",
        ours=replace(one, median=STEPS * one.median, low=STEPS * one.low, high=STEPS * one.high),
        floor_s=STEPS * floors.step(model, space.columns, 20, 100).seconds(*bench.rates),
        notes=(f"{portions} portions of 200 steps timed, so many steps by the median",),
        extra={"space": space.name, "step_s": one.median},
    )


if __name__ == "__main__":
    sys.exit(main())
