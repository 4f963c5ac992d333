"""Devices in use, and shapes of meshes.

A mesh has two axes: the outer one divides work that is independent (the members of an ensemble, the tasks of a batch),
the inner one the remaining work (the lists of a training step, the designs of a task).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from dre_jax.errors import ConfigError

Devices = tuple[jax.Device, ...]

_limit: int | None = None


def use(count: int | None) -> None:
    """Limits each process to its first ``count`` devices; None removes the limit.

    Like JAX's own settings this is the process's: results do not depend on it. Raises `ConfigError` where this process
    has fewer.

    Example:
      >>> use(1)
      >>> len(local())
      1
      >>> use(None)
    """
    global _limit
    if count is not None:
        have = jax.local_devices()
        if not 1 <= count <= len(have):
            kind = have[0].platform
            raise ConfigError(f"this process has {len(have)} {kind} devices to use, but got devices={count}")
    _limit = count


def cores() -> int:
    """Returns the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local() -> Devices:
    """Returns the devices in use of this process."""
    return tuple(jax.local_devices()[:_limit])


def default() -> jax.Device:
    """Returns the device on which JAX computes with arrays that are not put on a device."""
    (device,) = jax.device_put(np.int32(0)).devices()
    return device


def all_devices() -> Devices:
    """Returns the devices in use of all processes."""
    by_process: dict[int, list[jax.Device]] = {}
    for device in jax.devices():
        by_process.setdefault(device.process_index, []).append(device)
    return tuple(device for _, devices in sorted(by_process.items()) for device in devices[:_limit])


def dividing_shape(n_devices: int, outer: int, inner: int) -> tuple[int, int]:
    """Returns the shape of a mesh of at most ``n_devices`` that divides both axes of work evenly, the outer axis first.

    Nothing is exchanged along the outer axis, whose entries are independent; the inner axis is averaged over.

    Example:
      >>> dividing_shape(8, 10, 1), dividing_shape(8, 10, 100), dividing_shape(4, 10, 16), dividing_shape(4, 1, 100)
      ((5, 1), (5, 1), (2, 2), (1, 4))
    """
    rows = max(n for n in range(1, n_devices + 1) if outer % n == 0)
    columns = max(n for n in range(1, n_devices // rows + 1) if inner % n == 0)
    return rows, columns


def covering_shape(n_devices: int, outer: int, inner: int) -> tuple[int, int]:
    """Returns the shape of a mesh of all devices with the least work on the busiest device; outer axis first.

    Work that the mesh does not divide is filled up.
    """
    shapes = [(n, n_devices // n) for n in range(n_devices, 0, -1) if n_devices % n == 0]
    return min(shapes, key=lambda shape: -(-outer // shape[0]) * -(-inner // shape[1]))


def make_mesh(devices: Iterable[jax.Device], shape: tuple[int, int], names: tuple[str, str]) -> Mesh:
    """Returns a mesh of the first devices."""
    grid = np.array(list(devices)[: shape[0] * shape[1]]).reshape(shape)
    return Mesh(grid, names, axis_types=(AxisType.Auto,) * 2)
