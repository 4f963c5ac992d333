"""First impressions: what a user waits for at first, in processes with an empty and then with a full cache.

``python -m benchmarks.ask --first`` prints them. A child, ``python -m benchmarks.first WORK TIME``, prints one JSON
object of wall and processor seconds by what it has waited for, from the start of the process.
"""

import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Times = dict[str, tuple[float, float]]
"""Wall and processor seconds since the start of the process."""


def print_first_impressions(repeats: int) -> None:
    """Prints a table of seconds: with an empty cache, and the medians of processes with a full one."""
    print("| what | empty, wall s | empty, processor s | full, wall s | full, processor s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        run_child("import", Path(folder))  # Python keeps the modules' code
        for work in _WORKS:
            cache = Path(folder) / work
            cold, *warm = (run_child(work, Path(folder), cache) for _ in range(1 + repeats))
            if len({run["picks"] for run in (cold, *warm)}) > 1:
                raise RuntimeError(f"{work}: suggestions differ with a full cache")
            for name, seconds in cold["times"].items():
                full = [statistics.median(run["times"][name][i] for run in warm) for i in range(2)]
                print(
                    f"| {work}: {name} | " + " | ".join(f"{duration:.1f}" for duration in (*seconds, *full)) + " |",
                    flush=True,
                )


def run_child(work: str, folder: Path, cache: Path | None = None) -> dict[str, Any]:
    """Returns what a child prints, with JAX's default settings and a folder for Python's compiled modules."""
    skipped = ("JAX_", "XLA_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(skipped)}
    environment |= {
        "DRE_JAX_CACHE": "" if cache is None else str(cache),
        "PYTHONPYCACHEPREFIX": str(folder / "modules"),
    }
    command = [sys.executable, "-m", "benchmarks.first", work, str(time.time())]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def _readme(note: Callable[[str], None]) -> list[Any]:
    """Runs the README's example with past studies."""
    from dre_jax import Evaluated, Float, Int, Optimizer, Space, Surrogate, past_of

    def train(lr: float, layers: int, data: float) -> float:
        return (math.log10(lr) + 2 + data) ** 2 + 0.1 * abs(layers - 3)

    space = Space({"lr": Float(1e-5, 1e-1, log=True), "layers": Int(1, 8)})
    tried = [{"lr": 10.0**-e, "layers": n} for e in (1, 2, 3, 4, 5) for n in (1, 2, 4, 8)]
    studies = {f"data {d}": [Evaluated(p, train(**p, data=d)) for p in tried] for d in (0.0, 0.2, 0.4)}  # type: ignore[arg-type]
    surrogate = Surrogate.fit(past_of(space, studies, direction="minimize"))
    note("fit")
    optimizer = Optimizer(space, surrogate, direction="minimize")
    optimizer.optimize(lambda trial: train(**trial.params, data=0.3), n_trials=8)  # type: ignore[arg-type]
    note("all")
    return [trial.params for trial in optimizer.trials]


def _search(note: Callable[[str], None]) -> list[Any]:
    """Runs `DRESearchCV` of a support vector machine."""
    from sklearn import datasets, svm

    from dre_jax.tuning.sklearn import DRESearchCV

    search = DRESearchCV(svm.SVC(), random_state=0).fit(*datasets.load_wine(return_X_y=True))
    note("all")
    return list(search.cv_results_["params"])


def _study(note: Callable[[str], None]) -> list[Any]:
    """Runs a study without past tasks, of which the sixth trial fails."""
    from dre_jax import Float, Int, Optimizer, Space

    def train(params: Any) -> float:
        return float((params["x"] - 0.3) ** 2 + params["y"])

    optimizer = Optimizer(Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "n": Int(1, 8)}), seed=0)
    for number in range(7):
        trial = optimizer.ask()
        if name := {0: "first trial", 4: "first of the method", 5: "next", 6: "after a failure"}.get(number):
            note(name)
        if number == 5:
            optimizer.tell_failed(trial)
        else:
            optimizer.tell(trial, train(trial.params))
    return [trial.params for trial in optimizer.trials]


_WORKS = {"README": _readme, "DRESearchCV(SVC())": _search, "study": _study}


def main(work: str, started_at: float) -> None:
    """Does some work, and prints its times and a hash of its suggestions."""
    times: Times = {}

    def note(name: str) -> None:
        times[name] = time.time() - started_at, time.process_time()

    import dre_jax.tuning  # noqa: F401

    note("import")
    picks = _WORKS[work](note) if work in _WORKS else []
    print(json.dumps({"times": times, "picks": hashlib.sha256(repr(picks).encode()).hexdigest()}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
