"""`hedged-prior` with one part of its training changed, for `dre-jax compare`.

``dre-jax compare --data bundled --split validation --out OUT --trials 40 --methods hedged-prior
scripts/training_variants.py:NoDecay scripts/training_variants.py:NoHyperprior ...``
"""

from dataclasses import dataclass

from dre_jax.methods.hedged_prior.hedged_prior import HedgedPrior
from dre_jax.methods.hedged_prior.training import PriorTraining


@dataclass(frozen=True, kw_only=True)
class NoDecay(HedgedPrior):
    """Without weight decay."""

    training: PriorTraining = PriorTraining(decay=0.0)


@dataclass(frozen=True, kw_only=True)
class NoHyperprior(HedgedPrior):
    """Without priors of variances and length scales."""

    training: PriorTraining = PriorTraining(hyperprior=0.0)


@dataclass(frozen=True, kw_only=True)
class AnyHistories(HedgedPrior):
    """Histories keep random rows, not the best ones."""

    training: PriorTraining = PriorTraining(histories="any")


@dataclass(frozen=True, kw_only=True)
class TwoFolds(HedgedPrior):
    """Two folds choose the number of steps."""

    training: PriorTraining = PriorTraining(folds=2)


@dataclass(frozen=True, kw_only=True)
class FewSteps(HedgedPrior):
    """150 steps for any past."""

    training: PriorTraining = PriorTraining(steps=150)


@dataclass(frozen=True, kw_only=True)
class FewTasks(HedgedPrior):
    """Three tasks a step."""

    training: PriorTraining = PriorTraining(tasks=3)
