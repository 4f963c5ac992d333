"""Gaussian process priors learned from past tasks and averaged with processes of the task; this library's own method.

Past tasks train a few priors: a common trend, and a kernel of the deviations from it (`priors`). Held-out trials choose
the number of training steps (`training`). A few past tasks also have a multi-task Gaussian process
(`common_process`). Hypotheses about a new task keep, weaken, drop or reverse these priors (`hypotheses`). Processes of
the task, some of them fitted to its trials, do not use past tasks (`dre_jax.gp.task_processes`). The marginal
likelihood of the trials weights all components (`mixture`), and the expected improvement of the mixture selects the
next trial (`mixture_method`). A few trials are therefore enough to reject past tasks that mislead where the trials are.
The trials say nothing about regions that the past tasks avoid: the processes of the task alone select every fifth trial
from the twentieth on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Key

from dre_jax.checks import NonNegative
from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.gp.length_scale_prior import LengthScaleConfig, fit_length_scale_prior, generic_prior
from dre_jax.gp.multi_task import FeatureParams, MultiTaskParams, MultiTaskTrials
from dre_jax.gp.response_scale import ResponseTransform, scale_responses
from dre_jax.methods.entries.entry import Entry
from dre_jax.methods.hedged_prior.common_process import (
    CommonFit,
    CommonProcessConfig,
    common_prior,
    feature_scale,
    fit_past_tasks,
)
from dre_jax.methods.hedged_prior.held_out import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import HYPOTHESES, Hypothesis, hypothesis_arrays
from dre_jax.methods.hedged_prior.improvement_weights import select_alone
from dre_jax.methods.hedged_prior.mixture import HedgedPriorParams, MixturePosterior, condition_mixture
from dre_jax.methods.hedged_prior.mixture_method import ConditionedMixture, MixtureMethod
from dre_jax.methods.hedged_prior.priors import LearnedPriorConfig, init
from dre_jax.methods.hedged_prior.task_features import FeatureScale, standardise_features
from dre_jax.methods.hedged_prior.training import PriorTraining, train_priors
from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.history import History


@dataclass(frozen=True, kw_only=True)
class HedgedPrior(MixtureMethod):
    """A mixture of learned priors under hypotheses about past tasks, and of processes of the task.

    Raises `ConfigError` if there is no hypothesis, or a number is out of range.
    """

    prior: LearnedPriorConfig = field(default_factory=LearnedPriorConfig)
    """Sizes of the learned priors."""
    training: PriorTraining = field(default_factory=PriorTraining)
    """Training of the learned priors."""
    hypotheses: tuple[Hypothesis, ...] = HYPOTHESES
    """Hypotheses of how the learned priors apply to a new task."""
    common: CommonProcessConfig = field(default_factory=CommonProcessConfig)
    """The process that a few past tasks have in common."""
    alone_every: NonNegative[int] = 5
    """The processes of the task alone select one trial of so many; 0 for none. See `select_alone`."""
    length_scales: LengthScaleConfig = field(default_factory=LengthScaleConfig)
    """Fits to past tasks, from which the training of the priors and the fit of the common process start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hypotheses:
            raise ConfigError("there must be at least one hypothesis, but got none")

    @on_one_thread
    def fit(self, meta: SearchSpace, key: Key[Array, ""]) -> HedgedPriorParams:
        """Trains the priors on the training tasks."""
        from scipy.special import logit  # importing it takes a tenth of a second

        tasks = meta.require_train_tasks()
        lengths = fit_length_scale_prior(self.length_scales, tasks, self.prior.response_scale)
        features = standardise_features(tasks)
        common = fit_past_tasks(self.common, tasks, lengths, self.prior.response_scale, features, self.training.folds)
        fit = train_priors(self.prior, self.training, tasks, key, lengths, common)
        log_odds = jnp.float32(logit(np.float64(fit.transfer_probability)))
        # Past tasks teach nothing about a hyperparameter that none of them varies; the trials may.
        is_fixed, values = meta.unvaried_columns()
        return HedgedPriorParams(
            fit.priors.fix_columns(is_fixed, values),
            hypothesis_arrays(self.hypotheses),
            log_odds,
            generic_prior(meta.n_columns),
            fit.steps,
            fit.held_out,
            None if common is None else common_prior(self.common, common, is_fixed, fit.common_share),
            None if common is None else feature_scale(common),
        )

    def for_task(self, params: HedgedPriorParams, features: Float[Array, " P"]) -> HedgedPriorParams:
        """Returns the parameters for a new task with features; unchanged if the past tasks have none."""
        if params.features is None or params.common is None:
            return params
        return params._replace(common=params.common.for_task(params.features.standardise(features)))

    def scaling_slopes(self, params: HedgedPriorParams) -> tuple[Float[Array, "D P"], Float[Array, "D P"]] | None:
        """Returns how far the best configuration moves with each feature, and standard errors."""
        if params.features is None or params.common is None:
            return None
        return params.features.slopes(jax.tree.map(lambda a: a[0], params.common.process.past))

    def abstract_params(self, n_columns: int) -> HedgedPriorParams:
        """Returns the shapes of what `fit` returns, with a common process of one past trial."""

        def params() -> HedgedPriorParams:
            number, real = jnp.int32(0), jnp.float32(0.0)
            keys = jax.random.split(jax.random.key(0), self.prior.members)
            lengths, row = generic_prior(n_columns), jnp.zeros((1, 1), jnp.float32)
            slopes, x = jnp.zeros((n_columns, 1), jnp.float32), jnp.zeros((1, n_columns), jnp.float32)
            trials = MultiTaskTrials(x, row[0], jnp.zeros(1, jnp.int32), row)
            hyperparameters = lengths.mean, lengths.mean, real, real, real, FeatureParams(slopes, row[0])
            common = CommonFit(trials, MultiTaskParams(*hyperparameters))
            return HedgedPriorParams(
                jax.vmap(lambda key: init(self.prior, n_columns, key, key))(keys),
                hypothesis_arrays(self.hypotheses),
                real,
                lengths,
                number,
                HeldOutEvidence(number, number, jnp.bool_(False), real, real),
                common_prior(self.common, common, np.zeros(n_columns, bool), 0.5),
                FeatureScale(row[0], row[0], slopes, row[0], row[0], row[0]),
            )

        return jax.eval_shape(params)

    def pad_columns(self, params: HedgedPriorParams, n_columns: int, width: int) -> HedgedPriorParams:
        """Returns parameters for tables with more columns; the results do not change where these are zero."""
        return params._replace(
            priors=params.priors.pad_columns(width),
            lengths=params.lengths.pad_columns(width),
            common=None if params.common is None else params.common.pad_columns(width),
            features=None if params.features is None else params.features.pad_columns(width),
        )

    def condition(self, params: HedgedPriorParams, history: History) -> tuple[MixturePosterior, ResponseTransform]:
        """Returns the mixture given a history, whose responses are scaled here, and their scale."""
        y, transform = scale_responses(self.prior.response_scale, history.response, history.where)
        noise_var = transform.noise_var(history.noise_var, history.response)
        trials = history.with_response(y, noise_var)
        return condition_mixture(self.processes, params, trials, self.prior.degrees_of_freedom), transform

    def improvement_log_weights(self, posterior: MixturePosterior) -> Float[Array, " components"]:
        """Returns the log weights of `select_alone`."""
        return select_alone(posterior, posterior.log_weight, self.alone_every)

    def past_weight(self, fitted_params: ConditionedMixture) -> Float[Array, ""]:
        """Returns the total weight of the components that use what past tasks taught."""
        return fitted_params.posterior.past_weight

    def explain_fit(self, params: HedgedPriorParams) -> Mapping[str, str]:
        """Returns the length of the training, the probability of transfer and the common process, with reasons."""
        from scipy.special import expit

        probability = float(expit(np.float64(params.transfer_log_odds)))
        reasons = {"training": explain_training(int(params.steps), probability, params.held_out)}
        if params.common is not None:
            share, rows = float(expit(np.float64(params.common.log_odds))), params.common.process.task.shape[-1]
            of_features = "" if params.features is None else " and of features of the tasks"
            reasons["common process"] = (
                f"of {rows} past trials{of_features}, with {share:.2f} of the transfer probability"
            )
        return reasons


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


ENTRIES = (
    Entry(
        name="hedged-prior",
        summary="learned priors of Gaussian processes, weighted by the evidence of the trials; this library's own",
        paper="this library",
        transfer=True,
        default=HedgedPrior(),
        companion="dre",
        free=("acquisition", "processes", "alone_every"),
        renamed={"common.interpolation": "processes.interpolation", "past_trial_weight": None},
        renamed_arrays={
            "params.hyperpriors.generic": "params.lengths",
            "params.hyperpriors.learned": None,
            "params.few_past_trials": None,
        },
    ),
)
