"""Set-up of the commands that compute: devices, other processes, the cache of compiled programs."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import jax

from dre_jax.runtime import cache, devices, threads
from dre_jax.runtime.distributed import start


def prepare(
    count: int | None = None,
    distributed: bool = False,
    coordinator: str | None = None,
    processes: int | None = None,
    process_id: int | None = None,
) -> None:
    """One CPU device a core, so that runs are shared among the cores, one thread each; a cache of compiled programs.

    The cache lies in ``$DRE_JAX_CACHE``, by default ``~/.cache/dre_jax``; an empty value turns it off. JAX's own
    settings, where set, stay as they are.

    `count` is the number of devices that this process is to use; for the rest see `dre_jax.runtime.distributed.start`.
    Raises `ConfigError` where there are fewer devices, or the other processes cannot be joined.
    """
    # `jax.config.read` refuses the settings that have a context manager.
    n_devices: Any = getattr(jax.config, "jax_num_cpu_devices")  # noqa: B009
    if count is not None or ("JAX_NUM_CPU_DEVICES" not in os.environ and n_devices < 1):
        # JAX refuses this after it has begun to compute: a program that calls later keeps its devices.
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", count or devices.cores())
    threads.factorise_on_one_thread()
    start(distributed, coordinator, processes, process_id)
    devices.use(count)
    cache.keep_programs()
