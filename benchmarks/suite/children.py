"""What has to be measured in a process of its own: memory, and search spaces side by side.

``python -m benchmarks.suite.children KIND JSON`` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.suite.memory import peak_bytes

_REPOSITORY = Path(__file__).resolve().parents[2]


def launch(kind: str, **given: Any) -> subprocess.Popen[str]:
    """Starts a child."""
    environment = {
        **os.environ,
        "JAX_ENABLE_COMPILATION_CACHE": "false",  # compile time is measured
        "PYTHONPATH": os.pathsep.join([str(_REPOSITORY), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    }
    command = [sys.executable, "-m", "benchmarks.suite.children", kind, json.dumps(given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def result(child: subprocess.Popen[str]) -> dict[str, Any]:
    """What a child found."""
    printed, _ = child.communicate()
    if child.returncode:
        raise RuntimeError(f"a child that measures ended with {child.returncode}")
    return json.loads(printed.strip().splitlines()[-1])


def memory_trial(**given: Any) -> dict[str, Any]:
    from benchmarks.suite import ours

    before = _ready()
    ours.trial(ours.default_model(), repeats=1, **given)
    return {"peak": peak_bytes(), "before": before}


def memory_meta_training(*, tasks: int, rows: int, columns: int) -> dict[str, Any]:
    from benchmarks.suite import ours

    before = _ready()
    ours.meta_step(ours.default_model(), lists=1, columns=columns, repeats=1, tasks=tasks, rows=rows)
    return {"peak": peak_bytes(), "before": before}


def space(*, core: list[int], columns: int, repeats: int) -> dict[str, Any]:
    from benchmarks.suite import ours

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, core)
    _ready()
    found = ours.meta_step(ours.default_model(), lists=1, columns=columns, repeats=repeats)
    return {"median": found.median, "low": found.low, "high": found.high}


def _ready() -> int:
    """Devices as the commands have them; memory before any work."""
    import jax

    from dre_jax.cli.runtime import prepare

    prepare()
    jax.numpy.zeros(1).block_until_ready()
    return peak_bytes()


KINDS = {"memory_trial": memory_trial, "memory_meta_training": memory_meta_training, "space": space}


def spaces_side_by_side(count: int, cores: int, columns: int, repeats: int) -> list[dict[str, Any]]:
    """So many search spaces, a process each; the cores are shared out among them."""
    share = max(1, cores // count)
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(cores))
    taken = [[available[(i * share + j) % len(available)] for j in range(share)] for i in range(count)]
    children = [launch("space", core=core, columns=columns, repeats=repeats) for core in taken]
    return [result(child) for child in children]


if __name__ == "__main__":
    print(json.dumps(KINDS[sys.argv[1]](**json.loads(sys.argv[2]))))
