"""The library that launches the kernel: built on this machine, opened once a process, asked for what the device has."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
from pathlib import Path
from typing import NamedTuple, cast, get_args

import jax

from dre_jax.checks import one_of
from dre_jax.methods.dre.backends.cuda.compile import cubin, load_nvrtc
from dre_jax.methods.dre.backends.cuda.plan import Limits, Plan, Precision
from dre_jax.native.build import load_library

CALL = "dre_jax_cuda_steps"
VARIABLE, PRECISION = "DRE_JAX_CUDA", "DRE_JAX_CUDA_PRECISION"
OLDEST = 80
"""Architecture of an A100: the first with products of TF32 and copies past the registers."""

_DRIVER = "libcuda.so.1"
# CUdevice_attribute, in cuda.h
_MULTIPROCESSORS, _MAJOR, _MINOR, _SHARED_OF_ALL, _SHARED_OF_BLOCK = 16, 75, 76, 81, 97

_log = logging.getLogger(__name__)


class Decision(NamedTuple):
    """Use of the kernel, and the reason where it is not used."""

    limits: Limits | None
    """What the device has; None where XLA computes."""
    why_not: str | None


@functools.cache
def decision() -> Decision:
    """Decides once a process. Never raises: if the kernel cannot be launched, a warning is logged, and XLA computes."""
    if os.environ.get(VARIABLE, "1") == "0":
        return Decision(None, f"{VARIABLE}=0")
    if jax.default_backend() != "gpu":
        return Decision(None, f"it is for NVIDIA GPUs, and JAX computes on {jax.default_backend()}")
    try:
        load_nvrtc()
        limits = open_library(_DRIVER, "CUDA")
    except Exception as error:
        detail = " ".join((getattr(error, "stderr", "") or str(error) or type(error).__name__).split())[:300]
        _log.warning("fine-tuning takes several times as long, since its CUDA kernel cannot be used: %s", detail)
        return Decision(None, detail)
    if limits.architecture < OLDEST:
        return Decision(None, f"it needs compute capability 8.0, and the device has {limits.architecture / 10:.1f}")
    return Decision(limits, None)


def precision() -> Precision:
    """Returns the precision of products: ``$DRE_JAX_CUDA_PRECISION``, "float32" by default; "tf32" is faster.

    Raises:
      ConfigError: for another value.
    """
    name = os.environ.get(PRECISION, "float32")
    one_of(PRECISION, name, get_args(Precision))
    return cast(Precision, name)


def open_library(driver: str, platform: str) -> Limits:
    """Builds the library unless it is cached, opens the driver, registers the call, and returns the device's limits.

    Raises:
      OSError, AttributeError, subprocess.SubprocessError: where it cannot be built or opened.
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

    Raises:
      CompileError: if NVRTC does not compile it.
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
