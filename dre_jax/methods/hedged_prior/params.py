"""The parameters of the method."""

from __future__ import annotations

from typing import NamedTuple

from jax import Array

from dre_jax.methods.hedged_prior.common_process import CommonPrior
from dre_jax.methods.hedged_prior.folds import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import HypothesisArrays
from dre_jax.methods.hedged_prior.prior import LearnedPrior
from dre_jax.methods.hedged_prior.task_process import TaskHyperpriors


class HedgedPriorParams(NamedTuple):
    """Parameters of `HedgedPrior`: learned priors, hypotheses and hyperpriors."""

    priors: LearnedPrior
    """J members, J in front of each array."""
    hypotheses: HypothesisArrays
    """Hypotheses with their weights."""
    transfer_log_odds: Array
    """Scalar: log-odds, before the first trial, of the learned priors against the processes of the task."""
    hyperpriors: TaskHyperpriors
    """Priors of the hyperparameters of the processes of the task."""
    steps: Array
    """i32: number of training steps of the priors."""
    held_out: HeldOutEvidence
    """Held-out evidence that chose the number of steps and the probability of transfer."""
    common: CommonPrior | None = None
    """The process that few past tasks have in common."""
