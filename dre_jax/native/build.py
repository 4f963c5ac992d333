"""Compiles C++ with the compiler of the machine: the loops of this folder, for its processor, and other libraries."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jax
from jaxlib.version import __version__ as jaxlib_version

from dre_jax.errors import DataError
from dre_jax.runtime import cache
from dre_jax.runtime.locks import folder_lock

STEPS, DRAW = "dre_jax_steps", "dre_jax_draw"
CALLS = (STEPS, DRAW)
"""Names of the custom calls."""

_FLAGS = ("-std=c++20", "-shared", "-fPIC")
LOOPS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fno-semantic-interposition")
"""The compiler's flags for the loops."""

_PATIENCE = 120  # seconds; it takes about eight


def register() -> str:
    """Builds the library, unless it is kept from before, and registers its calls with XLA.

    Returns:
      The library's fingerprint: a digest of sources, compiler, processor and versions.

    Raises:
      OSError, AttributeError, subprocess.SubprocessError: where it cannot be built or loaded.
    """
    source = Path(__file__).parent / "library.cc"
    library = load_library("native", source, LOOPS)
    for name, function in ((STEPS, library.DreJaxSteps), (DRAW, library.DreJaxDraw)):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="cpu")
    return _fingerprint(_compiler(), source, LOOPS)


def load_library(name: str, source: Path, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """Returns a library of C++ with XLA's headers, built with the flags unless it is kept from before.

    Raises `OSError` or `subprocess.SubprocessError` where it cannot be built or loaded.
    """
    compiler, folder = _compiler(), cache.folder()
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:  # the file is not needed after loading
            return ctypes.CDLL(str(_build(compiler, source, flags, Path(temporary) / "library.so")))
    path = folder / f"{name}-{_fingerprint(compiler, source, flags)}.so"
    try:
        with folder_lock(folder, 2 * _PATIENCE):  # one of the processes that begin together builds
            return ctypes.CDLL(str(path if path.exists() else _build(compiler, source, flags, path)))
    except DataError as error:
        raise TimeoutError(str(error)) from error


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


def _fingerprint(compiler: str, source: Path, flags: Sequence[str]) -> str:
    """Returns a digest of the library's dependencies; macros have the versions and the processor's features.

    The headers of the foreign function interface, and with them its binary interface, come with jaxlib.
    """
    macros = _run(compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull)
    sources = [path.read_bytes() for path in sorted(source.parent.iterdir()) if path.suffix in (".cc", ".h")]
    versions = jax.__version__, jaxlib_version
    parts = [macros.encode(), " ".join((*versions, *_FLAGS, *flags)).encode(), *sources]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(compiler: str, source: Path, flags: Sequence[str], path: Path) -> Path:
    """Builds the library under a temporary name, as another process may build it where there are no locks."""
    part = path.with_suffix(f".{os.getpid()}.part")
    headers = ("-isystem", jax.ffi.include_dir())
    try:
        _run(compiler, *_FLAGS, *flags, *headers, str(source), "-o", str(part))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE).stdout
