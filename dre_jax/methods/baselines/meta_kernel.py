"""Deep kernels learned from past tasks: the marginal likelihood of batches of their rows (Patacchiola et al. 2020).

Every step draws a task and a batch of its rows. Its responses are put on a random scale,

    y <- (y - l) / (u - l),     l < u uniform in the range of the responses

(Wistuba and Grabocka 2021, equations 10 and 11), so that what is learned does not depend on the offset and the range of
a task's responses, which are not known of a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from dre_jax.checks import positive
from dre_jax.data.sampling import ListRows, TaskSpans, draw_without_replacement, sample_lists, uniform_below
from dre_jax.data.tasks import TaskTable
from dre_jax.methods.baselines.deep_kernel import DeepKernel, DeepKernelConfig, clip_deep_kernel, init, log_likelihood
from dre_jax.methods.dre.ensemble import Support
from dre_jax.optim.descent import Descent, begin, descend
from dre_jax.optim.schedule import portion_length

_NARROWEST = 0.05  # of u - l: its inverse has no mean, and single batches would outweigh all others
_PORTION = 1000  # steps whose batches are drawn at once


@dataclass(frozen=True, kw_only=True)
class KernelTraining:
    """Meta-training of a deep kernel.

    The steps take half a minute on a core, and are worth it: with 30,000 FSBO's regret at 10 trials on the validation
    tasks of `rbv2-xgboost` was 0.027, with these 0.017. HPO-B's code goes through all tasks 50,000 times or more, at a
    rate of 0.0001.

    Raises:
      ConfigError: where a number is out of range.
    """

    steps: int = 100_000
    """Adam steps, each on a batch of one task."""
    batch: int = 50
    """Rows of a task that a likelihood is taken of."""
    learning_rate: float = 1e-3
    """Adam's, at the start, of network and kernel alike; it falls to zero along a cosine."""
    rescale: bool = True
    """Puts responses on random scales; else they stay on the table's."""
    support: int = 20
    """At most so many rows feed the deep set, where there is one: from one on, to be at home in short histories."""

    def __post_init__(self) -> None:
        positive(self, "steps", "batch", "learning_rate", "support")


class Batches(NamedTuple):
    """Training data of steps; any batch dimensions in front. Rows are numbers in the table."""

    support: Array
    """i32[..., K]"""
    support_where: Array
    """bool[..., K]"""
    rows: Array
    """i32[..., B]"""
    y: Array
    """f32[..., B], rescaled, 0 in empty slots."""
    where: Array
    """bool[..., B]"""


def random_scale(y: Array, where: Array, limits: Array) -> Array:
    """Responses f32[..., B] on a random scale (Wistuba and Grabocka 2021, equation 11), 0 in empty slots.

    The limits f32[..., 2], l and u in any order, are kept a twentieth of the range apart.

    Example:
      >>> y = random_scale(jnp.array([0.0, 0.5, 1.0]), jnp.ones(3, bool), jnp.array([0.75, 0.25]))
      >>> y.tolist()
      [-0.5, 0.5, 1.5]
    """
    low, high = jnp.min(limits, axis=-1, keepdims=True), jnp.max(limits, axis=-1, keepdims=True)
    return jnp.where(where, (y - low) / jnp.maximum(high - low, _NARROWEST), 0.0)


def draw_batches(
    config: KernelTraining, table: TaskTable, key: Array, shape: tuple[int, ...], *, landmarks: bool
) -> Batches:
    """Independent batches with the leading dimensions given; with landmarks, a support apart from each."""
    rows_key, scale_key, keep_key, order_key = jax.random.split(key, 4)
    if landmarks:
        rows = sample_lists(table, rows_key, shape, n_support=config.support, n_query=config.batch)
    else:
        bits = jax.random.bits(rows_key, (*shape, 1 + config.batch), jnp.uint32)
        rows = without_support(table, bits, jnp.full(shape, config.batch, jnp.int32))
    support_where = rows.support_where
    if landmarks:
        # A history may be short: only so many of the support are seen, whichever they are.
        most = jax.random.randint(keep_key, (*shape, 1), 1, config.support + 1)
        place = jnp.argsort(jax.random.bits(order_key, rows.support.shape, jnp.uint32), axis=-1)
        is_member = support_where & (place < most)
        support_where = jnp.where(jnp.any(is_member, axis=-1, keepdims=True), is_member, support_where)
    y = jnp.where(rows.query_where, table.response[rows.query], 0.0)
    if config.rescale:
        y = random_scale(y, rows.query_where, jax.random.uniform(scale_key, (*shape, 2)))
    return Batches(rows.support, support_where, rows.query, y, rows.query_where)


def without_support(table: TaskTable | TaskSpans, bits: Array, most: Array) -> ListRows:
    """A task uniformly, and distinct rows of it, best first, at most so many: u32[..., 1 + B] random, i32[...] to B."""
    if bits.ndim > 1:
        return jax.vmap(partial(without_support, table))(bits, most)
    task = uniform_below(bits[0], jnp.int32(table.n_tasks))
    size = table.size[task]
    count = jnp.minimum(size, most)
    where = jnp.arange(bits.shape[0] - 1) < count
    rows = table.start[task] + jnp.where(where, draw_without_replacement(bits[1:], size, count), 0)
    return ListRows(jnp.zeros(0, jnp.int32), jnp.zeros(0, bool), rows, where)


def batch_loss(config: DeepKernelConfig, params: DeepKernel, table: TaskTable, batch: Batches) -> Array:
    """Negative log-likelihood of one batch, a row; a scalar."""
    support = Support(table.x[batch.support], table.response[batch.support], batch.support_where)
    value = log_likelihood(config, params, support, table.x[batch.rows], batch.y, batch.where)
    return -value / jnp.maximum(jnp.sum(batch.where, dtype=value.dtype), 1.0)


@partial(jax.jit, static_argnames=("config", "training"))
def meta_train(
    config: DeepKernelConfig, training: KernelTraining, table: TaskTable, key: Array
) -> tuple[DeepKernel, Array]:
    """A deep kernel of which the tasks of a table are likely, and the loss at every step, f32[steps]."""
    start_key, batch_key = jax.random.split(key)
    params = init(config, table.n_columns, start_key)
    length = portion_length(training.steps, _PORTION)

    def loss(params: DeepKernel, batch: Batches) -> Array:
        return batch_loss(config, params, table, batch)

    def portion(descent: Descent[DeepKernel], number: Array) -> tuple[Descent[DeepKernel], Array]:
        key = jax.random.fold_in(batch_key, number)
        batches = draw_batches(training, table, key, (length,), landmarks=config.has_landmarks)
        steps = number * length + jnp.arange(length, dtype=jnp.int32)
        return descend(loss, descent, rates, steps, batches, project=clip_deep_kernel)

    rates = optax.cosine_decay_schedule(training.learning_rate, training.steps)
    numbers = jnp.arange(training.steps // length, dtype=jnp.int32)
    descent, losses = lax.scan(portion, begin(params), numbers)
    return descent.params, losses.reshape(-1)
