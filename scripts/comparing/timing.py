"""What a suggestion takes: the same history and table for every method, in a process that does nothing else."""

from __future__ import annotations

import json
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from dre_jax.cli.runtime import prepare
from dre_jax.data import bundled
from dre_jax.data.files import make_folder, write_json
from dre_jax.data.tasks import unit_scale
from dre_jax.methods import find

SPACE, HISTORY, REPEATS = "gradient-boosting", 30, 5


class Times(NamedTuple):
    """Seconds."""

    fit: float
    """Learning from the past tasks of the search space, compiling included; 0 without transfer."""
    first: float
    """The first suggestion, compiling included."""
    warm: float
    """The median of the next five."""


def times_of(name: str, out: Path) -> Times:
    """A method's times, measured unless they have been."""
    path = out / "times" / f"{name}.json"
    if not path.exists():
        make_folder(path.parent)
        # A process of its own: methods share programs, and the second to be timed would find them compiled.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            write_json(path, pool.submit(_measure_from_cold, name).result()._asdict())
    return Times(**json.loads(path.read_text()))


def _measure_from_cold(name: str) -> Times:
    prepare()
    jax.config.update("jax_enable_compilation_cache", False)  # nothing compiled earlier
    return _measure(name)


def _measure(name: str) -> Times:
    space = bundled.load(SPACE)
    task = next(iter(space.test.values()))
    x, y = task.X.astype(np.float64), unit_scale(task.y)[:, None]
    rows = np.random.default_rng(0).permutation(len(x))
    seen, pending = rows[:HISTORY], rows[HISTORY:]
    started = time.perf_counter()
    asked: Any = _ready(name, space)
    fitted = time.perf_counter() - started
    calls = []
    for _ in range(1 + REPEATS):
        started = time.perf_counter()
        asked.observe_and_suggest(x[seen], y[seen], x[pending])
        calls.append(time.perf_counter() - started)
    return Times(fitted if find(name).transfer else 0.0, calls[0], float(np.median(calls[1:])))


def _ready(name: str, space: Any) -> Any:
    """The object to ask, with what it learned."""
    import jax

    from dre_jax import Suggester

    entry = find(name)
    if entry.host is not None:
        return entry.host()
    method = entry.make()
    params = jax.block_until_ready(method.fit(space, jax.random.key(0)))
    return Suggester(method, params, seed=0)
