"""Compiles the kernel with NVRTC, which comes with `jax[cuda13]` and needs no GPU, and keeps the result."""

import ctypes
import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from dre_jax.methods.dre.backends.cuda.plan import Plan
from dre_jax.runtime import cache

_FOLDER = Path(__file__).parent
_ROLES = ("block.cuh", "exchange.cuh", "deep_set.cuh", "scorer.cuh")
_FILES = ("device.cuh", "tiles.cuh", "listmle.cuh", "optimiser.cuh", *_ROLES, "kernel.cu")
_NEWEST = 99


class CompileError(RuntimeError):
    """NVRTC does not compile the kernel; the message is the first line of its log."""


def source(plan: Plan, *, device: bool = True) -> str:
    """Returns the kernel's C++ for a plan; without ``device``, the GPU's instructions are not defined."""
    first, *parts = [(_FOLDER / name).read_text() for name in _FILES]
    return "\n".join([*([first] if device else []), plan.constants, *parts])


def fingerprint() -> str:
    """Returns a digest of the kernel's files."""
    text = "".join((_FOLDER / name).read_text() for name in _FILES)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cubin(plan: Plan, architecture: int, driver_major: int = _NEWEST) -> bytes:
    """Returns the kernel for an architecture, 90 for an H100, from the cache or from NVRTC, which takes some seconds.

    ``driver_major`` is the newest CUDA that the driver supports: it does not load what a newer one compiles.

    Raises `OSError` without an NVRTC that knows the architecture, and `CompileError` if it does not compile the kernel.
    """
    nvrtc = load_nvrtc(architecture, driver_major)
    text = source(plan)
    parts = text, str(architecture), ".".join(map(str, _version(nvrtc)))
    name = f"cuda-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}.cubin"
    folder = cache.folder()
    if folder and (folder / name).exists():
        return (folder / name).read_bytes()
    binary, _ = compile_source(text, architecture, driver_major)
    if folder:
        part = folder / f"{name}.{os.getpid()}.part"
        part.write_bytes(binary)
        part.replace(folder / name)
    return binary


def compile_source(text: str, architecture: int, driver_major: int = _NEWEST) -> tuple[bytes, str]:
    """Returns the binary and NVRTC's log, which has the numbers of registers and spilled bytes.

    Raises `OSError` without an NVRTC that knows the architecture, and `CompileError` if it does not compile.
    """
    nvrtc, program, size = load_nvrtc(architecture, driver_major), ctypes.c_void_p(), ctypes.c_size_t()
    options = [f"--gpu-architecture=sm_{architecture}", "--std=c++17", "--ptxas-options=-v"]
    options += ["--device-as-default-execution-space", "--diag-suppress=177"]
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"take_steps.cu", 0, None, None)
    try:
        arguments = (ctypes.c_char_p * len(options))(*map(str.encode, options))
        status = nvrtc.nvrtcCompileProgram(program, len(options), arguments)
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, buffer)
        log = buffer.value.decode(errors="replace")
        if status:
            lines = [line for line in log.splitlines() if "error" in line] or [f"NVRTC's error {status}"]
            raise CompileError(lines[0])
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        binary = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, binary)
        return binary.raw, log
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def load_nvrtc(architecture: int, driver_major: int = _NEWEST) -> ctypes.CDLL:
    """Returns the newest NVRTC that knows an architecture: that of pip beside JAX's CUDA packages, or of the toolkit.

    Raises `OSError` if there is none, or if all are newer than the driver.
    """
    versions = set[str]()
    for path in _candidates():
        try:
            for builtins in Path(path).parent.glob("libnvrtc-builtins.so*"):
                ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
            nvrtc = ctypes.CDLL(path)
        except OSError:
            continue
        version = _version(nvrtc)
        if version[0] <= driver_major and architecture in _architectures(nvrtc):
            return nvrtc
        versions.add(".".join(map(str, version)))
    if versions:
        limit = "" if driver_major == _NEWEST else f" and a driver of CUDA {driver_major}"
        names = ", ".join(sorted(versions))
        raise OSError(f"NVRTC must know the architecture {architecture}{limit}, but there is only NVRTC {names}")
    raise OSError("NVRTC, the compiler for CUDA, is missing: install jax[cuda13] or nvidia-cuda-nvrtc")


def _candidates() -> Iterator[str]:
    """Yields paths and names of NVRTC: those of pip, then those of the toolkit, the newest first in both."""
    for folder, pattern in (*((Path(p), "nvidia/c*/lib") for p in sys.path), (Path("/usr/local"), "cuda*/lib64")):
        paths = sorted(map(str, folder.glob(f"{pattern}/libnvrtc.so.1[23]")))
        yield from sorted(paths, key=lambda path: path.rpartition(".")[2], reverse=True)
    yield from ("libnvrtc.so.13", "libnvrtc.so.12")


def _version(nvrtc: ctypes.CDLL) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def _architectures(nvrtc: ctypes.CDLL) -> list[int]:
    """Returns the architectures that an NVRTC compiles for."""
    count = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(numbers)
    return list(numbers)
