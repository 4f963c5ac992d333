"""The library that launches the kernel: it is built on this machine, and returns the limits of the device."""

import ctypes
import functools
import logging
from collections.abc import Sequence
from pathlib import Path

import jax

from dre_jax.methods.dre.backends.cuda.compile import cubin
from dre_jax.methods.dre.backends.cuda.plan import Limits, Plan
from dre_jax.native.build import load_library

CALL = "dre_jax_cuda_steps"
# CUdevice_attribute, in cuda.h
_MULTIPROCESSORS, _MAJOR, _MINOR, _SHARED_OF_ALL, _SHARED_OF_BLOCK = 16, 75, 76, 81, 97


_log = logging.getLogger(__name__)


class KernelError(RuntimeError):
    """The driver does not load a kernel; the message has its function and the name of the error."""


def open_library(driver: str, platform: str, ordinals: Sequence[int] = (0,)) -> Limits:
    """Builds the library unless it is cached, opens the driver, registers the call, and returns the devices' limits.

    ``ordinals`` are the driver's numbers of the devices that the process uses. The limits hold for each of the devices.

    Raises `OSError` and `AttributeError` and `subprocess.SubprocessError` where it cannot be built or opened, and
    `ValueError` for devices of several architectures.
    """
    library = _library(stream=platform == "CUDA")
    if missing := library.dre_jax_open_driver(driver.encode()):
        raise OSError(f"the CUDA driver cannot be used: {missing.decode()}")
    jax.ffi.register_ffi_target(CALL, jax.ffi.pycapsule(library.DreJaxCudaSteps), platform=platform)
    device_limits = [_limits(library, ordinal) for ordinal in ordinals]
    architectures = sorted({limits.architecture for limits in device_limits})
    if len(architectures) > 1:
        names = ", ".join(f"{number / 10:.1f}" for number in architectures)
        raise ValueError(
            f"the GPUs of a process must have one compute capability, but have {names}: set CUDA_VISIBLE_DEVICES"
        )
    _ordinals[:] = ordinals
    return Limits(*map(min, zip(*device_limits, strict=True)))


def _limits(library: ctypes.CDLL, ordinal: int) -> Limits:
    major, minor, of_block, of_all, multiprocessors = (
        library.dre_jax_device_attribute(number, ordinal)
        for number in (_MAJOR, _MINOR, _SHARED_OF_BLOCK, _SHARED_OF_ALL, _MULTIPROCESSORS)
    )
    driver_major = library.dre_jax_driver_version() // 1000
    return Limits(10 * major + minor, of_block, of_all, multiprocessors, driver_major)


@functools.cache
def add_kernel(plan: Plan, limits: Limits) -> int | None:
    """Compiles a plan's kernel unless it is cached, loads it on all devices, and returns its number for the call.

    If it cannot be compiled or loaded, returns None, and a warning is logged. Once loaded, its launch cannot fail, as
    long as the device works.
    """
    try:
        return _load(plan, limits)
    except (OSError, RuntimeError) as error:
        detail = " ".join(str(error).split())
        if detail not in _refused:
            _log.warning("some training steps take several times as long, since their kernel is refused: %s", detail)
            _refused.append(detail)
        return None


def refused_kernels() -> list[str]:
    """Returns why kernels of this process could not be compiled or loaded; XLA computes in their place."""
    return list(_refused)


def _load(plan: Plan, limits: Limits) -> int:
    binary = cubin(plan, limits.architecture, limits.driver_major)
    # The same in every process, so that XLA finds the programs that it has cached.
    number = plan.number(limits.architecture)
    for library in _opened:
        library.dre_jax_add_kernel(number, binary, len(binary), plan.threads, plan.shared_bytes)
        for ordinal in _ordinals:
            if error := library.dre_jax_load_kernel(number, ordinal):
                raise KernelError(f"{error.decode()}, for the device {ordinal}")
    return number


_opened: list[ctypes.CDLL] = []
_ordinals: list[int] = []
_refused: list[str] = []


@functools.cache
def _library(*, stream: bool) -> ctypes.CDLL:
    library = load_library("cuda", Path(__file__).parent / "launch.cc", () if stream else ("-DWITHOUT_STREAM",))
    library.dre_jax_open_driver.restype = ctypes.c_char_p
    library.dre_jax_open_driver.argtypes = [ctypes.c_char_p]
    library.dre_jax_add_kernel.restype = None
    library.dre_jax_add_kernel.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_uint64, *[ctypes.c_uint] * 2]
    library.dre_jax_load_kernel.restype = ctypes.c_char_p
    library.dre_jax_load_kernel.argtypes = [ctypes.c_int64, ctypes.c_int]
    _opened.append(library)
    return library
