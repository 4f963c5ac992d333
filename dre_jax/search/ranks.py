"""Ranks of scores: the ensemble's outputs on a common scale (the paper, section 3.2)."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from dre_jax.losses.order import tie_bounds
from dre_jax.runtime.jit import jit_eager_calls


@jit_eager_calls()
def mean_tie_ranks(scores: Float[Array, "*batch n"], where: Bool[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    """Returns the rank of each score in its row: 1 is the highest, ties share the mean, empty slots are last.

    Example:
      >>> mean_tie_ranks(jnp.array([0.1, 0.7, 0.7, 0.3]), jnp.ones(4, bool)).tolist()
      [4.0, 1.5, 1.5, 3.0]
    """
    keys = _ascending_keys(jnp.where(where, -scores, jnp.inf))

    def double_ranks(keys: Array) -> Array:
        return jax.lax.platform_dependent(keys, tpu=_rank_by_sorting, default=_rank_by_search)

    return jnp.vectorize(double_ranks, signature="(n)->(n)")(keys).astype(scores.dtype) / 2.0


def _ascending_keys(x: Float[Array, " *shape"]) -> Int[Array, " *shape"]:
    """Returns integers in the order of the floats, with equal zeros and NaN last: a CPU sorts them faster."""
    unsigned_zeros = jnp.where(x == 0.0, 0.0, jnp.where(jnp.isnan(x), jnp.nan, x))
    bits = jax.lax.bitcast_convert_type(unsigned_zeros, jnp.int32)
    return bits ^ ((bits >> 31) & jnp.int32(0x7FFFFFFF))


def _rank_by_search(keys: Int[Array, " n"]) -> Int[Array, " n"]:
    """Returns twice the mean rank of each key in increasing order, by binary search."""
    in_order = jax.lax.sort(keys, is_stable=False)
    ahead = jnp.searchsorted(in_order, keys, side="left", method="scan_unrolled")
    not_behind = jnp.searchsorted(in_order, keys, side="right", method="scan_unrolled")
    return ahead + not_behind + 1


def _rank_by_sorting(keys: Int[Array, " n"]) -> Int[Array, " n"]:
    """Returns the same without a gather, which is slow on a TPU: ranks of the sorted keys, sorted back.

    Both sorts are turns of one loop, as compiling one takes seconds.
    """
    slot = jnp.arange(keys.shape[0], dtype=jnp.int32)

    def turn(_: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        sorted_keys, payload = jax.lax.sort(carry, num_keys=1, is_stable=False)
        first, last = tie_bounds(sorted_keys)
        return payload, first + last + 2

    return jax.lax.fori_loop(0, 2, turn, (keys, slot))[0]


def mean_and_deviation(ranks: Float[Array, "M n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Returns mean and standard deviation over members."""
    return jnp.mean(ranks, axis=0), jnp.std(ranks, axis=0)
