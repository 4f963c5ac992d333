"""Weights of hypotheses from tasks that nothing was learned from (empirical Bayes; Robbins 1956).

With E_ahs the evidence of history s of task a under hypothesis h (`hypotheses.log_evidence`), the weights are where

    sum_a 1/S sum_s log sum_h pi_h E_ahs + C sum_h pi^0_h log pi_h

is highest: the expectation-maximisation algorithm's steps count every task once, and the weights pi^0 that were there
before as C tasks more.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.methods.hedged_prior.folds import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import Believed
from dre_jax.methods.hedged_prior.prior import LearnedPrior
from dre_jax.methods.hedged_prior.task_process import TaskHyperpriors

Floats = npt.NDArray[np.float64]
_STEPS = 200


class Voted(NamedTuple):
    """Evidence of the validation tasks."""

    tasks: Array
    """i32: how many were asked, 0 for none."""
    gain: Array
    """How much less regret runs on them have with the weights that they make likely, the mean over tasks."""
    error: Array
    """Its standard error."""
    taken: Array
    """bool: whether the weights are theirs."""


def told(tasks: int, gain: float = 0.0, error: float = 0.0, *, taken: bool = False) -> Voted:
    """`Voted` as arrays.

    Example:
      >>> bool(told(3).taken)
      False
    """
    return Voted(jnp.int32(tasks), jnp.float32(gain), jnp.float32(error), jnp.bool_(taken))


class WeighedPriors(NamedTuple):
    """Learned priors, and what may be true of a new task."""

    priors: LearnedPrior
    """Of J members, J in front of each array."""
    by: Believed
    """The hypotheses, with the weights of this search space."""
    voted: Voted
    """Evidence of the validation tasks on those weights."""
    trust: Array
    """Scalar: log-odds, before its first trial, that a task is explained by the priors and not by itself."""
    hyperpriors: TaskHyperpriors
    """Of the processes that know a task by itself."""
    steps: Array
    """i32: how long the priors were trained."""
    held_out: HeldOutEvidence
    """Why so long, and why they are trusted so much."""


def most_likely(before: Floats, evidence: Floats, strength: float) -> Floats:
    """pi, f64[H]: pi^0 f64[H], log E f64[A, S, H] up to a term for each history, and C.

    Example:
      >>> found = most_likely(np.array([0.5, 0.5]), np.log(np.array([[[0.9, 0.1]], [[0.8, 0.2]]])), 2.0)
      >>> found.round(2).tolist()
      [0.72, 0.28]
    """
    from scipy.special import logsumexp  # a tenth of a second to import, which few need

    found = before
    for _ in range(_STEPS):
        log_share = np.log(found) + evidence
        share = np.exp(log_share - logsumexp(log_share, axis=-1, keepdims=True))
        found = (strength * before + share.mean(axis=1).sum(axis=0)) / (strength + len(evidence))
    return found
