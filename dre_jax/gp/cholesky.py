"""Cholesky factors that never fail: the one place where jitter is added to a covariance.

Equal rows, long length scales and little noise make a covariance singular in the last bits. A factorisation that meets
a negative pivot gives NaN; then the diagonal grows, by ten times a round, until it succeeds.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.gp.lapack import cholesky, solve_lower, solve_upper

_MOST = 1.0  # of the scale: with that, anything near to a covariance is positive definite


def factor(matrix: Array, scale: Array | None = None) -> tuple[Array, Array]:
    """Lower Cholesky factor of f[n, n], with the least jitter that it takes, and the jitter, a scalar.

    Tried are no jitter, ten roundings of a scale, a hundred, and so on up to all of it. The lower triangle is read; a
    matrix with NaN has a factor of NaN. The scale is the mean of the diagonal by default. Where the matrix is the small
    difference of two large ones, give the variance that they have: what is left of it may be their roundings alone.

    Example:
      >>> lower, jitter = factor(jnp.ones((3, 3)))
      >>> bool(jnp.isfinite(lower).all()), bool(0 < jitter < 1e-5)
      (True, True)
    """
    scale = jnp.mean(jnp.diagonal(matrix)) if scale is None else scale
    identity = jnp.eye(matrix.shape[-1], dtype=matrix.dtype)
    first = 10.0 * float(jnp.finfo(matrix.dtype).eps)

    def attempt(share: Array) -> Array:
        return cholesky(matrix + share * scale * identity)

    def failed(carry: tuple[Array, Array, Array]) -> Array:
        lower, share, _ = carry
        return ~jnp.all(jnp.isfinite(lower)) & (share < _MOST)

    def more(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        share = carry[2]
        return attempt(share), share, jnp.clip(10.0 * share, first, _MOST)

    # The first turn tries no jitter: one factorisation in the program, not two.
    none = jnp.zeros((), matrix.dtype)
    lower, share, _ = lax.while_loop(failed, more, (jnp.full_like(matrix, jnp.nan), none, none))
    return lower, share * scale


def solve(lower: Array, right: Array) -> Array:
    """The matrix of a factor, inverted, times ``right``; f[n, n] and f[n] or f[n, m]."""
    columns = right[:, None] if right.ndim == 1 else right
    return solve_upper(lower, solve_lower(lower, columns)).reshape(right.shape)


def half_solve(lower: Array, right: Array) -> Array:
    """The factor, inverted, times ``right``; f[n, n] and f[n] or f[n, m]."""
    columns = right[:, None] if right.ndim == 1 else right
    return solve_lower(lower, columns).reshape(right.shape)


def made_ready(lower: Array) -> Array:
    """What `half_product` takes in place of a factor f[n, n] that serves many blocks of right sides.

    A TPU solves a triangular system by its inverse, which it would work out anew in every block. Elsewhere the factor.
    """
    return lax.platform_dependent(lower, tpu=inverse_of, default=lambda lower: lower)


@jax.custom_vjp
def half_product(ready: Array, right: Array) -> Array:
    """`half_solve` of a factor that was `made_ready`; f[n, n] and f[n, m].

    It has a gradient of its own, as the loops over batches in `factorising` have none.
    """
    return lax.platform_dependent(ready, right, tpu=_product, default=solve_lower)


def _half_product(ready: Array, right: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    found = half_product(ready, right)
    return found, (ready, right, found)


def _half_product_gradient(kept: tuple[Array, Array, Array], g: Array) -> tuple[Array, Array]:
    return lax.platform_dependent(*kept, g, tpu=_gradient_of_product, default=_gradient_of_solution)


def _gradient_of_product(inverse: Array, right: Array, found: Array, g: Array) -> tuple[Array, Array]:
    return _product(g, right.T), _product(inverse.T, g)


def _gradient_of_solution(lower: Array, right: Array, found: Array, g: Array) -> tuple[Array, Array]:
    of_right = solve_upper(lower, g)
    return -jnp.tril(_product(of_right, found.T)), of_right


half_product.defvjp(_half_product, _half_product_gradient)


def inverse_of(lower: Array) -> Array:
    """The inverse of a factor."""
    return solve_lower(lower, jnp.eye(lower.shape[-1], dtype=lower.dtype))


def _product(inverse: Array, right: Array) -> Array:
    return jnp.matmul(inverse, right, precision=lax.Precision.HIGHEST)
