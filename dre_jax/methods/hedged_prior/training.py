"""Learning the prior of a Gaussian process from past tasks: the evidence of short histories drawn from them.

Every step draws tasks, and of each some rows at random. Their responses are put on the scale that a search gives its
own history, and the prior is moved to where their evidence is higher (`student.log_evidence`), with a hyperprior that
counts for little where there are many trials. The rows of a short history are the best of those drawn, as the trials of
a search are better than any: so the prior is at home where it will be asked.

Few and short past tasks are soon learned by heart. So the number of steps is that at which held-out trials
(`prior_folds`) have the highest evidence. The rate is constant and the parameters are averaged over the last ninth of
the steps (Shamir and Zhang 2013), so that a training that ends early is the beginning of a longer one. The evidence of
the same trials under processes that know nothing of the past says how far to trust what was learned.
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
from dre_jax.data.sampling import TaskSpans
from dre_jax.data.tasks import TaskTable
from dre_jax.errors import ConfigError
from dre_jax.gp.response_scale import standardise
from dre_jax.gp.student import condition_student_t, log_student_t_density
from dre_jax.methods.baselines.meta_kernel import without_support
from dre_jax.methods.hedged_prior.folds import Folds, HeldOut, HeldOutEvidence, make_folds
from dre_jax.methods.hedged_prior.length_scale_prior import LengthScalePrior
from dre_jax.methods.hedged_prior.prior import (
    LearnedPrior,
    LearnedPriorConfig,
    init,
    log_hyperprior,
    observed,
    plain_priors,
    view_trials,
    within_bounds,
)
from dre_jax.methods.hedged_prior.weights import most_likely
from dre_jax.optim.descent import Descent, begin, descend
from dre_jax.optim.schedule import portion_length

T = TypeVar("T")
Floats = npt.NDArray[np.float64]
_OWN_PROCESS = -1.0  # logarithm of F at the start, where its length scales are those of past tasks
_PORTION = 25  # steps of a call, at most
_CHECKPOINTS = (50, 75, 100, 150, 200, 275, 375, 500, 700, 950, 1300, 1800, 2500)
# The first is where the random trend that a prior begins with has gone, also where the trials held out are too few to
# show it: with one study of 20 trials 25 steps left -1.1 a trial of validation tasks, 50 -0.8, 100 -0.86, 400 -1.3.
_HISTORIES = 64  # held-out ones of a fold


@dataclass(frozen=True, kw_only=True)
class PriorTraining:
    """Training of priors.

    Raises:
      ConfigError: where a number is out of range.
    """

    steps: int | None = None
    """Adam steps; by default as many as give held-out trials the highest evidence, at most 5000."""
    tasks: int = 8
    """Histories of a step, each of a task."""
    rows: int = 32
    """Trials of a history, at most."""
    least: int = 4
    """Trials of a history, at least, where the task has so many."""
    histories: Literal["best", "any"] = "best"
    """Which of the rows drawn a history has, where it is shorter."""
    learning_rate: float = 2e-3
    """Adam's, throughout."""
    decay: float = 1e-3
    """Factor of the sum of the networks' squared weights in the loss. Without it, held-out tasks' evidence falls."""
    hyperprior: float = 5.0
    """Factor of `learned_prior.log_hyperprior`, where the evidence of all past trials has 1."""
    folds: int = 4
    """Hold-outs that the number of steps is chosen by; where it is given, there are none."""
    patience: int = 4
    """Checkpoints, 1.3 times as many steps each, at which the held-out evidence may be no better before folds end."""
    trust: float = 0.3
    """Probability, before any evidence, that what was learned explains a new task better than plain processes do."""
    trust_strength: float = 3.0
    """Tasks that this probability counts for."""

    def __post_init__(self) -> None:
        positive(self, "tasks", "learning_rate", "folds", "patience", "trust", "trust_strength")
        if self.steps is not None:
            positive(self, "steps")
        at_least(2, self, "least")
        at_least(self.least, self, "rows")
        at_least(0, self, "decay", "hyperprior")
        one_of("histories", self.histories, ("best", "any"))
        if not self.trust < 1.0:
            raise ConfigError(f"trust < 1 must hold, but got trust={self.trust}")


class PriorFit(NamedTuple):
    """Priors, and how they came about. All are arrays."""

    priors: LearnedPrior
    """Of J members, J in front of each array."""
    steps: Array
    """i32: Adam steps that they were trained for."""
    trust: Array
    """f32 in (0, 1): probability that what was learned explains a new task better than plain processes do."""
    held_out: HeldOutEvidence
    """Why so many steps, and why so much trust."""
    losses: Array
    """f[steps]: mean loss before every step of the priors that were trained together, members and folds."""


def history_loss(config: LearnedPriorConfig, prior: LearnedPrior, x: Array, response: Array, where: Array) -> Array:
    """Negative log-evidence of a history, a trial; 0 where all responses are equal.

    Args:
      config: sizes.
      prior: one prior.
      x: f[n, D].
      response: f[n], on any scale.
      where: bool[n].
    """
    y = standardise(response, where).y
    tried, _ = view_trials(config, prior, x, where)
    value = log_student_t_density(*observed(prior, tried, y, where), where, jnp.asarray(config.freedom, y.dtype))
    varied = jnp.any(y != 0.0)
    return jnp.where(varied, -value / jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0), 0.0)


def draw_histories(training: PriorTraining, spans: TaskTable | TaskSpans, key: Array) -> tuple[Array, Array]:
    """Row numbers i32[B, n] of B histories, and bool[B, n] which count."""
    row_key, count_key = jax.random.split(key)
    bits = jax.random.bits(row_key, (training.tasks, 1 + training.rows), jnp.uint32)
    count = jax.random.randint(count_key, (training.tasks,), training.least, training.rows + 1)
    most = count if training.histories == "any" else jnp.full_like(count, training.rows)
    drawn = without_support(spans, bits, most)  # best first
    return drawn.query, drawn.query_where & (jnp.arange(training.rows)[None, :] < count[:, None])


def batch_loss(
    config: LearnedPriorConfig,
    training: PriorTraining,
    table: TaskTable,
    spans: TaskSpans,
    prior: LearnedPrior,
    key: Array,
) -> Array:
    """Mean loss of histories drawn from some tasks, and what weights and hyperparameters cost; a scalar."""
    rows, where = draw_histories(training, spans, key)
    each = jax.vmap(partial(history_loss, config, prior))(table.x[rows], table.response[rows], where)
    squares = sum(jnp.sum(a**2) for a in jax.tree.leaves((prior.trend, prior.features)))
    trials = jnp.maximum(jnp.sum(spans.size), 1).astype(prior.slope.dtype)
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
    """Steps of K priors with these numbers, i32[n], each on tasks of its own; mean losses f[n]."""
    n_priors = spans.n_tasks.shape[0]

    def loss(priors: LearnedPrior, number: Array) -> Array:
        keys = jax.random.split(jax.random.fold_in(key, number), n_priors)
        # A sum: priors' gradients are their own, whatever their number.
        return jnp.sum(jax.vmap(partial(batch_loss, config, training, table))(spans, priors, keys))

    rates = optax.constant_schedule(training.learning_rate)
    descent, losses = descend(loss, descent, rates, numbers, numbers, project=within_bounds)
    return descent, losses / n_priors


@partial(jax.jit, static_argnames=("config", "n_columns", "n_priors"))
def _begin(
    config: LearnedPriorConfig, n_columns: int, n_priors: int, key: Array, lengths: LengthScalePrior | None
) -> Descent[LearnedPrior]:
    trend_key, feature_key = jax.random.split(key)
    starts = jax.random.split(trend_key, n_priors), jax.random.split(feature_key, n_priors)
    priors = jax.vmap(partial(init, config, n_columns))(*starts)
    if lengths is not None:
        length = jnp.broadcast_to(lengths.mean, priors.length.shape)
        priors = priors._replace(length=length, plain=jnp.full_like(priors.plain, _OWN_PROCESS))
    return begin(priors, keep_average=True)


@partial(jax.jit, static_argnames="config")
def held_out_evidence(config: LearnedPriorConfig, priors: LearnedPrior, table: TaskTable, held_out: HeldOut) -> Array:
    """Log evidence of held-out trials given their context, f[K, H], under the priors of K folds, K in front.

    Up to a term in the number of trials, as in `student`; 0 where all responses of a history are equal.
    """

    def of_history(prior: LearnedPrior, rows: Array, where: Array, context: Array) -> Array:
        y = standardise(table.response[rows], where).y
        tried, _ = view_trials(config, prior, table.x[rows], where)

        def density(where: Array) -> Array:
            return condition_student_t(*observed(prior, tried, y, where), where, config.freedom).log_density

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
    """Learns priors from past tasks, for a number of steps that held-out trials choose.

    Args:
      config: sizes.
      training: how.
      tasks: past tasks; a task's trials in the order in which they were made.
      key: PRNG key.
      lengths: what processes fitted to these tasks say of length scales (`fit_length_scale_prior`): priors then begin
        with its means. A short training hardly moves them.

    Raises:
      DataError: without tasks, or with different numbers of columns.
    """
    start_key, step_key = jax.random.split(key)
    folds = make_folds(tasks, members=config.members, folds=training.folds, histories=_HISTORIES, rows=training.rows)
    train = partial(_train, config, training, folds.table, step_key)
    count = config.members + (training.folds if training.steps is None else 0)
    descent = _begin(config, folds.table.n_columns, count, start_key, lengths)
    if training.steps is None:
        return _train_beside_folds(config, training, folds, train, descent)
    descent, losses = train(folds.everything, descent, 0, training.steps)
    held_out = _no_evidence(len(tasks))
    return PriorFit(_average(descent), jnp.int32(training.steps), jnp.float32(training.trust), held_out, losses)


_Train = Callable[[TaskSpans, Descent[LearnedPrior], int, int], tuple[Descent[LearnedPrior], Array]]
"""Trains priors on tasks of their own, from a number of steps to another; their mean losses."""


def _train(
    config: LearnedPriorConfig,
    training: PriorTraining,
    table: TaskTable,
    key: Array,
    spans: TaskSpans,
    descent: Descent[LearnedPrior],
    first: int,
    last: int,
) -> tuple[Descent[LearnedPrior], Array]:
    portion, losses = portion_length(last - first, _PORTION), []
    for number in range(first, last, portion):
        numbers = np.arange(number, number + portion, dtype=np.int32)
        descent, loss = _descend(config, training, table, spans, descent, numbers, key)
        losses.append(loss)
    return descent, jnp.concatenate(losses)


class _Checkpoint(NamedTuple):
    members: LearnedPrior
    evidence: Floats
    """f[K, H], of held-out histories under the priors of folds."""
    losses: Array
    """Since the checkpoint before."""


def _train_beside_folds(
    config: LearnedPriorConfig,
    training: PriorTraining,
    folds: Folds,
    train: _Train,
    descent: Descent[LearnedPrior],
) -> PriorFit:
    """The members after as many steps as give folds, trained in the same program, the highest evidence."""
    spans = jax.tree.map(lambda *parts: jnp.concatenate(parts), folds.everything, folds.train)
    course: list[_Checkpoint] = []
    scores: list[float] = []
    for before, checkpoint in zip((0, *_CHECKPOINTS), _CHECKPOINTS, strict=False):
        descent, losses = train(spans, descent, before, checkpoint)
        members, held_out = _divided(_average(descent), config.members)
        course.append(_Checkpoint(members, _evidence(config, held_out, folds), losses))
        scores.append(_mean_evidence(course[-1].evidence, folds))
        if len(scores) - 1 - _best(scores) >= training.patience:
            break
    best = _best(scores)
    steps, members = _CHECKPOINTS[best], course[best].members
    every_loss = [checkpoint.losses for checkpoint in course[: best + 1]]
    if best == len(_CHECKPOINTS) - 1:
        # Where the evidence still rises at the end, so it would for some time: past tasks say much.
        alone = jax.device_put(_divided(descent, config.members)[0])
        descent, losses = train(folds.everything, alone, steps, 2 * steps)
        steps, members, every_loss = 2 * steps, _average(descent), [*every_loss, losses]
    unlearned = _plain_evidence(config, training, folds)
    facts = HeldOutEvidence(
        jnp.int32(training.folds),
        jnp.int32(len(np.unique(folds.task))),
        jnp.bool_(folds.by_rows),
        jnp.float32(scores[best]),
        jnp.float32(_mean_evidence(unlearned, folds)),
    )
    trust = _trust(training, course[best].evidence, unlearned, folds.task)
    return PriorFit(members, jnp.int32(steps), jnp.float32(trust), facts, jnp.concatenate(every_loss))


def _average(descent: Descent[LearnedPrior]) -> LearnedPrior:
    assert descent.average is not None
    return descent.average


def _divided(tree: T, count: int) -> tuple[T, T]:
    """The first priors of each array, and the others."""
    arrays = jax.tree.map(np.asarray, tree)
    return jax.tree.map(lambda a: a[:count], arrays), jax.tree.map(lambda a: a[count:], arrays)


def _evidence(config: LearnedPriorConfig, priors: LearnedPrior, folds: Folds) -> Floats:
    return np.asarray(held_out_evidence(config, priors, folds.table, folds.held_out), np.float64)


def _mean_evidence(evidence: Floats, folds: Folds) -> float:
    """A trial's, the mean over tasks."""
    trials = np.maximum(np.sum(folds.held_out.where & ~folds.held_out.context, axis=-1), 1)
    return float(np.mean([np.mean(one) for one in _by_task(evidence / trials, folds.task)]))


def _plain_evidence(config: LearnedPriorConfig, training: PriorTraining, folds: Folds) -> Floats:
    """Log of the mean evidence of `plain_priors`, f[K, H]."""
    plain = jax.tree.map(np.asarray, plain_priors(config, folds.table.n_columns))
    each = []
    for i in range(plain.noise.shape[0]):
        prior = jax.tree.map(lambda a, i=i: np.broadcast_to(a[i], (training.folds, *a.shape[1:])), plain)
        each.append(_evidence(config, prior, folds))
    found: Floats = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
    return found


def _best(scores: list[float]) -> int:
    return int(np.argmax(np.nan_to_num(scores, nan=-np.inf, posinf=-np.inf)))


def _by_task(values: Floats, task: npt.NDArray[np.int32]) -> list[Floats]:
    """Values of histories, f[K, H, ...], for each task that they are of."""
    return [values[task == i] for i in np.unique(task)]


def _trust(training: PriorTraining, learned: Floats, plain: Floats, task: npt.NDArray[np.int32]) -> float:
    """Weight of what was learned beside plain processes that held-out histories make likely."""
    by_task = _by_task(np.stack([learned, plain], axis=-1), task)
    most = max(len(one) for one in by_task)
    even = np.stack([np.resize(one, (most, 2)) for one in by_task])
    before = np.array([training.trust, 1.0 - training.trust])
    return float(most_likely(before, np.nan_to_num(even, nan=0.0), training.trust_strength)[0])


def _no_evidence(n_tasks: int) -> HeldOutEvidence:
    zero = jnp.float32(0.0)
    return HeldOutEvidence(jnp.int32(0), jnp.int32(n_tasks), jnp.bool_(False), zero, zero)


def explain_training(steps: int, trust: float, held_out: HeldOutEvidence) -> str:
    """The length of the training, the trust in what it learned, and the reason of both, in a line."""
    if int(held_out.folds) == 0:
        return f"{steps} steps, as given; trust {trust:.2f}"
    count = int(held_out.tasks)
    what = f"{'halves of ' if bool(held_out.by_rows) else ''}{count} {'task' if count == 1 else 'tasks'}"
    return (
        f"{steps} steps, chosen by {int(held_out.folds)} folds of {what}: held-out log evidence "
        f"{float(held_out.learned):+.2f} a trial, {float(held_out.plain):+.2f} without the past; trust {trust:.2f}"
    )
