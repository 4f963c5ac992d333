"""Where a benchmark ran, and its file."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dre_jax.data.files import write_json
from dre_jax.methods.checkpoints.provenance import versions
from dre_jax.runtime.devices import cores

_THREADS = tuple(f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS"))
_SETTINGS = ("DRE_JAX_NATIVE", *_THREADS, "XLA_FLAGS", "JAX_NUM_CPU_DEVICES")


def describe(module: str, arguments: list[str]) -> dict[str, Any]:
    """Returns machine, versions, settings and command, whose paths are without their folders."""
    import jax

    from dre_jax import native

    plain = [Path(word).name if "/" in word else word for word in arguments]
    device = jax.devices()[0]
    return {
        "command": " ".join(["python", "-m", module, *plain]),
        "device": str(device.device_kind),
        "platform": device.platform,
        "devices": len(jax.devices()),
        "processor": _processor(),
        "cores": cores(),
        "compiled_loops": native.available(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions("torch"),
        "threads": {name: os.environ[name] for name in _SETTINGS if name in os.environ},
        "load_before": _load(),
    }


def write(path: Path | None, about: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """Writes the file of a benchmark if there is a path."""
    if path:
        write_json(path, {"environment": {**about, "load_after": _load()}, "rows": list(rows)}, indent=1)


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _processor() -> str:
    """Returns the processor's name; on Linux from the kernel, as Python does not know it there."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
