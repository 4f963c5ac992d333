"""Most memory that this process has had."""

from __future__ import annotations

from pathlib import Path


def peak_bytes() -> int:
    """Bytes of main memory at the most, since the process began to run this program."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not `getrusage`: on Linux that begins with what the parent had when it started this process.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    from dre_jax.benchmark.evaluation import peak_memory

    return peak_memory()
