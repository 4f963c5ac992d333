"""Processes that tests start, and conditions that tests wait for."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def run_python(source, *arguments, **variables):
    """Runs a program in a process of its own, which must succeed; a variable of the environment that is None is unset.

    Its compiled programs are in the cache of the tests.
    """
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": os.environ.get("DRE_JAX_CACHE", "")} | variables
    process = subprocess.run(
        [sys.executable, "-c", source, *map(str, arguments)],
        env={name: value for name, value in environment.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    return process


def wait_until(ready, *processes, seconds=300):
    """Waits until a function returns a true value, which has to be while these processes are alive."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        assert all(process.poll() is None for process in processes), [p.communicate() for p in processes]
        time.sleep(0.01)


def alive_in(leader):
    """Returns the processes of a group that do not only wait to be collected, as fields of their status."""
    stats = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            stats.append(path.read_text().rpartition(")")[2].split())
    return [stat for stat in stats if stat[0] != "Z" and int(stat[2]) == leader]


def work(what):
    """Does what a test wants of another process, which starts at once, as this file imports little."""
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        os.fork()  # a process of its own, which hangs too
        time.sleep(600)
    if what == "raise":
        raise ValueError("no memory\nat all")
    return os.getpid(), os.environ.get("DRE_JAX_CUDA")
