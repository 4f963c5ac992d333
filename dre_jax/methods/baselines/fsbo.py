"""Few-shot Bayesian optimisation (Wistuba and Grabocka 2021), and its variant with landmarks.

The network and the hyperparameters of a deep kernel k(phi(x), phi(x')) are meta-trained: they maximise the marginal
likelihood of batches of the past tasks' rows (Patacchiola et al. 2020; Algorithm 1). Every step draws a task and a
batch of its rows. The responses are put on a random scale,

    y <- (y - l) / (u - l),     l < u uniform in the range of the responses

(equations 10 and 11), so that the kernel does not depend on the offset and range of a task, which are unknown for a new
one. Before every trial the kernel is fine-tuned on the history by the same likelihood, each time from the meta-trained
parameters and with a cosine schedule of Adam's rate (the thesis, chapter 4). Expected improvement chooses the
candidate.

The paper's network is 128-128 with a squared-exponential kernel (see `DeepKernelConfig.kernel`), a rate of 0.001 and
batches of 50; HPO-B's is 4 x 32 with a Matern 5/2 kernel, the default here.

`dklm` is the deep kernel with landmark meta-features, learned end to end (Jomaa, Pineda Arango, Schmidt-Thieme and
Grabocka 2021): FSBO with a covariance that depends on the task, k(phi([x, c]), phi([x', c])). A deep set computes the
context

    c = rho(mean over the observed (x_i, y_i) of psi([x_i, y_i]))

of the trials so far. It is meta-trained with the rest, by the marginal likelihood of a batch given a support of 1 to 20
other rows of the same task, and sees responses scaled to [0, 1] over that support.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from dre_jax.checks import Checked, Positive
from dre_jax.data import SearchSpace
from dre_jax.data.sampling import ListRows, sample_lists
from dre_jax.data.tasks import TaskTable, build_table
from dre_jax.methods.baselines import dkgp
from dre_jax.methods.baselines.shared import ByResponse
from dre_jax.methods.dre.model.ensemble import Support
from dre_jax.methods.entries.entry import Entry
from dre_jax.optim.descent import Descent, begin, descend
from dre_jax.optim.full_batch import HistoryFitConfig
from dre_jax.optim.schedule import portion_length
from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.history import Candidates, History

_NARROWEST = 0.05  # of u - l: its inverse has no mean, and single batches would outweigh all others
_PORTION = 1000  # number of steps whose batches are drawn at once


@dataclass(frozen=True, kw_only=True)
class KernelTraining(Checked):
    """Meta-training of a deep kernel.

    The steps take half a minute on a core, and are worth it: with 30,000 FSBO's regret at 10 trials on the validation
    tasks of `rbv2-xgboost` was 0.027, with these 0.017. HPO-B's code goes through all tasks 50,000 times or more, at a
    rate of 0.0001. Raises `ConfigError` where a number is out of range.
    """

    steps: Positive[int] = 100_000
    """Adam steps, each on a batch of one task."""
    batch: Positive[int] = 50
    """Rows of a task in one likelihood."""
    learning_rate: Positive[float] = 1e-3
    """Adam's, at the start, of network and kernel alike; it falls to zero along a cosine."""
    rescale: bool = True
    """Puts responses on random scales; else they stay on the table's."""
    support: Positive[int] = 20
    """Maximum number of rows that the deep set reads, if there is one; a number is drawn, to match short histories."""


class Batches(NamedTuple):
    """Training data of steps; any batch dimensions in front."""

    rows: ListRows
    """The batch is the query."""
    y: Array
    """f32[..., B], rescaled, 0 in empty slots."""


def random_scale(y: Array, where: Array, limits: Array) -> Array:
    """Puts responses f32[..., B] on a random scale (Wistuba and Grabocka 2021, equation 11), 0 in empty slots.

    The limits f32[..., 2], l and u in any order, are kept a twentieth of the range apart.
    """
    low, high = jnp.min(limits, axis=-1, keepdims=True), jnp.max(limits, axis=-1, keepdims=True)
    return jnp.where(where, (y - low) / jnp.maximum(high - low, _NARROWEST), 0.0)


def draw_batches(
    config: KernelTraining, table: TaskTable, key: Array, shape: tuple[int, ...], *, landmarks: bool
) -> Batches:
    """Draws independent batches with leading dimensions ``shape``, each with a support of other rows for landmarks."""
    rows_key, scale_key, keep_key, order_key = jax.random.split(key, 4)
    n_support = config.support if landmarks else 0
    bits = jax.random.bits(rows_key, (*shape, 1 + n_support + config.batch), jnp.uint32)
    rows = sample_lists(table, bits, n_support=n_support, may_be_native=landmarks)
    if landmarks:
        # A history may be short: the deep set gets a random number of random rows of the support.
        most = jax.random.randint(keep_key, (*shape, 1), 1, config.support + 1)
        permutation = jnp.argsort(jax.random.bits(order_key, rows.support.shape, jnp.uint32), axis=-1)
        is_member = rows.support_where & (permutation < most)
        support_where = jnp.where(jnp.any(is_member, axis=-1, keepdims=True), is_member, rows.support_where)
        rows = rows._replace(support_where=support_where)
    y = jnp.where(rows.query_where, table.response[rows.query], 0.0)
    if config.rescale:
        y = random_scale(y, rows.query_where, jax.random.uniform(scale_key, (*shape, 2)))
    return Batches(rows, y)


def batch_loss(config: dkgp.DeepKernelConfig, params: dkgp.DeepKernel, table: TaskTable, batch: Batches) -> Array:
    """Returns the negative log-likelihood of one batch divided by its rows, a scalar."""
    rows, y = batch
    support = Support(table.x[rows.support], table.response[rows.support], rows.support_where)
    value = dkgp.log_likelihood(config, params, support, table.x[rows.query], y, rows.query_where)
    return -value / jnp.maximum(jnp.sum(rows.query_where, dtype=value.dtype), 1.0)


@partial(jax.jit, static_argnames=("config", "training"))
def meta_train(
    config: dkgp.DeepKernelConfig, training: KernelTraining, table: TaskTable, key: Array
) -> tuple[dkgp.DeepKernel, Array]:
    """Trains a deep kernel on the tasks of a table; returns it and the loss of every step, f32[steps]."""
    start_key, batch_key = jax.random.split(key)
    params = dkgp.init(config, table.n_columns, start_key)
    length = portion_length(training.steps, _PORTION)

    def loss(params: dkgp.DeepKernel, batch: Batches) -> Array:
        return batch_loss(config, params, table, batch)

    def portion(descent: Descent[dkgp.DeepKernel], number: Array) -> tuple[Descent[dkgp.DeepKernel], Array]:
        key = jax.random.fold_in(batch_key, number)
        batches = draw_batches(training, table, key, (length,), landmarks=config.has_landmarks)
        steps = number * length + jnp.arange(length, dtype=jnp.int32)
        return descend(loss, descent, rates, steps, batches, project=dkgp.clip_deep_kernel)

    rates = optax.cosine_decay_schedule(training.learning_rate, training.steps)
    numbers = jnp.arange(training.steps // length, dtype=jnp.int32)
    descent, losses = lax.scan(portion, begin(params), numbers)
    return descent.params, losses.reshape(-1)


FREE = ("tuning", "acquisition")
"""Fields that meta-training does not depend on."""
_TUNING = HistoryFitConfig(steps=50, learning_rate=1e-4)


@dataclass(frozen=True, kw_only=True)
class FewShotBO(ByResponse):
    """A deep kernel, meta-trained on past tasks and fine-tuned before every trial."""

    model: dkgp.DeepKernelConfig = field(default_factory=dkgp.DeepKernelConfig)
    """Sizes."""
    meta_training: KernelTraining = field(default_factory=KernelTraining)
    """Training by `fit`."""
    tuning: HistoryFitConfig = _TUNING
    """Fine-tuning, before every trial: the paper's few epochs. The thesis takes 500 steps at 0.03, HPO-B's code up to
    10,000 at 0.001; on the validation tasks more than this forgot what was learned (regret at 25 trials of 40 runs on
    `svm` and 70 on `rbv2-xgboost`: 0.027 and 0.006 without, 0.029 and 0.007 so, 0.037 and 0.009 with 100 at 0.0003)."""

    def abstract_params(self, n_columns: int) -> dkgp.DeepKernel:
        """Returns the shapes of the deep kernel."""
        return jax.eval_shape(partial(dkgp.init, self.model, n_columns), jax.random.key(0))

    @on_one_thread
    def fit(self, meta: SearchSpace, key: Array) -> dkgp.DeepKernel:
        """Meta-trains on a search space's training tasks (Algorithm 1)."""
        return meta_train(self.model, self.meta_training, build_table(meta.require_train_tasks()), key)[0]

    def predict(
        self, params: dkgp.DeepKernel, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the mean and variance of the Gaussian process, which is fine-tuned to the history."""
        process = dkgp.tune(self.tuning, self.model, params, history.x, y, history.where)
        return dkgp.deep_kernel_posterior(self.model, process, history.x, y, history.where, candidates.x)


DKLM = FewShotBO(model=dkgp.DeepKernelConfig(rho=(32, 32, 16)), tuning=HistoryFitConfig(steps=0, learning_rate=1e-4))
"""FSBO's network behind the deep set of the ranking ensembles. It is not fine-tuned: the deep set fits it to the task,
and on the validation tasks gradient steps gained nothing (regret at 25 trials, the mean of two trainings: 0.033 and
0.010 on `svm` and `rbv2-xgboost`, 0.044 and 0.007 with FSBO's 50 steps)."""


ENTRIES = (
    Entry(
        name="fsbo",
        summary="deep-kernel Gaussian process, meta-trained and fine-tuned before every trial",
        paper="Wistuba and Grabocka 2021",
        transfer=True,
        default=FewShotBO(),
        free=FREE,
    ),
    Entry(
        name="dklm",
        summary="the same, not fine-tuned, whose kernel also sees a deep set of the trials",
        paper="Jomaa, Pineda Arango, Schmidt-Thieme and Grabocka 2021",
        transfer=True,
        default=DKLM,
        free=FREE,
    ),
)
