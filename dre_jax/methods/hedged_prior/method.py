"""Learned priors of Gaussian processes, averaged by evidence; this library's own.

Past tasks teach a few priors: what they have in common, and which configurations differ from it together
(`dre_jax.methods.hedged_prior.prior`), for as long as held-out trials gain by it (`prior_training`). On a new task each
holds as learned, less, not at all, or the other way round (`hypotheses`); and processes of the task by itself, some of
them fitted to its trials, explain it without a past (`task_process`). The evidence of the trials weighs them all
(`hedged_posterior`), and expected improvement of the mixture picks. So a past that misleads, or says little, is found
out by the first trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.gp.response_scale import best_response, standardise
from dre_jax.methods.entry import Entry
from dre_jax.methods.hedged_prior import task_process
from dre_jax.methods.hedged_prior.draws import draw_response
from dre_jax.methods.hedged_prior.hypotheses import HYPOTHESES, Hypothesis, believed
from dre_jax.methods.hedged_prior.length_scale_prior import LengthScaleConfig, fit_length_scale_prior, generic_prior
from dre_jax.methods.hedged_prior.posterior import (
    HedgedPosterior,
    condition_all,
    mean_and_improvement,
    predict_mixture,
)
from dre_jax.methods.hedged_prior.prior import LearnedPriorConfig, widen
from dre_jax.methods.hedged_prior.task_process import TaskHyperpriors, TaskProcessConfig
from dre_jax.methods.hedged_prior.training import PriorTraining, explain_training, train_priors
from dre_jax.methods.hedged_prior.weight_selection import VoteConfig, ask, in_words
from dre_jax.methods.hedged_prior.weights import WeighedPriors, told
from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, History


class ConditionedPriors(NamedTuple):
    """What is known of the task, conditioned on a history."""

    params: WeighedPriors
    posterior: HedgedPosterior
    incumbent: Array
    """Scalar: the best response on the method's scale; minus infinity without any."""


@dataclass(frozen=True, kw_only=True)
class HedgedPrior:
    """Learned priors under several hypotheses of what the past is worth, beside the task by itself.

    Raises:
      ConfigError: without hypotheses.

    Example:
      >>> HedgedPrior(hypotheses=(Hypothesis(weight=1.0),)).prior.members
      2
    """

    prior: LearnedPriorConfig = field(default_factory=LearnedPriorConfig)
    """Sizes."""
    training: PriorTraining = field(default_factory=PriorTraining)
    """Training by `fit`."""
    hypotheses: tuple[Hypothesis, ...] = HYPOTHESES
    """Hypotheses of what the learned priors are worth on a new task."""
    processes: TaskProcessConfig = field(default_factory=TaskProcessConfig)
    """Processes that know a task by its own trials."""
    length_scales: LengthScaleConfig = field(default_factory=LengthScaleConfig)
    """Fits to past tasks, for the length scales of those processes."""
    vote: VoteConfig = field(default_factory=VoteConfig)
    """How validation tasks choose the hypotheses' weights."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""
    tuned_per_slot: ClassVar[bool] = True
    double_precision: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.hypotheses:
            raise ConfigError("there must be at least one hypothesis, but got none")

    @on_one_thread
    def fit(self, meta: SearchSpace, key: Array) -> WeighedPriors:
        """Learns the priors from a search space's training tasks, and their weights from its validation tasks."""
        tasks = meta.require_train_tasks()
        lengths = fit_length_scale_prior(self.length_scales, tasks)
        fit = train_priors(self.prior, self.training, tasks, key, lengths)
        hyperpriors = TaskHyperpriors(generic_prior(meta.n_columns), lengths)
        trust = jax.scipy.special.logit(fit.trust)
        by = believed(self.hypotheses)
        params = WeighedPriors(fit.priors, by, told(0), trust, hyperpriors, fit.steps, fit.held_out)
        return ask(self, params, self.vote, self.prior, meta.validation, jax.random.fold_in(key, 1))

    @property
    def widens(self) -> bool:
        """True: search spaces can share a program."""
        return True

    def widen(self, params: WeighedPriors, n_columns: int, width: int) -> WeighedPriors:
        """As `learned_prior.widen`."""
        return params._replace(
            priors=widen(params.priors, n_columns, width),
            hyperpriors=task_process.widen(params.hyperpriors, width),
        )

    def acquire(self, params: WeighedPriors, history: History, candidates: Candidates, key: Array) -> Array:
        """Values the candidates by the mixture; before the first trial, by its mean."""
        return self.rate(self.tune(params, history, key), history, candidates)

    def tune(self, params: WeighedPriors, history: History, key: Array) -> ConditionedPriors:
        """The mixture, conditioned on the history."""
        posterior = self.condition(params, history)
        return ConditionedPriors(params, posterior, best_response(posterior.trials.y, history.where))

    def rate(self, tuned: ConditionedPriors, history: History, candidates: Candidates) -> Array:
        """Values the candidates by the conditioned mixture."""
        params, posterior, incumbent = tuned
        if self.acquisition.kind == "ei":
            known = jnp.isfinite(incumbent)
            best = jnp.where(known, incumbent, 0.0)
            mean, improvement = mean_and_improvement(self.prior, params, posterior, candidates.x, best)
            return jnp.where(known, improvement, mean)
        mean, variance = predict_mixture(self.prior, params, posterior, candidates.x)
        return acquire_by_response(self.acquisition, mean, jnp.sqrt(variance), incumbent)

    def condition(self, params: WeighedPriors, history: History) -> HedgedPosterior:
        """The mixture given a history, whose responses are standardised."""
        y = standardise(history.response, history.where).y
        return condition_all(self.prior, self.processes, params, history.x, y, history.where)

    def draw(self, params: WeighedPriors, history: History, candidates: Candidates, key: Array) -> Array:
        """The responses of one function, of a component that is drawn by its weight: for batches."""
        return draw_response(self.prior, params, self.condition(params, history), candidates.x, key)

    def tell(self, params: WeighedPriors) -> Mapping[str, str]:
        """Choices for the search space, and their reasons."""
        trust = float(jax.nn.sigmoid(jnp.asarray(params.trust)))
        return {
            "training": explain_training(int(params.steps), trust, params.held_out),
            "weights of hypotheses": in_words(self.vote, params.voted),
        }


ENTRIES = (
    Entry(
        name="hedged-prior",
        summary="learned priors of Gaussian processes, believed as far as the trials bear them out; this library's own",
        paper="this library",
        transfer=True,
        default=HedgedPrior(),
        companion="dre",
        free=("acquisition", "processes"),
    ),
)
