"""Peak rates of this machine: that of a large matrix product, and of a large copy."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Rates(NamedTuple):
    """Measured with all cores, or on the accelerator."""

    flops: float
    """float32 operations a second of a matrix product, nothing rounded to less."""
    bytes: float
    """Bytes a second of a copy, read and written."""


def repeated(work: Callable[[], Any], repeats: int) -> tuple[float, list[float]]:
    """Returns the seconds of the first call, and of each of the later ones."""
    seconds = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        seconds.append(time.perf_counter() - begin)
    return seconds[0], seconds[1:]


def measure(cores: int) -> Rates:
    """Returns the better rates of JAX and NumPy, in this process and on these cores."""
    on_cpu = jax.devices()[0].platform == "cpu"
    n, length = (2048, 2**25) if on_cpu else (8192, 2**29)
    a, b = jnp.ones((n, n), jnp.float32), jnp.zeros(length, jnp.float32)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision=jax.lax.Precision.HIGHEST))
    copy = jax.jit(lambda b: b + 1.0)

    def shortest(work: Callable[[], Any]) -> float:
        return min(repeated(work, 7)[1])

    seconds, copies = [shortest(lambda: product(a))], [shortest(lambda: copy(b))]
    if on_cpu:
        host, source = np.ones((n, n), np.float32), np.zeros(length, np.float32)
        seconds.append(shortest(lambda: host @ host))
        parts = list(zip(np.array_split(np.empty_like(source), cores), np.array_split(source, cores), strict=True))
        with ThreadPoolExecutor(cores) as pool:
            copies.append(shortest(lambda: list(pool.map(lambda pair: np.copyto(*pair), parts))))
    return Rates(2 * n**3 / min(seconds), 8 * length / min(copies))
