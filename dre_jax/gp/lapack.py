"""Cholesky factorisations and triangular solutions whose batches are loops on a CPU.

In jaxlib 0.10 a batch of LAPACK calls on a CPU is one call. It distributes its parts over the thread pool in which the
call itself runs, and waits for them. As many such calls as threads, from two devices or from one program, deadlock. A
call for a single matrix runs in the calling thread, so under `jax.vmap` these functions loop over the batch on a CPU.
On other platforms they are batched as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import Array, lax
from jax.custom_batching import custom_vmap


def _sequential_on_cpu(raw: Callable[..., Array]) -> Callable[..., Array]:
    """Returns the function with a batching rule that loops over the batch on a CPU."""
    single = custom_vmap(raw)

    @single.def_vmap
    def batch(size: int, batched: list[bool], *args: Array) -> tuple[Array, bool]:
        full = [
            arg if is_batched else jax.numpy.broadcast_to(arg, (size, *arg.shape))
            for arg, is_batched in zip(args, batched, strict=True)
        ]

        def sequential(*args: Array) -> Array:
            return lax.map(lambda one: single(*one), args)

        results: Any = lax.platform_dependent(*full, cpu=sequential, default=jax.vmap(raw))
        return results, True

    return single


@_sequential_on_cpu
def cholesky(matrix: Array) -> Array:
    """Returns the lower Cholesky factor of f[n, n]; reads the lower triangle; NaN if it is not positive definite."""
    return lax.linalg.cholesky(matrix, symmetrize_input=False)


@_sequential_on_cpu
def solve_lower(lower: Array, right: Array) -> Array:
    """Returns L^-1 R; f[n, n] and f[n, m] -> f[n, m]."""
    return lax.linalg.triangular_solve(lower, right, left_side=True, lower=True)


@_sequential_on_cpu
def solve_upper(lower: Array, right: Array) -> Array:
    """Returns (L^T)^-1 R; f[n, n] and f[n, m] -> f[n, m]."""
    return lax.linalg.triangular_solve(lower, right, left_side=True, lower=True, transpose_a=True)
