"""Fine-tuning on the history of the task at hand (the paper, Algorithm 2, line 3), as a scan over epochs."""

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.data.sampling import draw_without_replacement, skip, support_size
from dre_jax.losses import rank_sorted
from dre_jax.methods.dre.backends import take_steps
from dre_jax.methods.dre.backends.reference.request import SampledLists
from dre_jax.methods.dre.model.ensemble import EnsembleParams
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.training_config import FineTuneConfig
from dre_jax.optim.adam import step_sizes, zero_moments

_UNROLL = 2  # epochs in a turn of the loop: on a CPU this takes 8 to 10 % less time than one, and four gain no more


def draw_epochs(config: FineTuneConfig, response: Array, level: Array, where: Array, key: Array) -> SampledLists:
    """Draws a support for every epoch, a fifth of the history; the rest is ranked. Rows are numbers in the history.

    The history, f32[C], i32[C] and bool[C], stands best first, empty slots last. A larger capacity draws the same rows:
    padding cannot change a result.
    """
    capacity = where.shape[0]
    k_max = max(1, capacity // 5)
    q_max = max(1, capacity - k_max)
    n = jnp.sum(where, dtype=jnp.int32)
    k = jnp.minimum(support_size(n, k_max), n)
    # Epochs last: slot j of epoch e has number j * E + e in the stream of bits for any capacity.
    bits = jax.random.bits(key, (k_max, config.epochs), jnp.uint32).T
    support = jax.vmap(draw_without_replacement, in_axes=(0, None, None))(bits, n, k)
    query_slot = jnp.arange(q_max, dtype=jnp.int32)
    support_where = jnp.broadcast_to(jnp.arange(k_max) < k, support.shape)
    query_where = jnp.broadcast_to(query_slot < n - k, (config.epochs, q_max))
    query = jax.vmap(skip, in_axes=(None, 0))(query_slot, support)
    query = jnp.where(query_where, query, 0)
    ranked_list = rank_sorted(response[query], level[query], query_where, config.loss.weights)
    return SampledLists(jnp.where(support_where, support, 0), support_where, query, ranked_list)


def fine_tune(
    model: ModelConfig,
    config: FineTuneConfig,
    params: EnsembleParams,
    x: Array,
    response: Array,
    level: Array,
    where: Array,
    key: Array,
) -> EnsembleParams:
    """Returns parameters fitted to a history, starting from ``params``.

    The history is sorted by response, best first, empty slots last.

    Args:
      model: sizes.
      config: epochs, learning rate and loss.
      params: where fine-tuning starts.
      x: f32[C, D].
      response: f32[C], on the history's own scale, see `dre_jax.search.History`.
      level: i32[C], equal where responses are tied.
      where: bool[C], the filled slots.
      key: PRNG key.
    """
    if config.epochs == 0:
        return params
    epochs = draw_epochs(config, response, level, where, key)
    # An epoch has one list, which all members share.
    lists, start = jax.tree.map(lambda a: a[:, None, None], epochs), (params, zero_moments(params))
    sizes = step_sizes(config.learning_rates(), jnp.arange(config.epochs))
    loss = config.loss.name
    return take_steps(model, loss, x, response, start, lists, sizes, params_only=True, unroll=_UNROLL)[0][0]
