"""What meta-training reads and writes beside computing: ``python -m benchmarks.meta_io [--out FILE.json]``.

Checkpoints: seconds of one as the trainer writes it at the end of a long run, by the number of members. It is written
in the foreground, so all of it holds training up; ``blocking_s`` is for how long Orbax alone would, if it wrote the
same arrays in the background. Streamed rows: bytes of a step, and seconds in which this machine draws, reads and places
them, with all cores; ``core_s`` is what that takes of one.

Each is told as a share of what steps take meanwhile, of which ``--step-us`` says how long one is on the devices.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from benchmarks.suite import environment, ours
from dre_jax import MetaTrainConfig
from dre_jax.data import SearchSpace
from dre_jax.methods.checkpoints.training import ResumableTraining
from dre_jax.methods.dre.state import LossEntry, TrainingRun, TrainState
from dre_jax.methods.dre.steps import portion, start
from dre_jax.methods.dre.stream import StreamedFeed, bytes_per_step

KEY = jax.random.key(0)


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints, writes."""
    arguments = sys.argv[1:] if arguments is None else arguments
    given = _parser().parse_args(arguments)
    about = environment.describe("benchmarks.meta_io", arguments)
    rows = []
    for members in given.members:
        config = MetaTrainConfig(steps=given.steps)
        row = {"name": "checkpoint", "members": members, **saving(members, config, given.columns, given.repeats)}
        rows.append(tell(row, config.evaluate_every * given.step_us))
    for lists in given.lists:
        for own in (True, False):
            config = MetaTrainConfig(lists_per_step=lists, own_lists=own)
            row = {"name": "rows of a step", "lists": lists, "own_lists": own}
            row |= streaming(config, given.rows, given.columns, given.repeats)
            rows.append(tell(row, given.step_us))
    environment.write(given.out, about, rows)
    return 0


def tell(row: dict[str, Any], computing_us: float) -> dict[str, Any]:
    """Prints a row, with its seconds as a share of so many microseconds."""
    row = {**row, "share": row["seconds"] / computing_us * 1e6}
    print(
        ", ".join(
            f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
        )
    )
    return row


def saving(members: int, config: MetaTrainConfig, columns: int, repeats: int) -> dict[str, Any]:
    """A checkpoint of the default model, with the losses of a whole run."""
    model = ours.default_model(members)
    state = jax.block_until_ready(start(model, config, columns, KEY))
    history = [LossEntry(step, 20.0, 20.0) for step in range(0, config.steps + 1, config.evaluate_every)]
    space = SearchSpace("s", train=ours.random_tasks(1, 100, columns))
    with tempfile.TemporaryDirectory() as folder:
        training = ResumableTraining(folder, space, model, config, KEY)
        runs = (TrainingRun(state._replace(step=state.step + step), history) for step in range(config.steps))
        seconds = median_time(lambda: training.save(next(runs)), repeats)
    n_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    return {"bytes": n_bytes, "blocking_s": _blocking(state, repeats), "seconds": seconds}


def _blocking(state: TrainState, repeats: int) -> float:
    """Seconds until Orbax has taken arrays over that it writes in the background."""
    import orbax.checkpoint as ocp

    arrays = {str(i): leaf for i, leaf in enumerate(jax.tree.leaves(state))}
    times = []
    with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(folder) as manager:
        for step in range(repeats + 1):
            begun = time.perf_counter()
            manager.save(step, args=ocp.args.StandardSave(arrays), force=True)
            times.append(time.perf_counter() - begun)
            manager.wait_until_finished()
    return statistics.median(times[1:])


def streaming(config: MetaTrainConfig, rows: int, columns: int, repeats: int) -> dict[str, Any]:
    """The rows of a step of the default model's, of a table in memory of so many rows."""
    model, steps = ours.default_model(), portion(config)
    feed = StreamedFeed(model, config, KEY, None, ours.random_tasks(100, rows // 100, columns))
    count = min(steps, feed.most)
    portions = feed.portions((i * count, count) for i in range(repeats + 1))
    cpu = []

    def take() -> None:
        begun = time.process_time()
        jax.block_until_ready(next(portions))
        cpu.append(time.process_time() - begun)

    seconds = median_time(take, repeats) / count
    of_cores = statistics.median(cpu[1:]) / count
    return {"bytes": bytes_per_step(model, config, columns), "core_s": of_cores, "seconds": seconds}


def median_time(f: Callable[[], Any], repeats: int) -> float:
    """Seconds of a call, but for the first."""
    times = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        f()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.meta_io", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--members", type=int, nargs="*", default=[10, 100], help="of the checkpoints")
    parser.add_argument("--steps", type=int, default=500_000, help="of a run")
    parser.add_argument("--step-us", type=float, default=1000.0, help="of a step on the devices (default: %(default)s)")
    parser.add_argument("--lists", type=int, nargs="*", default=[1, 100], help="of a streamed step")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table (default: %(default)s)")
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=9)
    return parser


if __name__ == "__main__":
    sys.exit(main())
