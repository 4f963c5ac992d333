"""Time of a method's suggestion: all methods have the same history and table, and each has a process of its own."""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from dre_jax.data import SearchSpace, load_space
from dre_jax.data.files import make_folder, read_json, write_json
from dre_jax.data.tasks import unit_scale
from dre_jax.hpob.jobs import BUNDLED, data_folder
from dre_jax.hpob.workers import end_with_parent
from dre_jax.methods import find
from dre_jax.methods.registry import host_of
from dre_jax.runtime.setup import prepare
from dre_jax.suggest.suggester import Suggester

SPACE, HISTORY, REPEATS = "gradient-boosting", 30, 15


class Times(NamedTuple):
    """Seconds."""

    fit: float | None
    """Learning from the past tasks of the search space, compiling included; None where there is nothing to learn."""
    first: float
    """The first suggestion, compiling included."""
    warm: float
    """The median of the next fifteen suggestions: some of SMAC's are random, and take no time."""


def suggestion_times(method: str, out: Path, *, data: str = BUNDLED, space: str = SPACE, split: str = "test") -> Times:
    """Returns a method's times on the first task of a search space; a file in `out` caches them.

    Args:
      method: the name of the method.
      out: folder of the measurements.
      data: folder in HPO-B's layout, or `BUNDLED`.
      space: search space.
      split: split of the task.
    """
    suffix = [] if (data, space) == (BUNDLED, SPACE) else [Path(data).name, space]
    path = out / "times" / f"{'-'.join([method.replace('/', '-'), *suffix])}.json"
    if not path.exists():
        make_folder(path.parent)
        # A separate process, because methods share programs, and the second method would find them compiled.
        with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as pool:
            write_json(path, pool.submit(_measure_from_cold, method, data, space, split).result()._asdict())
    return Times(**read_json(path))


def _measure_from_cold(method: str, data: str, space: str, split: str) -> Times:
    prepare()  # as the commands do
    jax.config.update("jax_enable_compilation_cache", False)  # nothing compiled earlier
    past = load_space(data_folder(data), space)
    task = next(iter(past.split(split).values()))
    x, y = task.X.astype(np.float64), unit_scale(task.y)[:, None]
    rows = np.random.default_rng(0).permutation(len(x))
    history = min(HISTORY, len(x) // 2)
    observed_rows, pending_rows = rows[:history], rows[history:]
    start = time.perf_counter()
    suggester, has_transfer = _ready(method, past)
    fit = time.perf_counter() - start
    calls = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        suggester.observe_and_suggest(x[observed_rows], y[observed_rows], x[pending_rows])
        calls.append(time.perf_counter() - start)
    return Times(fit if has_transfer else None, calls[0], float(np.median(calls[1:])))


def _ready(method: str, space: SearchSpace) -> tuple[Any, bool]:
    """Returns the suggester after `fit`, and whether the method learned from past tasks."""
    host = host_of(method)
    if host is not None:
        return host(), False
    entry = find(method)
    configured_method = entry.make()
    params = jax.block_until_ready(configured_method.fit(space, jax.random.key(0)))
    return Suggester(configured_method, params, seed=0), entry.transfer
