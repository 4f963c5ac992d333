"""Time of a suggestion: ``python -m benchmarks.ask [--repeats N]``.

Prints, for a tuner without a surrogate and one with the recommended: the first suggestion of a process, imports and
loading included, with nothing compiled before (cold) and with what an earlier process has kept (warm), for a new study,
for one of 22 trials, and for one of 992; and the eight after that, up to 30 and 1,000 trials, their median and the
slowest. These compile nothing, as the history stays in one bucket. Every process is of its own; the space has six
hyperparameters, one of them conditional.

``--first`` measures what a user waits for at first, in processes with an empty and then with a full cache: wall and
processor time of the README's example with past studies, of ``DRESearchCV(SVC())``, of the first suggestion of a method
and of the one after a failed trial (``benchmarks.first``).
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.first import print_first_impressions
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import Categorical, Evaluated, Float, Int, Optimizer, Space, Surrogate, past_of

TASKS, ROWS = 8, 64
"""Past tasks of the surrogate, and their evaluations."""
LATER = 8
"""Suggestions after the first."""
SPACE = Space(
    {
        "C": Float(1e-3, 1e3, log=True),
        "gamma": Float(1e-4, 10.0, log=True),
        "kernel": Categorical(("rbf", "poly")),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "coef": Float(0.0, 1.0),
        "shrink": Float(0.0, 1.0),
    }
)


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ask", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="processes with a warm cache; their median is printed")
    parser.add_argument("--child", nargs=2, metavar=("SURROGATE", "TRIALS"), help=argparse.SUPPRESS)
    parser.add_argument("--first", action="store_true", help="measure first impressions")
    options = parser.parse_args(arguments)
    if options.first:
        print_first_impressions(options.repeats)
        return
    if options.child:
        print(json.dumps(suggest(Path(options.child[0]), int(options.child[1]))))
        return
    print(
        "| surrogate | trials | first, cold, s | first, warm, s | later, ms | slowest, ms |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        surrogate = Path(folder) / "surrogate"
        tasks = {str(t): [Evaluated(*pair) for pair in evaluations(ROWS, t)] for t in range(1, TASKS + 1)}
        Surrogate.fit(past_of(SPACE, tasks, direction="minimize")).save(surrogate)
        for name, path in (("none", Path()), ("recommended", surrogate)):
            for trials in (0, 30, 1000):
                cache = Path(folder) / f"cache-{name}-{trials}"
                cold, *warm = (child(path, trials, cache) for _ in range(1 + options.repeats))
                first = statistics.median(seconds for seconds, _ in warm)
                later = [1e3 * seconds for _, times in warm for seconds in times]
                steady = f"{statistics.median(later):.0f} | {max(later):.0f}" if later else "- | -"
                print(f"| {name} | {trials} | {cold[0]:.1f} | {first:.1f} | {steady} |", flush=True)


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
    optimizer = Optimizer(SPACE, None if surrogate == Path() else Surrogate.load(surrogate), seed=0)
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


def loss(params: Any, task: int) -> float:
    """Returns a quadratic whose minimum differs from task to task."""
    at = 0.1 * task
    terms = (math.log10(params["C"]) / 6 - at, params["coef"] - at, params["shrink"] - 0.5)
    return sum(term**2 for term in terms) + 0.1 * (params["kernel"] == "poly")


def evaluations(n: int, task: int) -> list[tuple[Any, float]]:
    """Returns configurations with their losses."""
    points = sobol_points(1024, len(SPACE), task + 1)[:n]
    return [(params, loss(params, task)) for params in map(SPACE.params, points)]


if __name__ == "__main__":
    main()
