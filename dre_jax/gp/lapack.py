"""Cholesky factorisations and triangular solutions whose batches are loops on a CPU.

In jaxlib 0.10 a batch of LAPACK calls on a CPU is one call. It distributes its parts over the thread pool in which the
call itself runs, and waits for them. As many such calls as threads, from two devices or from one program, deadlock. A
call for a single matrix runs in the calling thread, so under `jax.vmap` these functions loop over the batch on a CPU.
On other platforms they are batched as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jaxtyping import Float


def _sequential_on_cpu(raw: Callable[..., Array]) -> Callable[..., Array]:
    """Returns the function with a batching rule that loops over the batch on a CPU, once for nested batches."""

    def loop(*args: Array) -> Array:
        return lax.map(lambda arguments: raw(*arguments), args)

    single = custom_vmap(raw)
    batch = custom_vmap(partial(lax.platform_dependent, cpu=loop, default=jax.vmap(raw)))

    @single.def_vmap
    def _(size: int, is_batched: list[bool], *args: Array) -> tuple[Array, bool]:
        return batch(*_with_batch(size, is_batched, args)), True

    @batch.def_vmap
    def _(size: int, is_batched: list[bool], *args: Array) -> tuple[Array, bool]:
        flat = [arg.reshape(-1, *arg.shape[2:]) for arg in _with_batch(size, is_batched, args)]
        results = batch(*flat)
        return results.reshape(size, -1, *results.shape[1:]), True

    return single


def _with_batch(size: int, is_batched: Sequence[bool], args: Sequence[Array]) -> list[Array]:
    """Returns the arguments, all with an axis of the batch in front."""
    return [
        arg if has_axis else jnp.broadcast_to(arg, (size, *arg.shape))
        for arg, has_axis in zip(args, is_batched, strict=True)
    ]


@_sequential_on_cpu
def cholesky(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Returns the lower Cholesky factor of a matrix; reads the lower triangle; NaN if it is not positive definite."""
    return lax.linalg.cholesky(matrix, symmetrize_input=False)


@_sequential_on_cpu
def solve_lower(lower: Float[Array, "n n"], right: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Returns L^-1 R."""
    return lax.linalg.triangular_solve(lower.T, right.T, left_side=False, lower=False).T


@_sequential_on_cpu
def solve_upper(lower: Float[Array, "n n"], right: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Returns (L^T)^-1 R."""
    return lax.linalg.triangular_solve(lower.T, right.T, left_side=False, lower=False, transpose_a=True).T
