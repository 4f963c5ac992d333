"""Compiles the C++ of this folder, with the compiler of the machine, for the processor of the machine."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax
from jaxlib.version import __version__ as jaxlib_version

from dre_jax.runtime import cache
from dre_jax.runtime.locks import folder_lock

STEPS, DRAW = "dre_jax_steps", "dre_jax_draw"
CALLS = (STEPS, DRAW)
"""Names of the custom calls."""

_SOURCE = Path(__file__).parent
_FLAGS = ("-O3", "-std=c++20", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fno-semantic-interposition")
_PATIENCE = 120  # seconds; it takes about eight


def register() -> str:
    """Builds the library, unless it is kept from before, and registers its calls with XLA.

    Returns:
      The library's fingerprint: a digest of sources, compiler, processor and versions.

    Raises:
      OSError, AttributeError, subprocess.SubprocessError: where it cannot be built or loaded.
    """
    compiler = _compiler()
    fingerprint = _fingerprint(compiler)
    library = _load(compiler, fingerprint)
    for name, function in ((STEPS, library.DreJaxSteps), (DRAW, library.DreJaxDraw)):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="cpu")
    return fingerprint


def _load(compiler: str, fingerprint: str) -> ctypes.CDLL:
    folder = cache.folder()
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:  # once loaded the file is not needed any longer
            return ctypes.CDLL(str(_build(compiler, Path(temporary) / "library.so")))
    path = folder / f"native-{fingerprint}.so"
    with folder_lock(folder):  # of processes that begin together one builds
        return ctypes.CDLL(str(path if path.exists() else _build(compiler, path)))


def _compiler() -> str:
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        if path := shutil.which(name):
            return path
    raise FileNotFoundError("no C++ compiler (c++, g++, clang++, or what CXX names)")


def compiler_version() -> str | None:
    """Returns the first line of the compiler's version; None without a compiler."""
    try:
        return _run(_compiler(), "--version").splitlines()[0]
    except (OSError, IndexError, subprocess.SubprocessError):
        return None


def _fingerprint(compiler: str) -> str:
    """Returns a digest of all that the library depends on; macros have the versions and the processor's features.

    The headers of the foreign function interface, and with them its binary interface, come with jaxlib.
    """
    macros = _run(compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull)
    sources = [path.read_bytes() for path in sorted(_SOURCE.iterdir()) if path.suffix in (".cc", ".h")]
    versions = jax.__version__, jaxlib_version
    parts = [macros.encode(), " ".join((*versions, *_FLAGS)).encode(), *sources]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(compiler: str, path: Path) -> Path:
    """Builds the library under a temporary name, as another process may build it where there are no locks."""
    part = path.with_suffix(f".{os.getpid()}.part")
    headers = ("-isystem", jax.ffi.include_dir())
    try:
        _run(compiler, *_FLAGS, "-shared", "-fPIC", *headers, str(_SOURCE / "library.cc"), "-o", str(part))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE).stdout
