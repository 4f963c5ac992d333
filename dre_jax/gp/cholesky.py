"""Cholesky factorisation with jitter, and solutions of the linear systems that it gives.

Equal rows, long length scales and little noise make a covariance singular to rounding. LAPACK then meets a negative
pivot and returns NaN. `safe_cholesky` adds jitter to the diagonal, ten times more in each iteration, until the factor
is finite.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from dre_jax.gp.lapack import cholesky, solve_lower, solve_upper

_MAX_BLOCK = 64  # of rows that are inverted at once
_MAX_JITTER = 1.0  # share of the scale: with this jitter, any approximate covariance is positive definite


def safe_cholesky(
    matrix: Float[Array, "n n"], scale: Float[Array, ""] | None = None
) -> tuple[Float[Array, "n n"], Float[Array, ""]]:
    """Returns the lower Cholesky factor of a matrix with the least sufficient jitter, and the jitter.

    The jitter is 0, or 10, 100, ... times the machine epsilon times ``scale``, up to ``scale`` itself. Only the lower
    triangle is read. A matrix that contains NaN has a factor of NaN.

    Args:
      matrix: symmetric.
      scale: unit of the jitter; the mean of the diagonal by default. If the matrix is a small difference of two large
        matrices, pass their variance: the diagonal of the difference may be rounding error alone.

    Example:
      >>> lower, jitter = safe_cholesky(jnp.ones((3, 3)))
      >>> bool(jnp.isfinite(lower).all()), bool(0 < jitter < 1e-5)
      (True, True)
    """
    scale = jnp.mean(jnp.diagonal(matrix)) if scale is None else scale
    identity = jnp.eye(matrix.shape[-1], dtype=matrix.dtype)
    first = 10.0 * float(jnp.finfo(matrix.dtype).eps)

    def attempt(share: Array) -> Array:
        return cholesky(matrix + share * scale * identity)

    def has_failed(carry: tuple[Array, Array, Array]) -> Array:
        lower, share, _ = carry
        return ~jnp.all(jnp.isfinite(lower)) & (share < _MAX_JITTER)

    def retry(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        share = carry[2]
        return attempt(share), share, jnp.clip(10.0 * share, first, _MAX_JITTER)

    # The first iteration adds no jitter, so that the program contains one factorisation, not two.
    zero = jnp.zeros((), matrix.dtype)
    lower, share, _ = lax.while_loop(has_failed, retry, (jnp.full_like(matrix, jnp.nan), zero, zero))
    return lower, share * scale


def cholesky_solve(lower: Float[Array, "n n"], right: Float[Array, " n *m"]) -> Float[Array, " n *m"]:
    """Solves (L L^T) x = ``right`` for x; ``right`` is a vector or has m columns."""
    columns = right[:, None] if right.ndim == 1 else right
    return solve_upper(lower, solve_lower(lower, columns)).reshape(right.shape)


def cholesky_inverse(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Returns the inverse of L L^T.

    In float64 from products of blocks of L^-1, in half the time of two triangular systems.
    """
    if lower.dtype != jnp.float64:
        return cholesky_solve(lower, jnp.eye(lower.shape[0], dtype=lower.dtype))
    inverse = _invert_by_blocks(lower)
    return _product(inverse.T, inverse)


def _invert_by_blocks(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    n = len(lower)
    if n <= _MAX_BLOCK:
        return invert_factor(lower)
    half = n // 2
    top, bottom = _invert_by_blocks(lower[:half, :half]), _invert_by_blocks(lower[half:, half:])
    corner = -_product(bottom, _product(lower[half:, :half], top))
    return jnp.block([[top, jnp.zeros((half, n - half), lower.dtype)], [corner, bottom]])


def triangular_solve(lower: Float[Array, "n n"], right: Float[Array, " n *m"]) -> Float[Array, " n *m"]:
    """Solves L x = ``right`` for x; ``right`` is a vector or has m columns."""
    columns = right[:, None] if right.ndim == 1 else right
    return solve_lower(lower, columns).reshape(right.shape)


def prepare_factor(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Returns the form of a factor that `apply_inverse_factor` uses for many blocks of right-hand sides.

    That is the inverse on a TPU, whose triangular solver would compute it again in every block, and L itself elsewhere.
    """
    return lax.platform_dependent(lower, tpu=invert_factor, default=lambda lower: lower)


@jax.custom_vjp
def apply_inverse_factor(factor: Float[Array, "n n"], right: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Returns L^-1 ``right`` for a factor from `prepare_factor`.

    The gradient is written out, because the loops over batches in `lapack` cannot be differentiated.
    """
    return lax.platform_dependent(factor, right, tpu=_product, default=solve_lower)


_Residuals = tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, "n m"]]
"""The factor, the right-hand sides and the solution."""


def _forward(factor: Float[Array, "n n"], right: Float[Array, "n m"]) -> tuple[Float[Array, "n m"], _Residuals]:
    solution = apply_inverse_factor(factor, right)
    return solution, (factor, right, solution)


def _backward(residuals: _Residuals, cotangent: Float[Array, "n m"]) -> tuple[Float[Array, "n n"], Float[Array, "n m"]]:
    return lax.platform_dependent(*residuals, cotangent, tpu=_backward_product, default=_backward_solution)


def _backward_product(
    inverse: Float[Array, "n n"],
    right: Float[Array, "n m"],
    solution: Float[Array, "n m"],
    cotangent: Float[Array, "n m"],
) -> tuple[Float[Array, "n n"], Float[Array, "n m"]]:
    return _product(cotangent, right.T), _product(inverse.T, cotangent)


def _backward_solution(
    lower: Float[Array, "n n"],
    right: Float[Array, "n m"],
    solution: Float[Array, "n m"],
    cotangent: Float[Array, "n m"],
) -> tuple[Float[Array, "n n"], Float[Array, "n m"]]:
    right_gradient = solve_upper(lower, cotangent)
    return -jnp.tril(_product(right_gradient, solution.T)), right_gradient


apply_inverse_factor.defvjp(_forward, _backward)


def invert_factor(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Returns the inverse of a lower triangular factor."""
    return solve_lower(lower, jnp.eye(lower.shape[-1], dtype=lower.dtype))


def _product(inverse: Float[Array, "n k"], right: Float[Array, "k m"]) -> Float[Array, "n m"]:
    return jnp.matmul(inverse, right, precision=lax.Precision.HIGHEST)
