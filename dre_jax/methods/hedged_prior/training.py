"""Training of learned priors on past tasks, by the marginal likelihood of short histories.

Every step draws tasks, and rows of each at random. A history that is shorter than the number of drawn rows keeps the
best of them, because the trials of a search are better than random rows. Its responses are standardised, as a search
standardises its history. The loss is minus the log marginal likelihood (`dre_jax.gp.student`) a trial, and a
hyperprior, whose weight decreases with the number of past trials.

Training overfits few and short past tasks. The number of Adam's steps is therefore the one at which held-out trials
(`dre_jax.data.folds`) have the highest marginal likelihood. The learning rate is constant and the parameters are
averaged over about the last ninth of the steps (Shamir and Zhang 2013), so that a short training equals the beginning
of a longer one. The ratio to the marginal likelihood of the same trials without past tasks gives the probability of
transfer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import Bool, Float, Float64, Int, Int32, Key

from dre_jax.checks import AtLeastTwo, Checked, NonNegative, Positive, at_least
from dre_jax.data import Task
from dre_jax.data.folds import Folds, HeldOut, make_folds
from dre_jax.data.sampling import TaskSpans, sample_lists
from dre_jax.data.tasks import TaskTable
from dre_jax.errors import ConfigError
from dre_jax.gp.length_scale_prior import LengthScalePrior
from dre_jax.gp.response_scale import scale_responses
from dre_jax.gp.student import log_student_t_density
from dre_jax.methods.hedged_prior.common_process import CommonFit, condition_without_tasks
from dre_jax.methods.hedged_prior.held_out import (
    HeldOutEvidence,
    evidence_of_folds,
    held_out_evidence,
    transfer_weights,
    uninformed_evidence,
)
from dre_jax.methods.hedged_prior.priors import (
    LearnedPrior,
    LearnedPriorConfig,
    clip_prior,
    covariance_and_residuals,
    history_features,
    init,
    log_hyperprior,
    prior_shapes,
)
from dre_jax.optim.adam import Moments
from dre_jax.optim.descent import Descent, descend
from dre_jax.optim.schedule import portion_length
from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.runtime.jit import compile_ahead, few_numbers, jit_with_less_effort
from dre_jax.runtime.reports import report_progress
from dre_jax.runtime.threads import side_by_side
from dre_jax.search.history import History

Floats = Float64[np.ndarray, " n"]
Group = Int32[np.ndarray, " K"]
_PORTION = 25  # maximum number of steps of one compiled call
_CHECKPOINTS = (50, 75, 100, 150, 200, 275, 375, 500, 700, 950, 1300, 1800, 2500)
# Before step 50 the random initial trend still harms, even if few held-out trials do not show it: with one study of 20
# trials the log-likelihood a trial of validation tasks was -1.1 after 25 steps, -0.8 after 50, -0.86 after 100 and -1.3
# after 400.
_COMMON_SHARE, _SHARE_WITH_FEATURES = 0.5, 0.75  # of the common process, without held-out tasks
_HISTORIES = 64  # held-out histories of a fold
_SCALES = LearnedPrior._fields[2:]  # all parameters but those of the networks
_INITIAL_LOG_ARD_VAR = -1.0  # of log F, if the initial length scales are those of past tasks


@dataclass(frozen=True, kw_only=True)
class PriorTraining(Checked):
    """Settings of the training of priors. Raises `ConfigError` if a number is out of range."""

    steps: Positive[int] | None = None
    """Number of Adam steps; by default held-out trials choose it, up to 5000."""
    tasks: Positive[int] = 8
    """Number of histories in a step, each of one task."""
    rows: int = 32
    """Maximum number of trials of a history."""
    min_rows: AtLeastTwo[int] = 4
    """Minimum number of trials of a history, if the task has that many."""
    histories: Literal["best", "any"] = "best"
    """Which of the drawn rows a shorter history keeps: the best, or random ones."""
    learning_rate: Positive[float] = 2e-3
    """Learning rate of Adam; constant."""
    decay: NonNegative[float] = 1e-3
    """Weight decay: factor of the sum of squared network weights in the loss."""
    hyperprior: NonNegative[float] = 5.0
    """Weight of `log_hyperprior` relative to the log-likelihood of all past trials."""
    folds: Positive[int] = 4
    """Number of folds that choose the number of steps; unused if ``steps`` is a number."""
    patience: Positive[int] = 4
    """Number of checkpoints, each 1.3 times as many steps, without improvement before training of the folds stops."""
    transfer_probability: Positive[float] = 0.3
    """Prior probability that the learned priors explain a new task better than processes without past tasks."""
    transfer_strength: Positive[float] = 3.0
    """Number of tasks that this probability counts as."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self.min_rows, "rows", self.rows)
        if not self.transfer_probability < 1.0:
            rule = "transfer_probability < 1 must hold"
            raise ConfigError(f"{rule}, but got transfer_probability={self.transfer_probability}")


class PriorFit(NamedTuple):
    """Trained priors and facts about their training."""

    priors: LearnedPrior
    """J members, J in front of each array."""
    steps: Int[Array, ""]
    """Number of Adam steps."""
    transfer_probability: Float[Array, ""]
    """Probability in (0, 1) that past tasks explain a new task better than processes without them do."""
    common_share: float
    """Share of the common process in that probability. Without held-out tasks it is a half; more with features."""
    held_out: HeldOutEvidence
    """Held-out evidence that chose the number of steps and the probability of transfer."""
    losses: Float64[np.ndarray, " steps"]
    """Loss before every step, the mean over the members; on an accelerator, over members and folds."""


@dataclass(frozen=True, eq=False)
class _Training:
    """A training of members and folds, in groups that share a program and run side by side."""

    config: LearnedPriorConfig
    training: PriorTraining
    folds: Folds
    key: Key[Array, ""]
    groups: tuple[Group, ...]
    """Numbers of the priors, members first: one in each group, or all in one."""

    @classmethod
    def create(
        cls, config: LearnedPriorConfig, training: PriorTraining, folds: Folds, key: Key[Array, ""]
    ) -> _Training:
        """Returns the training of members, and of folds if they choose the number of steps."""
        count = config.members + (training.folds if training.steps is None else 0)
        # The cores of a CPU share the priors. An accelerator trains all of them at once.
        groups = np.split(np.arange(count, dtype=np.int32), count if jax.default_backend() == "cpu" else 1)
        return cls(config, training, folds, key, tuple(groups))

    def begin(self, key: Key[Array, ""], lengths: LengthScalePrior | None) -> list[Descent[Array]]:
        """Returns the state of each group before the first step."""
        count = sum(map(len, self.groups))
        vectors = np.asarray(initial_vectors(self.config, self.folds.table.n_columns, count, key, lengths))
        initial = [vectors[group] for group in self.groups]
        zeros = [np.zeros_like(points) for points in initial]
        return jax.device_put(
            [Descent(points, Moments(zero, zero), None, points) for points, zero in zip(initial, zeros, strict=True)]
        )

    def run(self, states: list[Descent[Array]], first: int, last: int) -> tuple[list[Descent[Array]], Floats]:
        """Runs the steps from ``first`` to before ``last`` of the first groups; returns the members' losses."""
        portion, losses = portion_length(last - first, _PORTION), [np.zeros(0)]
        spans = [self._spans(group) for group in self.groups[: len(states)]]
        if first == 0:
            report_progress("compiling the training of priors")

        def descend(number: int, spans: TaskSpans, state: Descent[Array], group: Group) -> tuple[Descent[Array], Array]:
            numbers = np.arange(number, number + portion, dtype=np.int32)
            folds, (numbers, members) = self.folds, jax.device_put((numbers, group))
            return descend_priors(
                self.config, self.training, folds.slots, folds.table, spans, state, members, numbers, self.key
            )

        with side_by_side(len(states)) as run_all:
            for number in range(first, last, portion):
                results = run_all(partial(descend, number), spans, states, self.groups)
                states = [state for state, _ in results]
                losses.append(np.mean([of_group for _, of_group in results[: self.n_member_groups]], axis=0))
                report_progress("training of priors, step", number + portion)
        return states, np.concatenate(losses)

    @property
    def n_member_groups(self) -> int:
        """Number of the first groups that have all members."""
        return -(-self.config.members // len(self.groups[0]))

    def averages(self, states: list[Descent[Array]]) -> tuple[LearnedPrior, LearnedPrior]:
        """Returns the averaged parameters of the members and of the folds."""
        vectors = np.concatenate([np.asarray(state.average) for state in states])
        n, shapes = self.config.members, prior_shapes(self.config, self.folds.table.n_columns)
        members, of_folds = vectors[:n], vectors[n : n + self.training.folds]
        return _unravel(shapes, members), _unravel(shapes, of_folds)

    def _spans(self, group: Group) -> TaskSpans:
        members_and_folds = self.folds.all_tasks, self.folds.train
        return jax.tree.map(
            lambda *parts: np.concatenate([np.asarray(part) for part in parts])[group], *members_and_folds
        )


def history_loss(config: LearnedPriorConfig, prior: LearnedPrior, trials: History) -> Float[Array, ""]:
    """Returns the negative log marginal likelihood of a history, with responses on any scale, divided by its trials.

    0 if all responses are equal.
    """
    trials = trials.with_response(scale_responses(config.response_scale, trials.response, trials.where).y)
    moments = covariance_and_residuals(prior, history_features(prior, trials)[0], trials)
    degrees_of_freedom = jnp.asarray(config.degrees_of_freedom, trials.response.dtype)
    value = log_student_t_density(*moments, trials.where, degrees_of_freedom)
    count = jnp.maximum(jnp.sum(trials.where, dtype=trials.response.dtype), 1.0)
    return jnp.where(jnp.any(trials.response != 0.0), -value / count, 0.0)


def draw_histories(
    training: PriorTraining, spans: TaskTable | TaskSpans, key: Key[Array, ""]
) -> tuple[Int[Array, "B n"], Bool[Array, "B n"]]:
    """Draws row numbers of B histories, and the filled slots."""
    row_key, count_key = jax.random.split(key)
    bits = jax.random.bits(row_key, (training.tasks, 1 + training.rows), jnp.uint32)
    count = jax.random.randint(count_key, (training.tasks,), training.min_rows, training.rows + 1)
    n_rows = count if training.histories == "any" else jnp.full_like(count, training.rows)
    # This training is over before the loop in C++ is built.
    lists = sample_lists(spans, bits, n_rows, n_support=0, may_be_native=False)  # best first
    return lists.query, lists.query_where & (jnp.arange(training.rows)[None, :] < count[:, None])


@jit_with_less_effort("config", "training", "slots")
def descend_priors(
    config: LearnedPriorConfig,
    training: PriorTraining,
    slots: int,
    table: TaskTable,
    spans: TaskSpans,
    descent: Descent[Array],
    members: Int[Array, " K"],
    numbers: Int[Array, " n"],
    key: Key[Array, ""],
) -> tuple[Descent[Array], Float[Array, " n"]]:
    """Runs the steps ``numbers`` of K priors, each on its own tasks; returns the new state and mean losses.

    Each prior is a vector, so that an update is one operation, not one for each array of parameters. ``members`` are
    the numbers of the priors, for their random histories. Histories have the first ``slots`` of their slots, as all
    others are empty.
    """
    shapes = prior_shapes(config, table.n_columns)

    def full(value: float) -> LearnedPrior:
        return jax.tree.map(lambda a: jnp.full((1, *a.shape), value, a.dtype), shapes)

    is_weight = _ravel(full(1.0)._replace(**{name: getattr(full(0.0), name) for name in _SCALES})) > 0.0
    low, high = (_ravel(clip_prior(full(end))) for end in (-jnp.inf, jnp.inf))
    n_trials = jnp.maximum(jnp.sum(spans.size, axis=1), 1).astype(low.dtype)

    def draw(number: Array) -> tuple[Array, Array]:
        keys = jax.random.split(jax.random.fold_in(key, number), config.members + training.folds)[members]
        rows, where = jax.vmap(partial(draw_histories, training))(spans, keys)
        return rows[..., :slots], where[..., :slots]

    def prior_loss(n_trials: Array, prior: LearnedPrior, rows: Array, where: Array) -> Array:
        histories = History(table.x[rows], table.response[rows], table.level[rows], where)
        losses = jax.vmap(partial(history_loss, config, prior))(histories)
        return jnp.mean(losses) - training.hyperprior / n_trials * log_hyperprior(prior)

    def loss(vectors: Array, histories: tuple[Array, Array]) -> Array:
        losses = jax.vmap(prior_loss)(n_trials, _unravel(shapes, vectors), *histories)
        # The gradient of a sum of independent losses is the gradient of each, for any number of priors.
        return jnp.sum(losses) + training.decay * jnp.sum(jnp.where(is_weight, vectors**2, 0.0))

    rates = optax.constant_schedule(training.learning_rate)
    histories = jax.vmap(draw)(numbers)
    project = partial(jnp.clip, min=low, max=high)
    descent, losses = descend(loss, descent, rates, numbers, histories, project=project)
    return descent, losses / len(members)


@jit_with_less_effort("config", "n_columns", "n_priors", is_brief=few_numbers)
def initial_vectors(
    config: LearnedPriorConfig, n_columns: int, n_priors: int, key: Key[Array, ""], lengths: LengthScalePrior | None
) -> Float[Array, "{n_priors} P"]:
    """Returns initial priors as vectors."""
    trend_key, feature_key = jax.random.split(key)
    starts = jax.random.split(trend_key, n_priors), jax.random.split(feature_key, n_priors)
    priors = jax.vmap(partial(init, config, n_columns))(*starts)
    if lengths is not None:
        log_lengthscale = jnp.broadcast_to(lengths.mean, priors.log_lengthscale.shape)
        log_ard_var = jnp.full_like(priors.log_ard_var, _INITIAL_LOG_ARD_VAR)
        priors = priors._replace(log_lengthscale=log_lengthscale, log_ard_var=log_ard_var)
    return _ravel(priors)


def _ravel(priors: LearnedPrior) -> Float[Array, "K P"]:
    """Returns priors, K in front of each array, as vectors."""
    return jnp.concatenate([a.reshape(len(a), -1) for a in jax.tree.leaves(priors)], axis=1)


def _unravel(shapes: LearnedPrior, vectors: Float[AnyArray, "K P"]) -> LearnedPrior:
    """Returns priors, K in front of each array, from vectors of NumPy or JAX."""
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([math.prod(a.shape) for a in leaves])
    parts = namespace(vectors).split(vectors, ends[:-1].tolist(), axis=1)
    return jax.tree.unflatten(structure, [part.reshape(-1, *a.shape) for part, a in zip(parts, leaves, strict=True)])


def train_priors(
    config: LearnedPriorConfig,
    training: PriorTraining,
    tasks: Mapping[str, Task],
    key: Key[Array, ""],
    lengths: LengthScalePrior | None = None,
    common: CommonFit | None = None,
) -> PriorFit:
    """Trains priors on past tasks, for a number of steps that held-out trials choose by default.

    ``lengths`` is the prior from `fit_length_scale_prior` of these tasks, whose means are the initial length scales: a
    short training hardly changes them. ``common`` is a second model of the past tasks, whose share of the transfer
    probability is wanted.

    Raises `DataError` if there are no tasks or they differ in the number of columns.
    """
    start_key, step_key = jax.random.split(key)
    folds = make_folds(tasks, members=config.members, folds=training.folds, histories=_HISTORIES, rows=training.rows)
    run = _Training.create(config, training, folds, step_key)
    if training.steps is None:
        _compile_evidence(config, folds, common)  # while this thread traces and compiles the training
    states = run.begin(start_key, lengths)
    if training.steps is None:
        return _train_with_folds(run, states, common)
    states, losses = run.run(states, 0, training.steps)
    zero = jnp.float32(0.0)
    held_out = HeldOutEvidence(jnp.int32(0), jnp.int32(len(tasks)), jnp.bool_(False), zero, zero)
    steps, probability = jnp.int32(training.steps), jnp.float32(training.transfer_probability)
    share = _COMMON_SHARE if common is None or common.features is None else _SHARE_WITH_FEATURES
    return PriorFit(run.averages(states)[0], steps, probability, share, held_out, losses)


def _train_with_folds(run: _Training, states: list[Descent[Array]], common: CommonFit | None) -> PriorFit:
    """Trains members and folds; returns the members at the number of steps of the highest held-out evidence."""
    config, training, folds = run.config, run.training, run.folds
    # Members, evidence of folds, losses since the last one.
    checkpoints: list[tuple[LearnedPrior, Float64[np.ndarray, "K H"], Floats]] = []
    scores: list[float] = []
    best = 0
    for last_checkpoint, checkpoint in zip((0, *_CHECKPOINTS), _CHECKPOINTS, strict=False):
        states, losses = run.run(states, last_checkpoint, checkpoint)
        members, fold_priors = run.averages(states)
        evidence = evidence_of_folds(config, fold_priors, folds)
        checkpoints.append((members, evidence, losses))
        scores.append(folds.mean_a_trial(evidence))
        best = int(np.argmax(np.nan_to_num(scores, nan=-np.inf, posinf=-np.inf)))
        if len(scores) - 1 - best >= training.patience:
            break
    steps, (members, learned_evidence, _) = _CHECKPOINTS[best], checkpoints[best]
    all_losses = [losses for *_, losses in checkpoints[: best + 1]]
    if best == len(_CHECKPOINTS) - 1:
        # If the evidence still increases at the last checkpoint, the members are trained for twice as many steps.
        states, losses = run.run(states[: run.n_member_groups], steps, 2 * steps)
        steps, members, all_losses = 2 * steps, run.averages(states)[0], [*all_losses, losses]
    baseline_evidence = uninformed_evidence(config, folds)
    facts = HeldOutEvidence(
        jnp.int32(training.folds),
        jnp.int32(len(np.unique(folds.task))),
        jnp.bool_(folds.by_rows),
        jnp.float32(scores[best]),
        jnp.float32(folds.mean_a_trial(baseline_evidence)),
    )
    prior_weight = {"prior": training.transfer_probability, "strength": training.transfer_strength}
    past_evidence = [learned_evidence]
    if common is not None:
        processes = condition_without_tasks(*common.without(folds.task))
        past_evidence.append(evidence_of_folds(config, processes, folds, common.features_of(folds.task)))
    *weights, _ = transfer_weights(past_evidence, baseline_evidence, folds.task, **prior_weight)
    share = float(weights[-1] / sum(weights)) if len(weights) > 1 else _COMMON_SHARE
    return PriorFit(members, jnp.int32(steps), jnp.float32(sum(weights)), share, facts, np.concatenate(all_losses))


def _compile_evidence(config: LearnedPriorConfig, folds: Folds, common: CommonFit | None) -> None:
    """Begins to compile the programs of the evidence of held-out histories."""
    shapes = prior_shapes(config, folds.table.n_columns)
    priors = jax.tree.map(lambda a: jax.ShapeDtypeStruct((len(folds.task), *a.shape), a.dtype), shapes)
    compile_ahead(partial(held_out_evidence, config), priors, folds.table, folds.held_out)
    if common is not None:

        def evidence(table: TaskTable, held_out: HeldOut, features: Array | None, *trials: Any) -> None:
            held_out_evidence(config, condition_without_tasks(*trials), table, held_out, features)

        features = common.features_of(folds.task)
        compile_ahead(evidence, folds.table, folds.held_out, features, *common.without(folds.task))
