"""A command on several processes: initialisation, the barrier at the end, and exits that the others notice.

`jax.distributed` does the work: its coordinator runs in the first process, and every process tells it that it is alive.
A process that falls silent counts as dead, and all others end.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from typing import NoReturn

import jax

from dre_jax.errors import ConfigError

JOIN = 300
"""Seconds to wait for the other processes at the start."""
HEARTBEAT = 100
"""Seconds without a heartbeat after which a process counts as dead: JAX's default, since machines stall at times."""
_AT_THE_END = 30 * 24 * 3600  # a process may end days before another: only the heartbeat ends the wait


def start(distributed: bool, coordinator: str | None, processes: int | None, process_id: int | None) -> None:
    """Initialises `jax.distributed` if options or the environment ask for several processes.

    The first process is at `coordinator`, HOST:PORT, and this one is number `process_id`, from 0. With `distributed`,
    the cluster decides both. Raises `ConfigError` for missing or wrong options, without a cluster, or if other
    processes do not start.
    """
    options = {"--coordinator": coordinator, "--processes": processes, "--process-id": process_id}
    missing = [name for name, value in options.items() if value is None]
    if not distributed and len(missing) == len(options):
        return
    if missing and len(missing) < len(options):
        raise ConfigError(f"{', '.join(options)} must be given together, but {' and '.join(missing)} are missing")
    if process_id is not None and processes is not None and process_id >= processes:
        raise ConfigError(f"--process-id must be less than --processes, but got {process_id} of {processes}")
    if coordinator is not None and not coordinator.rpartition(":")[2].isdigit():
        raise ConfigError(f"--coordinator must be HOST:PORT, but got {coordinator!r}")
    if jax.distributed.is_initialized():
        raise ConfigError("processes must be joined once, but this one has joined others already")
    # Its signal handler would keep a process alive that is asked to end; training saves often enough.
    jax.config.update("jax_enable_preemption_service", False)
    _results_apart()
    try:
        jax.distributed.initialize(
            coordinator,
            processes,
            process_id,
            cluster_detection_method="deactivate" if coordinator else None,
            initialization_timeout=JOIN,
            heartbeat_timeout_seconds=HEARTBEAT,
            shutdown_timeout_seconds=_AT_THE_END,
        )
    except (ValueError, RuntimeError, OSError, KeyError) as error:
        if coordinator is None:
            hint = "--distributed needs a cluster that JAX knows (Slurm, Open MPI, Kubernetes, Cloud TPU)"
            raise ConfigError(f"{hint}, or {', '.join(options)}; none was found: {error}") from error
        raise ConfigError(f"process {process_id} of {processes} cannot join {coordinator}: {error}") from error


def _results_apart() -> None:
    """Redirects the standard output of libraries under JAX to standard error: it is for results only."""
    sys.stdout.flush()
    sys.stdout = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding)
    os.dup2(2, 1)


def wait() -> None:
    """Waits until all processes reach this barrier."""
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


def fail(error: Exception) -> NoReturn:
    """Ends this process after an unexpected error; prints one line if another process caused it."""
    if isinstance(error, jax.errors.JaxRuntimeError):
        message = " ".join(str(error).split())[:300]
        print(
            f"dre-jax: process {jax.process_index()} ends, as it cannot compute with the others any more ({message}); "
            "rerun the command to resume",
            file=sys.stderr,
        )
    else:
        traceback.print_exception(error)
    leave(1)


def leave(status: int) -> NoReturn:
    """Ends this process without the barrier, so that the others end soon."""
    sys.stdout.flush()
    sys.stderr.flush()
    if jax.process_index() == 0:
        time.sleep(1.0)  # others that end for the same reason need the coordinator to report it
    os._exit(status)
