"""Speed on an accelerator, in one command: ``python -m benchmarks.gpu_suite [--out FILE.json] [--full] [--small]``.

The rows of ``python -m benchmarks`` against both PyTorch peers on the same GPU; all 430 runs of HPO-B, 100 trials of
1000 epochs each, on synthetic tables of its real shapes; 500,000 meta-training steps of one list (a part is timed
unless ``--full``); and what the compiled loops consist of. ``--small`` does all of it in miniature, on a CPU if there
is nothing else. Peers stand in only where PyTorch sees a GPU; without one they are left out, or run on the CPU with
``--small``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

STEPS = 500_000


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of everything is done."""

    epochs: int = 1000
    trials: int = 100
    repeats: int = 5
    largest_table: int | None = None
    spaces: int = 16
    at_once: int = 64
    """Runs side by side in the rows of a trial."""
    members: int = 10
    rows: tuple[str, ...] = (
        "trial-105",
        "trial-30",
        "trial-10",
        "trial-105-candidates-3000",
        "trial-105-candidates-30000",
        "meta-train-step-1",
        "meta-train-step-16",
        "meta-train-step-100",
        "trial-105-published",
        "trial-30-published",
        "trial-10-published",
        "meta-train-step-published",
        "suggest",
    )


SMALL = Size(
    epochs=4, trials=2, repeats=1, largest_table=64, spaces=1, at_once=2, members=2, rows=("meta-train-step-1",)
)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--full", action="store_true", help="do all meta-training steps, not a part of them")
    parser.add_argument("--small", action="store_true", help="in miniature, to see that it works")
    parser.add_argument("--only", nargs="+", choices=("profile", "hpob", "meta-train", "rows"), help="these parts")
    parser.add_argument("--no-peers", action="store_true", help="ours only")
    return parser.parse_args(arguments)


class CompileClock:
    """Seconds that JAX spends compiling, from its own reports."""

    def __init__(self) -> None:
        from jax import monitoring

        self.seconds = 0.0
        monitoring.register_event_duration_secs_listener(self._note)

    def _note(self, event: str, duration_secs: float, **_: Any) -> None:
        if event.endswith("backend_compile_duration"):
            self.seconds += duration_secs


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints, writes."""
    arguments = sys.argv[1:] if arguments is None else arguments
    given = parse(arguments)
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # compile time is measured
    os.environ["DRE_JAX_NATIVE"] = "0"  # in miniature, on a CPU, the loops are an accelerator's too
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the peers need memory too
    from dre_jax.cli.runtime import prepare

    prepare()
    from benchmarks.suite import environment, plan, table

    size = SMALL if given.small else Size()
    about, measured = environment.begin("benchmarks.gpu_suite", arguments)
    about |= {"peer_device": _peer_device(about["platform"], given)}
    found: list[dict[str, Any]] = []
    loops: list[dict[str, Any]] = []
    parts: dict[str, Callable[[], None]] = {
        "profile": lambda: loops.extend(profile(size)),
        "hpob": lambda: found.append(hpob_row(size, measured)),
        "meta-train": lambda: found.append(meta_row(size, measured, full=given.full)),
        "rows": lambda: found.extend(
            plan.record(name, one, bench) for name, one, bench in peer_rows(size, measured, about, given)
        ),
    }
    for name, part in parts.items():
        if given.only and name not in given.only:
            continue
        print(f"{name} ...", file=sys.stderr)
        part()
        if given.out:
            environment.write(given.out, about, found, profile=loops)
    if given.out:
        environment.write(given.out, environment.finish(about), found, profile=loops)
    print(f"{about['device']}: product {measured.flops / 1e9:.0f} GFLOP/s, copy {measured.bytes / 1e9:.0f} GB/s")
    for loop in loops:
        print(", ".join(f"{key} {value}" for key, value in loop.items()))
    print(table.plain(found))
    return 1 if any("error" in row for row in found) else 0


def _peer_device(platform: str, given: argparse.Namespace) -> str | None:
    """Where the peers run: on the GPU that PyTorch sees; in miniature on the CPU; otherwise nowhere."""
    if given.no_peers:
        return None
    try:
        import torch
    except ImportError:
        return None
    if platform not in ("cpu", "tpu") and torch.cuda.is_available():
        return "cuda"
    return "cpu" if given.small else None


def profile(size: Size) -> list[dict[str, Any]]:
    """Kernels, fusions and bytes of an epoch of fine-tuning and of a step of meta-training."""
    from benchmarks.suite import ours
    from benchmarks.suite.loops import loops

    return loops(replace(ours.default_model(), members=size.members), (1, size.at_once), (1,))


def hpob_row(size: Size, rates: Any) -> dict[str, Any]:
    """All runs of HPO-B's test split, as `dre-jax evaluate` does them: on an accelerator, search spaces together."""
    from benchmarks.suite import floors, ours
    from benchmarks.suite.hpob_shapes import DESIGN_ROWS, DESIGNS, SPACES, n_runs
    from benchmarks.suite.rows import Row, Timing

    model = replace(ours.default_model(), members=size.members)
    spaces = SPACES[: size.spaces]
    rows = {one.name: min(one.rows_per_task, size.largest_table or one.rows_per_task) for one in spaces}
    clock = CompileClock()
    seconds = ours.runs_of_spaces(
        model,
        {one.name: ours.random_tasks(one.test_tasks, rows[one.name], one.columns) for one in spaces},
        design=DESIGN_ROWS,
        designs=DESIGNS,
        trials=size.trials,
        epochs=size.epochs,
    )
    floor = 0.0
    for one in spaces:
        work = floors.run(model, one.columns, DESIGN_ROWS, size.trials, rows[one.name], size.epochs)
        floor += one.test_tasks * DESIGNS * work.seconds(*rates)
    total = seconds - clock.seconds
    return Row(
        name="hpob-430-runs",
        unit=f"all {n_runs(spaces)} runs of {size.trials} trials, {size.epochs} epochs each",
        ours=Timing(median=total, low=total, high=total, compile_s=clock.seconds),
        floor_s=floor,
        notes=("once; synthetic tables of HPO-B's shapes; no peer, as theirs take hours",),
        extra={"rows_per_task": rows, "runs": n_runs(spaces)},
    ).as_json()


def meta_row(size: Size, rates: Any, *, full: bool) -> dict[str, Any]:
    """Half a million steps of one list on the largest search space."""
    from benchmarks.suite import floors, ours
    from benchmarks.suite.hpob_shapes import SPACES
    from benchmarks.suite.rows import Row, Timing

    model = replace(ours.default_model(), members=size.members)
    space = max(SPACES, key=lambda one: one.columns)
    rows = min(space.train_rows // space.train_tasks, 2 * (size.largest_table or 10**9))
    portions = STEPS // 200 if full else size.repeats * (1 if size.largest_table else 10)
    one = ours.meta_step(model, lists=1, columns=space.columns, repeats=portions, tasks=space.train_tasks, rows=rows)
    seconds = [value * STEPS for value in (one.median, one.low, one.high)]
    floor = floors.step(model, space.columns, 20, 100).seconds(*rates)
    return Row(
        name="meta-train-500000",
        unit=f"{STEPS:,} steps of one list",
        ours=Timing(median=seconds[0], low=seconds[1], high=seconds[2], compile_s=one.compile_s),
        floor_s=floor * STEPS,
        notes=(f"{portions} portions of 200 steps timed, so many steps by the median",),
        extra={"space": space.name, "step_s": one.median},
    ).as_json()


def peer_rows(size: Size, rates: Any, about: dict[str, Any], given: argparse.Namespace) -> list[tuple[Any, ...]]:
    """The rows beside the peers, on this device."""
    from benchmarks.suite import plan

    device = about["peer_device"]
    bench = plan.Bench(
        cores=about["cores"],
        rates=rates,
        quick=given.small,
        device=device,
        epochs=size.epochs,
        repeats=size.repeats,
        side_by_side=size.at_once,
        eager_epochs=min(10, size.epochs),
    )
    return [(name, one, bench) for name, one in plan.chosen(False, list(size.rows))]


if __name__ == "__main__":
    sys.exit(main())
