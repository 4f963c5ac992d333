"""Time of a suggestion: ``python -m benchmarks.ask [--out FILE.json] [--repeats N]``.

Prints, for a tuner without a surrogate and one with the recommended: the first suggestion of a process, imports and
loading included, with nothing compiled before (cold) and with what an earlier process has kept (warm), for a new study,
for one of 22 trials, and for one of 992; and the eight after that, up to 30 and 1,000 trials, their median and the
slowest. These compile nothing, as the history stays in one bucket. Every process is of its own; the space has six
hyperparameters, one of them conditional.

A second table has the median of further suggestions in large studies, of `DRESampler` and of `Optimizer` with many
hyperparameters, and the time of `from_frame`, each with its limit; ``--large`` measures it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

TASKS, ROWS = 8, 64
"""Past tasks of the surrogate, and their evaluations."""
LATER = 8
"""Suggestions after the first."""


class Row(NamedTuple):
    """Seconds."""

    surrogate: str
    trials: int
    """In the study at the end."""
    cold: float
    warm: float
    """From the start of the process to its first suggestion."""
    later: float | None
    slowest: float | None
    """None in a new study, where no suggestion uses a model yet."""


class LargeRow(NamedTuple):
    """Seconds at a size, and the limit on an idle machine."""

    what: str
    size: int
    seconds: float
    limit: float


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ask", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--repeats", type=int, default=3, help="processes with a warm cache; their median is printed")
    parser.add_argument("--large", action="store_true", help="the second table alone")
    parser.add_argument("--child", nargs=2, metavar=("SURROGATE", "TRIALS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(suggest(Path(options.child[0]), int(options.child[1]))))
        return 0
    rows: list[Row] = []
    if not options.large:
        with tempfile.TemporaryDirectory() as folder:
            rows = measure(Path(folder), options.repeats)
        print_table(rows)
    large = measure_large()
    print_large(large)
    if options.out:
        from dre_jax.data.files import write_json

        write_json(options.out, [row._asdict() for row in rows] + [row._asdict() for row in large], indent=1)
    return 0


def measure(folder: Path, repeats: int) -> list[Row]:
    """Returns a row for each surrogate and number of trials."""
    surrogate = folder / "surrogate"
    make_surrogate(surrogate)
    rows = []
    for name, path in (("none", Path()), ("recommended", surrogate)):
        for trials in (0, 30, 1000):
            cache = folder / f"cache-{name}-{trials}"
            cold, _ = child(path, trials, cache)
            warm = [child(path, trials, cache) for _ in range(repeats)]
            later = [seconds for _, times in warm for seconds in times]
            first = statistics.median(seconds for seconds, _ in warm)
            steady = (statistics.median(later), max(later)) if later else (None, None)
            rows.append(Row(name, trials, cold, first, *steady))
            print(rows[-1], file=sys.stderr)
    return rows


def child(surrogate: Path, trials: int, cache: Path) -> tuple[float, list[float]]:
    """Returns the seconds to the first suggestion of a process, and those of each suggestion after it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment["DRE_JAX_CACHE"] = str(cache)
    command = [sys.executable, "-m", "benchmarks.ask", "--child", str(surrogate), str(trials)]
    begin = time.time()
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    result = json.loads(process.stdout.splitlines()[-1])
    return result["at"] - begin, result["later"]


def suggest(surrogate: Path, trials: int) -> dict[str, Any]:
    """Returns the time of the first suggestion in this process, and the seconds of each suggestion after it."""
    from dre_jax.tuning import Optimizer, Surrogate

    space = make_space()
    optimizer = Optimizer(space, None if surrogate == Path() else Surrogate.load(surrogate), seed=0)
    for params, value in evaluations(max(trials - LATER, 0), 0):
        optimizer.add(params, value)
    optimizer.tell(trial := optimizer.ask(), loss(trial.params, 0))
    at, later = time.time(), []
    for _ in range(LATER if trials else 0):
        begin = time.perf_counter()
        trial = optimizer.ask()
        later.append(time.perf_counter() - begin)
        optimizer.tell(trial, loss(trial.params, 0))
    return {"at": at, "later": later}


def make_space() -> Any:
    """Returns the search space."""
    from dre_jax.tuning import Categorical, Float, Int, Space

    return Space(
        {
            "C": Float(1e-3, 1e3, log=True),
            "gamma": Float(1e-4, 10.0, log=True),
            "kernel": Categorical(("rbf", "poly")),
            "degree": Int(2, 5, when={"kernel": "poly"}),
            "coef": Float(0.0, 1.0),
            "shrink": Float(0.0, 1.0),
        }
    )


def loss(params: Any, task: int) -> float:
    """Returns a quadratic whose minimum differs from task to task."""
    import math

    at = 0.1 * task
    terms = (math.log10(params["C"]) / 6 - at, params["coef"] - at, params["shrink"] - 0.5)
    return sum(term**2 for term in terms) + 0.1 * (params["kernel"] == "poly")


def evaluations(n: int, task: int) -> list[tuple[Any, float]]:
    """Returns configurations with their losses."""
    from dre_jax.search.candidates import sobol_points

    space = make_space()
    points = sobol_points(1024, len(space), task + 1)[:n]
    return [(params, loss(params, task)) for params in map(space.params, points)]


def make_surrogate(folder: Path) -> None:
    """Fits the recommended method to past tasks and saves the surrogate."""
    from dre_jax.tuning import Evaluated, Surrogate, past_of

    tasks = {str(t): [Evaluated(*pair) for pair in evaluations(ROWS, t)] for t in range(1, TASKS + 1)}
    Surrogate.fit(past_of(make_space(), tasks, direction="minimize")).save(folder)


def measure_large() -> list[LargeRow]:
    """Returns the times at many trials, hyperparameters and rows."""
    return [
        LargeRow("DRESampler, 6 hyperparameters", 300, sampler_seconds(300), 0.1),
        LargeRow("DRESampler, 6 hyperparameters", 10_000, sampler_seconds(10_000), 0.2),
        LargeRow("Optimizer, 60 hyperparameters", 10_000, optimizer_seconds(10_000, 60), 0.5),
        LargeRow("from_frame", 100_000, frame_seconds(100_000), 2.0),
    ]


def sampler_seconds(trials: int) -> float:
    """Returns the median time of a trial of a study that has so many trials, most of them random."""
    import optuna

    from dre_jax.tuning.optuna import DRESampler

    def objective(trial: optuna.Trial) -> float:
        numbers = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(5)]
        return sum(x**2 for x in numbers) + (trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly")

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=trials)
    study.sampler = DRESampler(seed=0)
    return median_seconds(lambda: study.optimize(objective, n_trials=1))


def optimizer_seconds(trials: int, n_columns: int) -> float:
    """Returns the median time of a trial of a study that has so many trials, most of them random."""
    import numpy as np

    from dre_jax.tuning import Float, Optimizer, Space, Trial

    optimizer = Optimizer(Space({f"x{i}": Float(0.0, 1.0) for i in range(n_columns)}))
    for row in np.random.default_rng(0).random((trials, n_columns)).tolist():
        optimizer.add({f"x{i}": x for i, x in enumerate(row)}, sum(x**2 for x in row))

    def loss(trial: Trial) -> float:
        return float(np.square([*trial.params.values()]).sum())  # type: ignore[arg-type]

    return median_seconds(lambda: optimizer.optimize(loss, 1))


def frame_seconds(rows: int) -> float:
    """Returns the time of past tasks from a data frame."""
    import numpy as np

    from dre_jax.tuning import from_frame

    rng = np.random.default_rng(0)
    is_poly = rng.random(rows) < 0.5
    columns = {"C": 10 ** rng.uniform(-3, 3, rows), "gamma": 10 ** rng.uniform(-4, 1, rows)}
    columns |= {
        "kernel": np.where(is_poly, "poly", "rbf"),
        "degree": np.where(is_poly, rng.integers(2, 6, rows), np.nan),
    }
    columns |= {name: rng.random(rows) for name in ("coef", "shrink", "value")}
    frame: dict[str, Any] = {"task": [f"task {i % 20}" for i in range(rows)]} | columns
    return median_seconds(lambda: from_frame(frame, make_space(), direction="minimize"), repeats=3)


def median_seconds(f: Callable[[], object], repeats: int = LATER) -> float:
    """Returns the median time of a call after two."""
    times = []
    for _ in range(repeats + 2):
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:])


def print_large(rows: list[LargeRow]) -> None:
    """As Markdown."""
    print("\n| what | trials or rows | s | limit, s |")
    print("|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.size:,} | {row.seconds:.2f} | {row.limit:g} |")


def print_table(rows: list[Row]) -> None:
    """As Markdown."""
    print("| surrogate | trials | first, cold, s | first, warm, s | later, ms | slowest, ms |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        later = " | ".join("-" if seconds is None else f"{1e3 * seconds:.0f}" for seconds in (row.later, row.slowest))
        print(f"| {row.surrogate} | {row.trials} | {row.cold:.1f} | {row.warm:.1f} | {later} |")


if __name__ == "__main__":
    sys.exit(main())
