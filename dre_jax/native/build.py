"""Compiles the C++ of this folder, with the compiler of the machine, for the processor of the machine."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax

from dre_jax import cache

VARIABLE = "DRE_JAX_NATIVE"
STEPS, DRAW = "dre_jax_steps", "dre_jax_draw"
CALLS = (STEPS, DRAW)
"""What XLA knows the loops by."""

_SOURCE = Path(__file__).parent
_FLAGS = ("-O3", "-std=c++20", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fno-semantic-interposition")
_PATIENCE = 120  # seconds; it takes about eight

_log = logging.getLogger(__name__)


@functools.cache
def available() -> bool:
    """Whether this process computes on a CPU and has the compiled loops: looked for, built and loaded once.

    Never raises: what is missing is logged, and JAX does it all.
    """
    if os.environ.get(VARIABLE, "1") == "0" or jax.default_backend() != "cpu":
        return False
    try:
        library = _load()
        for name, function in ((STEPS, library.DreJaxSteps), (DRAW, library.DreJaxDraw)):
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="cpu")
    except (OSError, AttributeError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", "") or error
        _log.info("all loops are XLA's, since the C++ ones could not be had: %s", detail)
        return False
    return True


def _load() -> ctypes.CDLL:
    compiler = _compiler()
    kept = cache.folder()
    if kept is None:
        with tempfile.TemporaryDirectory() as folder:  # once loaded the file is not needed any longer
            return ctypes.CDLL(str(_build(compiler, Path(folder) / "library.so")))
    path = kept / f"native-{_fingerprint(compiler)}.so"
    return ctypes.CDLL(str(path if path.exists() else _build(compiler, path)))


def _compiler() -> str:
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        if found := shutil.which(name):
            return found
    raise FileNotFoundError("no C++ compiler (c++, g++, clang++, or what CXX names)")


def _fingerprint(compiler: str) -> str:
    """Of everything that the result depends on; the compiler's macros tell its version and the processor's features."""
    macros = _run(compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull)
    sources = [path.read_bytes() for path in sorted(_SOURCE.iterdir()) if path.suffix in (".cc", ".h")]
    parts = [macros.encode(), jax.__version__.encode(), " ".join(_FLAGS).encode(), *sources]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(compiler: str, path: Path) -> Path:
    """Beside its place first: another process may be building the same."""
    beside = path.with_suffix(f".{os.getpid()}.part")
    headers = ("-isystem", jax.ffi.include_dir())
    try:
        _run(compiler, *_FLAGS, "-shared", "-fPIC", *headers, str(_SOURCE / "library.cc"), "-o", str(beside))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE).stdout
