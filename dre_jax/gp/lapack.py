"""Cholesky factors and triangular systems, on a CPU one after the other.

A batch of them is one call there, which hands its parts to the very threads that such calls run on, and waits. With as
many calls as threads, from two devices or from one program, all wait for ever (jaxlib 0.10). Single matrices are worked
on where they are called, so under `jax.vmap` these go through the batch in a loop. Elsewhere they are batched as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import Array, lax
from jax.custom_batching import custom_vmap


def _in_turn_on_a_cpu(raw: Callable[..., Array]) -> Callable[..., Array]:
    """The function, whose batches are loops where a CPU computes."""
    single = custom_vmap(raw)

    @single.def_vmap
    def batch(size: int, batched: list[bool], *args: Array) -> tuple[Array, bool]:
        full = [
            arg if is_batched else jax.numpy.broadcast_to(arg, (size, *arg.shape))
            for arg, is_batched in zip(args, batched, strict=True)
        ]

        def in_turn(*args: Array) -> Array:
            return lax.map(lambda one: single(*one), args)

        found: Any = lax.platform_dependent(*full, cpu=in_turn, default=jax.vmap(raw))
        return found, True

    return single


@_in_turn_on_a_cpu
def cholesky(matrix: Array) -> Array:
    """Lower factor of f[n, n], of which the lower triangle is read; NaN where it is not positive definite."""
    return lax.linalg.cholesky(matrix, symmetrize_input=False)


@_in_turn_on_a_cpu
def solve_lower(lower: Array, right: Array) -> Array:
    """L^-1 R; f[n, n] and f[n, m] -> f[n, m]."""
    return lax.linalg.triangular_solve(lower, right, left_side=True, lower=True)


@_in_turn_on_a_cpu
def solve_upper(lower: Array, right: Array) -> Array:
    """(L^T)^-1 R; f[n, n] and f[n, m] -> f[n, m]."""
    return lax.linalg.triangular_solve(lower, right, left_side=True, lower=True, transpose_a=True)
