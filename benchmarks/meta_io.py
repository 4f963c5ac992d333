"""What meta-training reads and writes beside computing: ``python -m benchmarks.meta_io [--out FILE.json]``.

Checkpoints: seconds of one as the trainer writes it at the end of a run of 500,000 steps, by the number of members. It
is written in the foreground, so all of it holds training up; ``blocking_s`` is for how long Orbax alone would, if it
wrote the same arrays in the background. Streamed rows: bytes of a step, and seconds in which this machine draws, reads
and places them, with all cores; ``core_s`` is what that takes of one.

``share`` is the share of what steps take meanwhile, of which ``--step-us`` says how long one is on the devices.
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
from benchmarks.suite.rates import repeated
from dre_jax import MetaTrainConfig
from dre_jax.data import SearchSpace
from dre_jax.methods.checkpoints.training import ResumableTraining
from dre_jax.methods.dre.state import LossEntry, TrainingRun, TrainState
from dre_jax.methods.dre.steps import portion, start
from dre_jax.methods.dre.stream import StreamedFeed, bytes_per_step

KEY = jax.random.key(0)
MEMBERS, LISTS = (10, 100), (1, 100)
"""Of the checkpoints, and of a streamed step."""
STEPS, ROWS, COLUMNS, REPEATS = 500_000, 10_000_000, 16, 9
"""Of a run, and of the table of streamed rows."""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.meta_io", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--step-us", type=float, default=1000.0, help="of a step on the devices (default: %(default)s)")
    options = parser.parse_args(arguments)
    about = environment.describe("benchmarks.meta_io", arguments)
    rows: list[dict[str, Any]] = []

    def add(row: dict[str, Any], compute_us: float) -> None:
        rows.append({**row, "share": row["seconds"] / compute_us * 1e6})
        texts = ((name, f"{value:.3g}" if isinstance(value, float) else value) for name, value in rows[-1].items())
        print(", ".join(f"{name} {text}" for name, text in texts))

    for members in MEMBERS:
        config = MetaTrainConfig(steps=STEPS)
        row = {"name": "checkpoint", "members": members, **measure_saving(members, config)}
        add(row, config.evaluate_every * options.step_us)
    for lists in LISTS:
        for own in (True, False):
            config = MetaTrainConfig(lists_per_step=lists, own_lists=own)
            row = {"name": "rows of a step", "lists": lists, "own_lists": own, **measure_streaming(config)}
            add(row, options.step_us)
    environment.write(options.out, about, rows)
    return 0


def measure_saving(members: int, config: MetaTrainConfig) -> dict[str, Any]:
    """Measures a checkpoint of the default model, with the losses of a whole run."""
    model = ours.default_model(members)
    state = jax.block_until_ready(start(model, config, COLUMNS, KEY))
    history = [LossEntry(step, 20.0, 20.0) for step in range(0, config.steps + 1, config.evaluate_every)]
    space = SearchSpace("s", train=ours.random_tasks(1, 100, COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        training = ResumableTraining(folder, space, model, config, KEY)
        runs = (TrainingRun(state._replace(step=state.step + step), history) for step in range(config.steps))
        seconds = median_time(lambda: training.save(next(runs)))
    n_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    return {"bytes": n_bytes, "blocking_s": measure_blocking(state), "seconds": seconds}


def measure_blocking(state: TrainState) -> float:
    """Returns the seconds until Orbax has copied arrays that it writes in the background."""
    import orbax.checkpoint as ocp

    arrays = {str(i): leaf for i, leaf in enumerate(jax.tree.leaves(state))}
    times = []
    with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(folder) as manager:
        for step in range(REPEATS + 1):
            begin = time.perf_counter()
            manager.save(step, args=ocp.args.StandardSave(arrays), force=True)
            times.append(time.perf_counter() - begin)
            manager.wait_until_finished()
    return statistics.median(times[1:])


def measure_streaming(config: MetaTrainConfig) -> dict[str, Any]:
    """Measures the rows of a step of the default model, of a table in memory."""
    model = ours.default_model()
    feed = StreamedFeed(model, config, KEY, None, ours.random_tasks(100, ROWS // 100, COLUMNS))
    count = min(portion(config), feed.most)
    portions = feed.portions((i * count, count) for i in range(REPEATS + 1))
    cpu = []

    def take() -> None:
        begin = time.process_time()
        jax.block_until_ready(next(portions))
        cpu.append(time.process_time() - begin)

    seconds = median_time(take) / count
    core_s = statistics.median(cpu[1:]) / count
    return {"bytes": bytes_per_step(model, config, COLUMNS), "core_s": core_s, "seconds": seconds}


def median_time(function: Callable[[], Any]) -> float:
    """Returns the seconds of a call, but for the first."""
    return statistics.median(repeated(function, REPEATS)[1])


if __name__ == "__main__":
    sys.exit(main())
