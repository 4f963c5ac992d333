"""The library that launches the kernel: built on this machine, and asked for what the device has."""

import ctypes
import functools
from pathlib import Path

import jax

from dre_jax.methods.dre.backends.cuda.compile import cubin
from dre_jax.methods.dre.backends.cuda.plan import Limits, Plan
from dre_jax.native.build import load_library

CALL = "dre_jax_cuda_steps"
# CUdevice_attribute, in cuda.h
_MULTIPROCESSORS, _MAJOR, _MINOR, _SHARED_OF_ALL, _SHARED_OF_BLOCK = 16, 75, 76, 81, 97


def open_library(driver: str, platform: str) -> Limits:
    """Builds the library unless it is cached, opens the driver, registers the call, and returns the device's limits.

    Raises `OSError` and `AttributeError` and `subprocess.SubprocessError` where it cannot be built or opened.
    """
    library = _library(stream=platform == "CUDA")
    if missing := library.dre_jax_open_driver(driver.encode()):
        raise OSError(f"the CUDA driver cannot be used: {missing.decode()}")
    jax.ffi.register_ffi_target(CALL, jax.ffi.pycapsule(library.DreJaxCudaSteps), platform=platform)
    major, minor, *others = (
        library.dre_jax_device_attribute(number, 0)
        for number in (_MAJOR, _MINOR, _SHARED_OF_BLOCK, _SHARED_OF_ALL, _MULTIPROCESSORS)
    )
    return Limits(10 * major + minor, *others)


def add_kernel(plan: Plan, limits: Limits) -> int:
    """Compiles a plan's kernel unless it is cached, and returns its number for the call.

    Raises `CompileError` if NVRTC does not compile it.
    """
    return _add_kernel(plan, limits.architecture)


@functools.cache
def _add_kernel(plan: Plan, architecture: int) -> int:
    binary = cubin(plan, architecture)
    # The same in every process, so that XLA finds the programs that it has cached.
    number = plan.number(architecture)
    for library in _opened:
        library.dre_jax_add_kernel(number, binary, len(binary), plan.threads, plan.shared_bytes)
    return number


_opened: list[ctypes.CDLL] = []


@functools.cache
def _library(*, stream: bool) -> ctypes.CDLL:
    library = load_library("cuda", Path(__file__).parent / "launch.cc", () if stream else ("-DWITHOUT_STREAM",))
    library.dre_jax_open_driver.restype = ctypes.c_char_p
    library.dre_jax_open_driver.argtypes = [ctypes.c_char_p]
    library.dre_jax_add_kernel.restype = None
    library.dre_jax_add_kernel.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_uint64, *[ctypes.c_uint] * 2]
    _opened.append(library)
    return library
