"""Learned priors of Gaussian processes, averaged by evidence; this library's own.

Past tasks teach a few priors: what they have in common, and which configurations differ from it together
(`dre_jax.surrogates.learned_prior`). Before every trial the history says, by its evidence, which of the priors hold,
and how far: as learned, less, not at all, or the other way round (`dre_jax.surrogates.hypotheses`). Expected
improvement of the mixture picks. Nothing is fitted between trials but a few dozen small linear systems, so a suggestion
takes a millisecond; and a past that misleads is found out by the first trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.methods.entry import Entry
from dre_jax.methods.hypothesis_vote import VoteConfig, ask, in_words
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, History
from dre_jax.surrogates import best_of
from dre_jax.surrogates.copula import blended_scale
from dre_jax.surrogates.hypotheses import HYPOTHESES, Hypothesis, believed, posterior
from dre_jax.surrogates.hypothesis_draws import draw_response
from dre_jax.surrogates.hypothesis_weights import WeighedPriors, told
from dre_jax.surrogates.learned_prior import LearnedPriorConfig, widen
from dre_jax.surrogates.prior_training import PriorTraining, past_table, train_priors
from dre_jax.threads import on_one_thread


@dataclass(frozen=True, kw_only=True)
class HedgedPrior:
    """Learned priors under several hypotheses of what the past is worth.

    Raises:
      ConfigError: without hypotheses.

    Example:
      >>> HedgedPrior(hypotheses=(Hypothesis(weight=1.0),)).prior.members
      4
    """

    prior: LearnedPriorConfig = field(default_factory=LearnedPriorConfig)
    """Sizes."""
    training: PriorTraining = field(default_factory=PriorTraining)
    """Training by `fit`."""
    hypotheses: tuple[Hypothesis, ...] = HYPOTHESES
    """Hypotheses of what may be true of a new task."""
    vote: VoteConfig = field(default_factory=VoteConfig)
    """How validation tasks choose the hypotheses' weights."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""

    def __post_init__(self) -> None:
        if not self.hypotheses:
            raise ConfigError("there must be at least one hypothesis, but got none")

    @on_one_thread
    def fit(self, meta: SearchSpace, key: Array) -> WeighedPriors:
        """Learns the priors from a search space's training tasks, and their weights from its validation tasks."""
        priors = train_priors(self.prior, self.training, past_table(meta.require_train_tasks()), key)[0]
        params = WeighedPriors(priors, believed(self.hypotheses), told(0))
        return ask(self, params, self.vote, self.prior, meta.validation, jax.random.fold_in(key, 1))

    @property
    def widens(self) -> bool:
        """True: search spaces can share a program."""
        return True

    def widen(self, params: WeighedPriors, n_columns: int, width: int) -> WeighedPriors:
        """As `learned_prior.widen`."""
        return params._replace(priors=widen(params.priors, n_columns, width))

    def acquire(self, params: WeighedPriors, history: History, candidates: Candidates, key: Array) -> Array:
        """Values the candidates by the mixture; before the first trial, by its mean."""
        y, mean, deviation = self.predict(params, history, candidates.x)
        return acquire_by_response(self.acquisition, mean, deviation, best_of(y, history.where))

    def predict(self, params: WeighedPriors, history: History, x: Array) -> tuple[Array, Array, Array]:
        """Trials' responses on the method's scale, f[C]; mean and deviation at configurations f[m, D], f[m] each."""
        y = blended_scale(history.response, history.level, history.where)
        mean, variance = posterior(self.prior, params.by, params.priors, history.x, y, history.where, x)
        return y, mean, jnp.sqrt(variance)

    def draw(self, params: WeighedPriors, history: History, candidates: Candidates, key: Array) -> Array:
        """The responses of one function, of a prior and a hypothesis that are drawn by their evidence: for batches."""
        y = blended_scale(history.response, history.level, history.where)
        given = history.x, y, history.where, candidates.x
        return draw_response(self.prior, params.by, params.priors, *given, key)

    def tell(self, params: WeighedPriors) -> Mapping[str, str]:
        """Choices for the search space, and their reasons."""
        return {"weights of hypotheses": in_words(self.vote, params.voted)}


ENTRIES = (
    Entry(
        name="hedged-prior",
        summary="learned priors of Gaussian processes, believed as far as the trials bear them out; this library's own",
        paper="this library",
        transfer=True,
        default=HedgedPrior(),
        beside="dre",
        free=("acquisition",),
    ),
)
