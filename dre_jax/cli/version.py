"""``dre-jax version``: versions and devices for bug reports."""

import json
import os
import platform
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Annotated, Any

import jax
import typer

from dre_jax import __version__, native
from dre_jax.cli.info import print_facts
from dre_jax.methods.dre.backends import cuda
from dre_jax.runtime import cache, devices
from dre_jax.runtime.setup import prepare

CORE = (
    *("jax", "jaxlib", "flax", "optax", "chex", "orbax-checkpoint", "numpy", "scipy"),
    *("filelock", "jaxtyping", "jinja2", "matplotlib", "rich", "threadpoolctl", "typer"),
)
OPTIONAL = (
    *("ConfigSpace", "hydra-core", "mcp", "mlflow-skinny", "optuna", "pandas", "pooch", "scikit-learn", "smac"),
    *("tensorboardX", "torch", "wandb", "xgboost", "xgboost-cpu"),
    *("jax-cuda12-plugin", "jax-cuda13-plugin", "libtpu", "nvidia-cuda-nvrtc"),
)
_VARIABLES = ("DRE_JAX_", "JAX_", "XLA_", "CUDA_VISIBLE_DEVICES", "CXX", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def _print_version(show: bool) -> None:
    if show:
        print(f"dre-jax {__version__}")
        raise typer.Exit


def root(
    show: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Takes the options of `dre-jax` itself."""


def version(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for a bug report.")] = False,
) -> None:
    """Print versions, devices, compiler, cache folder, and whether the C++ steps are used."""
    prepare()
    description = describe()
    if as_json:
        print(json.dumps(description, indent=2))
        return
    print_facts(dict(_lines(description)))


def describe() -> dict[str, Any]:
    """Returns versions and devices of this process; the version of a package that is not installed is None."""
    folder = cache.folder()
    device_facts = _devices()
    return {
        "dre_jax": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "packages": {name: _installed_version(name) for name in (*CORE, *OPTIONAL)},
        "cores": devices.cores(),
        "devices": device_facts,
        "compiler": native.compiler_version(),
        "cache": None if folder is None else str(folder),
        "native": native.decision()._asdict() if "error" not in device_facts else None,
        "cuda": _cuda() if device_facts.get("platform") == "gpu" else None,
        "variables": {name: value for name, value in sorted(os.environ.items()) if name.startswith(_VARIABLES)},
    }


def _cuda() -> dict[str, str | None]:
    """Returns whether the kernel for GPUs computes training steps."""
    limits, reason = cuda.decision()
    kernel = f"{cuda.fingerprint()} for sm_{limits.architecture}" if limits else None
    return {"kernel": kernel, "precision": cuda.precision(), "why_not": reason}


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> dict[str, Any]:
    """Returns the devices of this process, or the error if JAX cannot use them."""
    try:
        local = jax.local_devices()
    except Exception as error:  # a plugin may fail in any way, and JAX asserts where JAX_PLATFORMS names none it has
        return {"error": " ".join(f"{type(error).__name__} {error}".split())}
    return {"platform": local[0].platform, "kind": local[0].device_kind, "count": len(local)}


def _lines(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("dre_jax", "python", "platform"):
        yield name, description[name]
    packages = description["packages"]
    for name in CORE:
        yield name, packages[name] or "not installed"
    yield "extras", ", ".join(f"{name} {packages[name]}" for name in OPTIONAL if packages[name]) or "none"
    device_facts, steps = description["devices"], description["native"]
    yield "cores", str(description["cores"])
    if "error" in device_facts:
        yield "devices", f"none: {device_facts['error']}"
    else:
        kind = "" if device_facts["kind"] == device_facts["platform"] else f", {device_facts['kind']}"
        yield "devices", f"{device_facts['count']} {device_facts['platform']}{kind}"
    yield "compiler", description["compiler"] or "none found"
    yield "cache", description["cache"] or "off"
    if steps is not None:
        yield "C++ steps", f"on, {steps['fingerprint']}" if steps["fingerprint"] else f"off: {steps['why_not']}"
    if (kernel := description["cuda"]) is not None:
        yield (
            "CUDA steps",
            f"on, {kernel['kernel']}, {kernel['precision']}" if kernel["kernel"] else f"off: {kernel['why_not']}",
        )
    yield "variables", " ".join(f"{name}={value}" for name, value in description["variables"].items()) or "none"
