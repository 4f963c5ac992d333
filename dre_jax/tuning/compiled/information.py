"""What the values of a study say, inside of a compiled program; see `dre_jax.tuning.engine.plateau` for the rules."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.gp.lapack import cholesky, solve_lower
from dre_jax.tuning.engine.plateau import ENOUGH, share_of_counts, without_rounding
from dre_jax.tuning.engine.signal import MAX_TRIALS, SHARES, length_scales, log_evidence_of_factor, matern52
from dre_jax.tuning.objectives.single import N_START


def space_filling_share(points: Array, values: Array, where: Array, *, has_past: bool) -> Array:
    """Returns the share of the next trials that fill the space evenly, as `information_of`."""
    n = jnp.sum(where, dtype=jnp.int32)
    rounded = without_rounding(jnp.where(where, values, jnp.nan), jnp)
    counts = jnp.where(where, jnp.sum(rounded[:, None] == rounded[None, :], axis=1, dtype=jnp.int32), 0)
    most_common = jnp.min(jnp.where(counts == jnp.max(counts), rounded, jnp.inf))
    best = jnp.max(jnp.where(where, rounded, -jnp.inf))
    share = share_of_counts(n, jnp.max(counts), most_common == best, jnp)
    if has_past:
        return jnp.where(n < N_START, 0.0, jnp.minimum(share, 0.5))
    may_be_noise = (share == 0.0) & (n >= ENOUGH)
    is_noise = lax.cond(may_be_noise, lambda: ~has_signal(points, values, where), lambda: jnp.bool_(False))
    return jnp.where(n < 1, 0.0, jnp.where(is_noise, 1.0, share))


def has_signal(points: Array, values: Array, where: Array) -> Array:
    """Returns whether a signal has more evidence than noise alone, as `dre_jax.tuning.engine.signal.has_signal`.

    The filled slots are the first.
    """
    dtype, size = points.dtype, min(len(points), MAX_TRIALS)
    total = jnp.sum(where, dtype=jnp.int32)
    n = jnp.minimum(total, size)
    filled = jnp.arange(size, dtype=jnp.int32) < n
    spacing = (total - 1).astype(dtype) / jnp.maximum(n - 1, 1).astype(dtype)
    rows = jnp.where(filled, jnp.round(jnp.arange(size, dtype=dtype) * spacing), 0.0).astype(jnp.int32)
    points, values = points[rows], values[rows]
    less = jnp.sum((values[None, :] < values[:, None]) & filled[None, :], axis=1).astype(dtype)
    equal = jnp.sum((values[None, :] == values[:, None]) & filled[None, :], axis=1).astype(dtype)
    quantiles = jnp.where(filled, (less + 0.5 * equal) / n.astype(dtype), 0.5)
    targets = jnp.stack([jax.scipy.special.ndtri(quantiles), jnp.where(filled, 1.0, 0.0)], axis=1)
    apart = jnp.abs(points[:, None] - points[None])
    together = jnp.sqrt(jnp.mean(apart**2, axis=-1))
    identity, pairs = jnp.eye(size, dtype=dtype), filled[:, None] & filled[None, :]
    lengths, coordinates, log_weights = length_scales(points.shape[1])

    def log_evidence(matrix: Array) -> Array:
        factor = cholesky(jnp.where(pairs, matrix, identity))
        return log_evidence_of_factor(factor, solve_lower(factor, targets), n.astype(dtype), jnp)

    log_noise = log_evidence(identity)

    def add_length(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        i, total = carry
        coordinate = jnp.asarray(coordinates)[i]
        distance = jnp.where(coordinate < 0, together, apart[:, :, jnp.maximum(coordinate, 0)])
        correlation = matern52(distance / jnp.asarray(lengths, dtype)[i], jnp)
        for share in SHARES:
            evidence = log_evidence(share * correlation + (1.0 - share) * identity)
            total = jnp.logaddexp(total, evidence + jnp.asarray(log_weights, dtype)[i])
        return i + 1, total

    def is_open(carry: tuple[Array, Array]) -> Array:
        return (carry[0] < len(lengths)) & ~(carry[1] > log_noise)

    _, log_signal = lax.while_loop(is_open, add_length, (jnp.int32(0), jnp.asarray(-jnp.inf, dtype)))
    return log_signal > log_noise
