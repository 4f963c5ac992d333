"""Training of a Gaussian process prior on past tasks, by the marginal likelihood of short histories.

Every step draws tasks, and rows of each at random. Their responses are standardised, as a search standardises its
history, and Adam increases their marginal likelihood (`dre_jax.gp.student.log_student_t_density`) and a hyperprior,
whose weight decreases with the number of past trials. A history that is shorter than the number of drawn rows keeps the
best of them, because the trials of a search are better than random rows.

Training overfits few and short past tasks. The number of steps is therefore the one at which held-out trials (`folds`)
have the highest marginal likelihood. The learning rate is constant and the parameters are averaged over about the last
ninth of the steps (Shamir and Zhang 2013), so that a short training equals the beginning of a longer one. The ratio to
the marginal likelihood of the same trials without past tasks gives the probability of transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jax import Array

from dre_jax.checks import at_least, one_of, positive
from dre_jax.data import Task
from dre_jax.data.sampling import TaskSpans, without_support
from dre_jax.data.tasks import TaskTable
from dre_jax.errors import ConfigError
from dre_jax.gp.response_scale import standardise
from dre_jax.gp.student import condition_student_t, log_student_t_density
from dre_jax.methods.hedged_prior.folds import Folds, HeldOut, HeldOutEvidence, make_folds
from dre_jax.methods.hedged_prior.length_scale_prior import LengthScalePrior
from dre_jax.methods.hedged_prior.prior import (
    LearnedPrior,
    LearnedPriorConfig,
    clip_prior,
    covariance_and_residuals,
    history_features,
    init,
    log_hyperprior,
    uninformed_priors,
)
from dre_jax.methods.hedged_prior.weights import fit_mixture_weights
from dre_jax.optim.descent import Descent, begin, descend
from dre_jax.optim.schedule import portion_length

T = TypeVar("T")
Floats = npt.NDArray[np.float64]
_INITIAL_LOG_ARD_VAR = -1.0  # of log F, if the initial length scales are those of past tasks
_PORTION = 25  # maximum number of steps of one compiled call
_CHECKPOINTS = (50, 75, 100, 150, 200, 275, 375, 500, 700, 950, 1300, 1800, 2500)
# Before step 50 the random initial trend still harms, even if few held-out trials do not show it: with one study of 20
# trials the log-likelihood a trial of validation tasks was -1.1 after 25 steps, -0.8 after 50, -0.86 after 100 and -1.3
# after 400.
_HISTORIES = 64  # held-out histories of a fold


@dataclass(frozen=True, kw_only=True)
class PriorTraining:
    """Settings of the training of priors.

    Raises:
      ConfigError: if a number is out of range.
    """

    steps: int | None = None
    """Number of Adam steps; by default held-out trials choose it, up to 5000."""
    tasks: int = 8
    """Number of histories in a step, each of one task."""
    rows: int = 32
    """Maximum number of trials of a history."""
    min_rows: int = 4
    """Minimum number of trials of a history, if the task has that many."""
    histories: Literal["best", "any"] = "best"
    """Which of the drawn rows a shorter history keeps: the best, or random ones."""
    learning_rate: float = 2e-3
    """Learning rate of Adam; constant."""
    decay: float = 1e-3
    """Weight decay: factor of the sum of squared network weights in the loss."""
    hyperprior: float = 5.0
    """Weight of `log_hyperprior` relative to the log-likelihood of all past trials."""
    folds: int = 4
    """Number of folds that choose the number of steps; unused if ``steps`` is a number."""
    patience: int = 4
    """Number of checkpoints, each 1.3 times as many steps, without improvement before training of the folds stops."""
    transfer_probability: float = 0.3
    """Prior probability that the learned priors explain a new task better than processes without past tasks."""
    transfer_strength: float = 3.0
    """Number of tasks that this probability counts as."""

    def __post_init__(self) -> None:
        positive(self, "tasks", "learning_rate", "folds", "patience", "transfer_probability", "transfer_strength")
        if self.steps is not None:
            positive(self, "steps")
        at_least(2, self, "min_rows")
        at_least(self.min_rows, self, "rows")
        at_least(0, self, "decay", "hyperprior")
        one_of("histories", self.histories, ("best", "any"))
        if not self.transfer_probability < 1.0:
            rule = "transfer_probability < 1 must hold"
            raise ConfigError(f"{rule}, but got transfer_probability={self.transfer_probability}")


class PriorFit(NamedTuple):
    """Trained priors and facts about their training."""

    priors: LearnedPrior
    """J members, J in front of each array."""
    steps: Array
    """i32: number of Adam steps."""
    transfer_probability: Array
    """f32 in (0, 1): probability that the priors explain a new task better than processes without past tasks."""
    held_out: HeldOutEvidence
    """Held-out evidence that chose the number of steps and the probability of transfer."""
    losses: Array
    """f[steps]: loss before every step, the mean over the priors trained together, members and folds."""


def history_loss(config: LearnedPriorConfig, prior: LearnedPrior, x: Array, response: Array, where: Array) -> Array:
    """Returns the negative log marginal likelihood of a history divided by its trials; 0 if all responses are equal.

    Args:
      config: sizes of the prior.
      prior: one prior.
      x: f[n, D].
      response: f[n], on any scale.
      where: bool[n].
    """
    y = standardise(response, where).y
    features, _ = history_features(config, prior, x, where)
    value = log_student_t_density(
        *covariance_and_residuals(prior, features, y, where), where, jnp.asarray(config.degrees_of_freedom, y.dtype)
    )
    varied = jnp.any(y != 0.0)
    return jnp.where(varied, -value / jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0), 0.0)


def draw_histories(training: PriorTraining, spans: TaskTable | TaskSpans, key: Array) -> tuple[Array, Array]:
    """Draws row numbers i32[B, n] of B histories, and bool[B, n], the filled slots."""
    row_key, count_key = jax.random.split(key)
    bits = jax.random.bits(row_key, (training.tasks, 1 + training.rows), jnp.uint32)
    count = jax.random.randint(count_key, (training.tasks,), training.min_rows, training.rows + 1)
    n_rows = count if training.histories == "any" else jnp.full_like(count, training.rows)
    drawn = without_support(spans, bits, n_rows)  # best first
    return drawn.query, drawn.query_where & (jnp.arange(training.rows)[None, :] < count[:, None])


def batch_loss(
    config: LearnedPriorConfig,
    training: PriorTraining,
    table: TaskTable,
    spans: TaskSpans,
    prior: LearnedPrior,
    key: Array,
) -> Array:
    """Returns the mean loss of random histories plus weight decay minus the weighted log hyperprior, a scalar."""
    rows, where = draw_histories(training, spans, key)
    each = jax.vmap(partial(history_loss, config, prior))(table.x[rows], table.response[rows], where)
    squares = sum(jnp.sum(a**2) for a in jax.tree.leaves((prior.trend, prior.features)))
    trials = jnp.maximum(jnp.sum(spans.size), 1).astype(prior.log_slope_var.dtype)
    return jnp.mean(each) + training.decay * squares - training.hyperprior / trials * log_hyperprior(prior)


@partial(jax.jit, static_argnames=("config", "training"))
def _descend(
    config: LearnedPriorConfig,
    training: PriorTraining,
    table: TaskTable,
    spans: TaskSpans,
    descent: Descent[LearnedPrior],
    numbers: Array,
    key: Array,
) -> tuple[Descent[LearnedPrior], Array]:
    """Runs the steps i32[n] of K priors, each on its own tasks; returns the new state and mean losses f[n]."""
    n_priors = spans.n_tasks.shape[0]

    def loss(priors: LearnedPrior, number: Array) -> Array:
        keys = jax.random.split(jax.random.fold_in(key, number), n_priors)
        # The gradient of a sum of independent losses is the gradient of each, for any number of priors.
        return jnp.sum(jax.vmap(partial(batch_loss, config, training, table))(spans, priors, keys))

    rates = optax.constant_schedule(training.learning_rate)
    descent, losses = descend(loss, descent, rates, numbers, numbers, project=clip_prior)
    return descent, losses / n_priors


@partial(jax.jit, static_argnames=("config", "n_columns", "n_priors"))
def _begin(
    config: LearnedPriorConfig, n_columns: int, n_priors: int, key: Array, lengths: LengthScalePrior | None
) -> Descent[LearnedPrior]:
    trend_key, feature_key = jax.random.split(key)
    starts = jax.random.split(trend_key, n_priors), jax.random.split(feature_key, n_priors)
    priors = jax.vmap(partial(init, config, n_columns))(*starts)
    if lengths is not None:
        log_lengthscale = jnp.broadcast_to(lengths.mean, priors.log_lengthscale.shape)
        log_ard_var = jnp.full_like(priors.log_ard_var, _INITIAL_LOG_ARD_VAR)
        priors = priors._replace(log_lengthscale=log_lengthscale, log_ard_var=log_ard_var)
    return begin(priors, keep_average=True)


@partial(jax.jit, static_argnames="config")
def held_out_evidence(config: LearnedPriorConfig, priors: LearnedPrior, table: TaskTable, held_out: HeldOut) -> Array:
    """Returns the log-likelihood of held-out trials given their context, f[K, H], under the priors of K folds.

    It is known up to a term in the number of trials (`dre_jax.gp.student`); 0 if all responses of a history are equal.
    """

    def of_history(prior: LearnedPrior, rows: Array, where: Array, context: Array) -> Array:
        y = standardise(table.response[rows], where).y
        features, _ = history_features(config, prior, table.x[rows], where)

        def density(where: Array) -> Array:
            return condition_student_t(
                *covariance_and_residuals(prior, features, y, where), where, config.degrees_of_freedom
            ).log_density

        return jnp.where(jnp.any(y != 0.0), density(where) - density(context), 0.0)

    def of_fold(prior: LearnedPrior, held_out: HeldOut) -> Array:
        return jax.lax.map(lambda history: of_history(prior, *history), held_out)

    return jax.vmap(of_fold)(priors, held_out)


def train_priors(
    config: LearnedPriorConfig,
    training: PriorTraining,
    tasks: Mapping[str, Task],
    key: Array,
    lengths: LengthScalePrior | None = None,
) -> PriorFit:
    """Trains priors on past tasks, for a number of steps that held-out trials choose by default.

    Args:
      config: sizes of the priors.
      training: settings of the training.
      tasks: past tasks, with trials in the order of their evaluation.
      key: PRNG key.
      lengths: prior from `fit_length_scale_prior` of these tasks, whose means are the initial length scales. A short
        training hardly changes them.

    Raises:
      DataError: if there are no tasks or they differ in the number of columns.
    """
    start_key, step_key = jax.random.split(key)
    folds = make_folds(tasks, members=config.members, folds=training.folds, histories=_HISTORIES, rows=training.rows)

    def train(spans: TaskSpans, descent: Descent[LearnedPrior], first: int, last: int) -> _Progress:
        portion, losses = portion_length(last - first, _PORTION), []
        for number in range(first, last, portion):
            numbers = np.arange(number, number + portion, dtype=np.int32)
            descent, loss = _descend(config, training, folds.table, spans, descent, numbers, step_key)
            losses.append(loss)
        return descent, jnp.concatenate(losses)

    count = config.members + (training.folds if training.steps is None else 0)
    descent = _begin(config, folds.table.n_columns, count, start_key, lengths)
    if training.steps is None:
        return _train_with_folds(config, training, folds, train, descent)
    descent, losses = train(folds.all_tasks, descent, 0, training.steps)
    zero = jnp.float32(0.0)
    held_out = HeldOutEvidence(jnp.int32(0), jnp.int32(len(tasks)), jnp.bool_(False), zero, zero)
    steps, probability = jnp.int32(training.steps), jnp.float32(training.transfer_probability)
    return PriorFit(_average(descent), steps, probability, held_out, losses)


_Progress = tuple[Descent[LearnedPrior], Array]
"""The state after some steps, and their losses."""


def _train_with_folds(
    config: LearnedPriorConfig,
    training: PriorTraining,
    folds: Folds,
    train: Callable[[TaskSpans, Descent[LearnedPrior], int, int], _Progress],
    descent: Descent[LearnedPrior],
) -> PriorFit:
    """Trains members and folds in one program; returns the members at the steps of the highest held-out evidence."""
    spans = jax.tree.map(lambda *parts: jnp.concatenate(parts), folds.all_tasks, folds.train)
    checkpoints: list[tuple[LearnedPrior, Floats, Array]] = []  # members, evidence of folds, losses since the last one
    scores: list[float] = []
    best = 0
    for before, checkpoint in zip((0, *_CHECKPOINTS), _CHECKPOINTS, strict=False):
        descent, losses = train(spans, descent, before, checkpoint)
        members, fold_priors = _split(_average(descent), config.members)
        evidence = _evidence(config, fold_priors, folds)
        checkpoints.append((members, evidence, losses))
        scores.append(_mean_evidence(evidence, folds))
        best = int(np.argmax(np.nan_to_num(scores, nan=-np.inf, posinf=-np.inf)))
        if len(scores) - 1 - best >= training.patience:
            break
    steps, (members, learned, _) = _CHECKPOINTS[best], checkpoints[best]
    every_loss = [losses for *_, losses in checkpoints[: best + 1]]
    if best == len(_CHECKPOINTS) - 1:
        # If the evidence still increases at the last checkpoint, members train for twice as many steps.
        members_only = jax.device_put(_split(descent, config.members)[0])
        descent, losses = train(folds.all_tasks, members_only, steps, 2 * steps)
        steps, members, every_loss = 2 * steps, _average(descent), [*every_loss, losses]
    # The log of the mean likelihood of the priors without past tasks.
    priors = jax.tree.map(np.asarray, uninformed_priors(config, folds.table.n_columns))
    each = []
    for i in range(priors.log_noise_var.shape[0]):
        prior = jax.tree.map(lambda a, i=i: np.broadcast_to(a[i], (training.folds, *a.shape[1:])), priors)
        each.append(_evidence(config, prior, folds))
    uninformed: Floats = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
    facts = HeldOutEvidence(
        jnp.int32(training.folds),
        jnp.int32(len(np.unique(folds.task))),
        jnp.bool_(folds.by_rows),
        jnp.float32(scores[best]),
        jnp.float32(_mean_evidence(uninformed, folds)),
    )
    probability = _transfer_probability(training, learned, uninformed, folds.task)
    return PriorFit(members, jnp.int32(steps), jnp.float32(probability), facts, jnp.concatenate(every_loss))


def _average(descent: Descent[LearnedPrior]) -> LearnedPrior:
    assert descent.average is not None
    return descent.average


def _split(tree: T, count: int) -> tuple[T, T]:
    """Returns the first ``count`` priors of each array, and the others."""
    arrays = jax.tree.map(np.asarray, tree)
    return jax.tree.map(lambda a: a[:count], arrays), jax.tree.map(lambda a: a[count:], arrays)


def _evidence(config: LearnedPriorConfig, priors: LearnedPrior, folds: Folds) -> Floats:
    return np.asarray(held_out_evidence(config, priors, folds.table, folds.held_out), np.float64)


def _mean_evidence(evidence: Floats, folds: Folds) -> float:
    """Returns the evidence a trial, the mean over tasks."""
    trials = np.maximum(np.sum(folds.held_out.where & ~folds.held_out.context, axis=-1), 1)
    return float(np.mean([np.mean(one) for one in _by_task(evidence / trials, folds.task)]))


def _by_task(values: Floats, task: npt.NDArray[np.int32]) -> list[Floats]:
    """Returns the values of histories, f[K, H, ...], grouped by task."""
    return [values[task == i] for i in np.unique(task)]


def _transfer_probability(
    training: PriorTraining, learned: Floats, uninformed: Floats, task: npt.NDArray[np.int32]
) -> float:
    """Returns the weight of the learned priors against `uninformed_priors`, fitted to held-out histories."""
    by_task = _by_task(np.stack([learned, uninformed], axis=-1), task)
    longest = max(len(one) for one in by_task)
    even = np.stack([np.resize(one, (longest, 2)) for one in by_task])
    before = np.array([training.transfer_probability, 1.0 - training.transfer_probability])
    return float(fit_mixture_weights(before, np.nan_to_num(even, nan=0.0), training.transfer_strength)[0])


def explain_training(steps: int, transfer_probability: float, held_out: HeldOutEvidence) -> str:
    """Returns the number of steps, the probability of transfer and the reasons of both in one line."""
    transfer = f"transfer probability {transfer_probability:.2f}"
    if int(held_out.folds) == 0:
        return f"{steps} steps, as given; {transfer}"
    count = int(held_out.tasks)
    what = f"{'halves of ' if bool(held_out.by_rows) else ''}{count} {'task' if count == 1 else 'tasks'}"
    return (
        f"{steps} steps, chosen by {int(held_out.folds)} folds of {what}: held-out log evidence "
        f"{float(held_out.learned):+.2f} a trial, {float(held_out.uninformed):+.2f} without the past; {transfer}"
    )
