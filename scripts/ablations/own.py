"""The studies of the library's own methods."""

from __future__ import annotations

from dataclasses import replace

from ablations.studies import Study
from dre_jax.gp.fit import GPConfig
from dre_jax.methods import DRE, find
from dre_jax.methods.baselines.committee import Committee
from dre_jax.methods.baselines.dre_gp import RankedGaussianProcess
from dre_jax.methods.baselines.fsbo import FewShotBO
from dre_jax.methods.baselines.gcp import GaussianCopulaProcess
from dre_jax.methods.baselines.gp import GaussianProcess
from dre_jax.methods.dre.training_config import FineTuneConfig
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis
from dre_jax.methods.hedged_prior.method import HedgedPrior
from dre_jax.methods.hedged_prior.prior import LearnedPriorConfig
from dre_jax.methods.hedged_prior.training import PriorTraining
from dre_jax.search.acquisition import AcquisitionConfig
from dre_jax.search.method import Method

_PRIOR = RankedGaussianProcess()
_HEDGED = HedgedPrior()
_UNCOMMON = Hypothesis(weight=1.0, slope=0.0, doubt=0.0)
_APART = Hypothesis(weight=1.0, deep=0.0, plain=20.0)
_WHO: dict[str, Method] = {
    "dre-gp": _PRIOR,
    "fsbo": FewShotBO(),
    "gcp": GaussianCopulaProcess(),
    "dre": DRE(),
}


def _committee(*names: str) -> Committee:
    return Committee(members=tuple(_WHO[name] for name in names))


def _votes(*committees: tuple[str, ...]) -> dict[str, Method]:
    return {" + ".join(names): _committee(*names) if len(names) > 1 else _WHO[names[0]] for names in committees}


def _from_long_lengths(rate: float) -> GaussianProcess:
    return GaussianProcess(fitting=GPConfig(learning_rate=rate, first_lengths=(0.5, 0.5)))


OWN: dict[str, Study] = {
    "fit": Study(
        question="From which length scales does the fit of a Gaussian process start, and how fast does it go?",
        papers="nothing",
        variants={
            "gp: 0.08 and 0.5 sqrt(D), rate 0.2": GaussianProcess(),
            "gp: 0.5 sqrt(D), rate 0.2": _from_long_lengths(0.2),
            "gp: 0.5 sqrt(D), rate 0.1": _from_long_lengths(0.1),
        },
        found="Late in a run one search that starts from short length scales, and longer steps, have less regret: "
        "0.0265 at 25 trials and 0.0129 at 50, against 0.0343 and 0.0216. Early there is no difference.",
        trials=50,
    ),
    "prior": Study(
        question="What does the ensemble add as the prior of a Gaussian process?",
        papers="nothing, it is the library's own",
        variants={
            "dre-gp": _PRIOR,
            "dre-gp, fitted as gp": replace(_PRIOR, fitting=GPConfig()),
            "dre-gp, confidence bound": replace(_PRIOR, acquisition=AcquisitionConfig(kind="lcb")),
            "the ensemble alone (dre-no-finetune)": DRE(fine_tuning=FineTuneConfig(epochs=0)),
            "fine-tuned (dre)": DRE(),
            "the process alone (gp)": GaussianProcess(),
        },
        trials=50,
    ),
    "hedge": Study(
        question="What is each part of the recommended method worth?",
        papers="nothing, it is the library's own",
        variants={
            "hedged-prior": _HEDGED,
            "one hypothesis: as was learned": replace(_HEDGED, hypotheses=(Hypothesis(weight=1.0),)),
            "without what past tasks have in common": replace(_HEDGED, hypotheses=(_UNCOMMON,)),
            "without what they know together": replace(_HEDGED, hypotheses=(_APART,)),
            "one prior": replace(_HEDGED, prior=LearnedPriorConfig(members=1)),
            "priors of any rows": replace(_HEDGED, training=PriorTraining(histories="any")),
            "committee": Committee(),
        },
        trials=50,
    ),
    "rivals": Study(
        question="Is the recommended method ahead of the best of the others?",
        papers="nothing, it is the library's own",
        variants={name: find(name).make() for name in ("hedged-prior", "dre", "committee", "gcp", "taf")},
        trials=50,
    ),
    "committee": Study(
        question="Who should vote?",
        papers="nothing, it is the library's own",
        variants=_votes(
            ("dre-gp", "fsbo"),
            ("dre-gp",),
            ("fsbo",),
            ("dre", "fsbo"),
            ("gcp", "fsbo"),
            ("dre-gp", "gcp", "fsbo"),
        ),
        trials=50,
    ),
}
