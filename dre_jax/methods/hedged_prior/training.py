"""Training of a Gaussian process prior on past tasks, by the marginal likelihood of short histories.

Every step draws tasks, and rows of each at random (`training_steps.py`). Their responses are standardised, as a search
standardises its history, and Adam increases their marginal likelihood and a hyperprior.

Training overfits few and short past tasks. The number of steps is therefore the one at which held-out trials (`folds`)
have the highest marginal likelihood. The learning rate is constant and the parameters are averaged over about the last
ninth of the steps (Shamir and Zhang 2013), so that a short training equals the beginning of a longer one. The ratio to
the marginal likelihood of the same trials without past tasks gives the probability of transfer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.data import Task
from dre_jax.data.sampling import TaskSpans
from dre_jax.data.tasks import TaskTable
from dre_jax.methods.hedged_prior.common_process import CommonFit, condition_on_others
from dre_jax.methods.hedged_prior.folds import Folds, HeldOut, HeldOutEvidence, make_folds
from dre_jax.methods.hedged_prior.held_out import (
    evidence_of_folds,
    held_out_evidence,
    mean_evidence,
    transfer_weights,
    uninformed_evidence,
)
from dre_jax.methods.hedged_prior.length_scale_prior import LengthScalePrior
from dre_jax.methods.hedged_prior.prior import LearnedPrior, LearnedPriorConfig, MultiTaskParams, prior_shapes
from dre_jax.methods.hedged_prior.training_steps import PriorTraining, descend_priors, initial_vectors, unravel
from dre_jax.optim.adam import Moments
from dre_jax.optim.descent import Descent
from dre_jax.optim.schedule import portion_length
from dre_jax.runtime.jit import compile_ahead
from dre_jax.runtime.reports import report_progress
from dre_jax.runtime.threads import side_by_side

Floats = npt.NDArray[np.float64]
Group = npt.NDArray[np.int32]
_PORTION = 25  # maximum number of steps of one compiled call
_CHECKPOINTS = (50, 75, 100, 150, 200, 275, 375, 500, 700, 950, 1300, 1800, 2500)
# Before step 50 the random initial trend still harms, even if few held-out trials do not show it: with one study of 20
# trials the log-likelihood a trial of validation tasks was -1.1 after 25 steps, -0.8 after 50, -0.86 after 100 and -1.3
# after 400.
_EVEN_SHARE = 0.5
_HISTORIES = 64  # held-out histories of a fold


class PriorFit(NamedTuple):
    """Trained priors and facts about their training."""

    priors: LearnedPrior
    """J members, J in front of each array."""
    steps: Array
    """i32: number of Adam steps."""
    transfer_probability: Array
    """f32 in (0, 1): probability that the past explains a new task better than processes without past tasks."""
    common_share: float
    """Share of the common process in that probability; a half without held-out tasks."""
    held_out: HeldOutEvidence
    """Held-out evidence that chose the number of steps and the probability of transfer."""
    losses: Floats
    """f[steps]: loss before every step, the mean over the members; on an accelerator, over members and folds."""


@dataclass(frozen=True, eq=False)
class _Training:
    """A training of members and folds, in groups that share a program and run side by side."""

    config: LearnedPriorConfig
    training: PriorTraining
    folds: Folds
    key: Array
    groups: tuple[Group, ...]
    """Numbers of the priors, members first: one in each group, or all in one."""

    @classmethod
    def create(cls, config: LearnedPriorConfig, training: PriorTraining, folds: Folds, key: Array) -> _Training:
        """Returns the training of members, and of folds if they choose the number of steps."""
        count = config.members + (training.folds if training.steps is None else 0)
        # The cores of a CPU share the priors. An accelerator trains all of them at once.
        groups = np.split(np.arange(count, dtype=np.int32), count if jax.default_backend() == "cpu" else 1)
        return cls(config, training, folds, key, tuple(groups))

    def begin(self, key: Array, lengths: LengthScalePrior | None) -> list[Descent[Array]]:
        """Returns the state of each group before the first step."""
        count = sum(map(len, self.groups))
        vectors = np.asarray(initial_vectors(self.config, self.folds.table.n_columns, count, key, lengths))
        first = [vectors[group] for group in self.groups]
        zeros = [np.zeros_like(one) for one in first]
        return jax.device_put(
            [Descent(one, Moments(zero, zero), None, one) for one, zero in zip(first, zeros, strict=True)]
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
                losses.append(np.mean([of_group for _, of_group in results[: self._n_member_groups]], axis=0))
                report_progress("training of priors, step", number + portion)
        return states, np.concatenate(losses)

    def members_alone(self, states: list[Descent[Array]]) -> tuple[_Training, list[Descent[Array]]]:
        """Returns the training of the members without the folds, and the states of its groups."""
        groups, states = self.groups[: self._n_member_groups], states[: self._n_member_groups]
        if len(groups) > 1:
            return replace(self, groups=groups), states
        return replace(self, groups=(groups[0][: self.config.members],)), [
            jax.tree.map(lambda a: a[: self.config.members], states[0])
        ]

    @property
    def _n_member_groups(self) -> int:
        return -(-self.config.members // len(self.groups[0]))

    def averages(self, states: list[Descent[Array]]) -> tuple[LearnedPrior, LearnedPrior]:
        """Returns the averaged parameters of the members and of the folds."""
        vectors = np.concatenate([np.asarray(state.average) for state in states])
        n, shapes = self.config.members, prior_shapes(self.config, self.folds.table.n_columns)
        members, of_folds = vectors[:n], vectors[n : n + self.training.folds]
        return unravel(shapes, members, np), unravel(shapes, of_folds, np)

    def _spans(self, group: Group) -> TaskSpans:
        both = self.folds.all_tasks, self.folds.train
        return jax.tree.map(lambda *parts: np.concatenate([np.asarray(part) for part in parts])[group], *both)


def train_priors(
    config: LearnedPriorConfig,
    training: PriorTraining,
    tasks: Mapping[str, Task],
    key: Array,
    lengths: LengthScalePrior | None = None,
    common: CommonFit | None = None,
) -> PriorFit:
    """Trains priors on past tasks, for a number of steps that held-out trials choose by default.

    Args:
      config: sizes of the priors.
      training: settings of the training.
      tasks: past tasks, with trials in the order of their evaluation.
      key: PRNG key.
      lengths: prior from `fit_length_scale_prior` of these tasks, whose means are the initial length scales. A short
        training hardly changes them.
      common: a second model of the past tasks, whose share of the transfer probability is wanted.

    Raises:
      DataError: if there are no tasks or they differ in the number of columns.
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
    return PriorFit(run.averages(states)[0], steps, probability, _EVEN_SHARE, held_out, losses)


def _train_with_folds(run: _Training, states: list[Descent[Array]], common: CommonFit | None) -> PriorFit:
    """Trains members and folds; returns the members at the number of steps of the highest held-out evidence."""
    config, training, folds = run.config, run.training, run.folds
    checkpoints: list[tuple[LearnedPrior, Floats, Floats]] = []  # members, evidence of folds, losses since the last one
    scores: list[float] = []
    best = 0
    for before, checkpoint in zip((0, *_CHECKPOINTS), _CHECKPOINTS, strict=False):
        states, losses = run.run(states, before, checkpoint)
        members, fold_priors = run.averages(states)
        evidence = evidence_of_folds(config, fold_priors, folds)
        checkpoints.append((members, evidence, losses))
        scores.append(mean_evidence(evidence, folds))
        best = int(np.argmax(np.nan_to_num(scores, nan=-np.inf, posinf=-np.inf)))
        if len(scores) - 1 - best >= training.patience:
            break
    steps, (members, learned_evidence, _) = _CHECKPOINTS[best], checkpoints[best]
    every_loss = [losses for *_, losses in checkpoints[: best + 1]]
    if best == len(_CHECKPOINTS) - 1:
        # If the evidence still increases at the last checkpoint, members train for twice as many steps.
        alone, states = run.members_alone(states)
        states, losses = alone.run(states, steps, 2 * steps)
        steps, members, every_loss = 2 * steps, alone.averages(states)[0], [*every_loss, losses]
    baseline_evidence = uninformed_evidence(config, folds)
    facts = HeldOutEvidence(
        jnp.int32(training.folds),
        jnp.int32(len(np.unique(folds.task))),
        jnp.bool_(folds.by_rows),
        jnp.float32(scores[best]),
        jnp.float32(mean_evidence(baseline_evidence, folds)),
    )
    start = {"prior": training.transfer_probability, "strength": training.transfer_strength}
    both = [learned_evidence] if common is None else [learned_evidence, _common_evidence(config, common, folds)]
    *weights, _ = transfer_weights(both, baseline_evidence, folds.task, **start)
    share = float(weights[-1] / sum(weights)) if len(weights) > 1 else _EVEN_SHARE
    return PriorFit(members, jnp.int32(steps), jnp.float32(sum(weights)), share, facts, np.concatenate(every_loss))


def _common_evidence(config: LearnedPriorConfig, common: CommonFit, folds: Folds) -> Floats:
    """Returns the evidence of held-out histories under the common process of the other tasks, f64[K, H]."""
    return evidence_of_folds(config, condition_on_others(*_trials_of_others(common, folds)), folds)


def _trials_of_others(common: CommonFit, folds: Folds) -> tuple[MultiTaskParams, Array, Array, Array]:
    """Returns the arguments of `condition_on_others`, each fold without the tasks that it holds out."""
    x, y, task = common.trials
    others = np.stack([np.where(np.isin(task, held_out), -1, task) for held_out in folds.task])
    return common.params, *jax.device_put((x, y, others))


def _compile_evidence(config: LearnedPriorConfig, folds: Folds, common: CommonFit | None) -> None:
    """Begins to compile the programs of the evidence of held-out histories."""
    shapes = prior_shapes(config, folds.table.n_columns)
    priors = jax.tree.map(lambda a: jax.ShapeDtypeStruct((len(folds.task), *a.shape), a.dtype), shapes)
    compile_ahead(partial(held_out_evidence, config), priors, folds.table, folds.held_out)
    if common is not None:

        def evidence(table: TaskTable, held_out: HeldOut, *trials: Any) -> None:
            held_out_evidence(config, condition_on_others(*trials), table, held_out)

        compile_ahead(evidence, folds.table, folds.held_out, *_trials_of_others(common, folds))


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
