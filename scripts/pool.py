"""Groups of jobs over worker processes that have a core each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

Group = TypeVar("Group")

# Hundreds of compiled programs in one process end in a crash inside XLA, sooner or later; the pool's own limit,
# max_tasks_per_child, hangs in Python 3.11.
_GROUPS_A_POOL = 20


def start_worker() -> None:
    """Leaves a worker one device and one thread, as jobs are small, and has it end with a script that is killed."""
    os.environ["JAX_NUM_CPU_DEVICES"] = "1"
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    from dre_jax.benchmark.workers import end_with_parent
    from dre_jax.cli.runtime import prepare

    end_with_parent()
    prepare()


def in_pools(
    groups: Sequence[Group], run: Callable[[Group], int], workers: int, groups_a_pool: int = _GROUPS_A_POOL
) -> Iterator[int]:
    """What ``run`` returns of each group, as they are finished; workers are started anew now and then."""
    for first in range(0, len(groups), groups_a_pool):
        with ProcessPoolExecutor(workers, get_context("spawn"), start_worker) as pool:
            futures = [pool.submit(run, group) for group in groups[first : first + groups_a_pool]]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                pool.shutdown(cancel_futures=True)
