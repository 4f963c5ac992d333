"""Where a benchmark ran."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.suite import rates
from dre_jax.data.files import write_json
from dre_jax.devices import cores

_THREADS = (
    "DRE_JAX_NATIVE",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "XLA_FLAGS",
    "JAX_NUM_CPU_DEVICES",
)


def describe(module: str, arguments: list[str]) -> dict[str, Any]:
    """Machine, versions, settings and command; folders of paths in the command are left out."""
    import jax

    from dre_jax import native

    plain = [Path(word).name if "/" in word else word for word in arguments]
    return {
        "command": " ".join(["python", "-m", module, *plain]),
        "device": str(jax.devices()[0].device_kind),
        "platform": jax.devices()[0].platform,
        "devices": len(jax.devices()),
        "processor": _processor(),
        "cores": cores(),
        "compiled_loops": native.available(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"python": platform.python_version(), **_versions()},
        "threads": {name: os.environ[name] for name in _THREADS if name in os.environ},
        "load_before": _load(),
    }


def begin(module: str, arguments: list[str]) -> tuple[dict[str, Any], rates.Rates]:
    """Where a benchmark runs, with what the machine does at most."""
    about = describe(module, arguments)
    measured = rates.measure(about["cores"])
    return {**about, "matrix_flops_per_s": measured.flops, "copy_bytes_per_s": measured.bytes}, measured


def write(path: Path, environment: dict[str, Any], rows: Sequence[dict[str, Any]], **more: Any) -> None:
    """The file of a benchmark; ``more`` are further keys, left out where they are empty."""
    further = {name: value for name, value in more.items() if value}
    write_json(path, {"environment": environment, "rows": list(rows), **further}, indent=1)


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def finish(environment: dict[str, Any]) -> dict[str, Any]:
    """With the load at the end."""
    return {**environment, "load_after": _load()}


def _versions() -> dict[str, str]:
    found = {}
    for name in ("dre_jax", "jax", "jaxlib", "numpy", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _processor() -> str:
    """The processor's name; on Linux from the kernel, as Python does not know it there."""
    path = Path("/proc/cpuinfo")
    if sys.platform == "linux" and path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
