"""The studies of the library's own methods."""

from __future__ import annotations

from dataclasses import replace

from ablations.study import Study
from dre_jax.methods import DRE
from dre_jax.methods.committee import Committee
from dre_jax.methods.dre_gp import RankedGaussianProcess
from dre_jax.methods.fsbo import FewShotBO
from dre_jax.methods.gcp import GaussianCopulaProcess
from dre_jax.methods.gp import GaussianProcess
from dre_jax.methods.taf import TAF
from dre_jax.search.acquisition import AcquisitionConfig
from dre_jax.search.method import Method
from dre_jax.training import FineTuneConfig

_PRIOR = RankedGaussianProcess()
_WHO: dict[str, Method] = {
    "dre-gp": _PRIOR,
    "fsbo": FewShotBO(),
    "gcp": GaussianCopulaProcess(),
    "dre": DRE(),
    "taf": TAF(),
}


def _committee(*names: str) -> Committee:
    return Committee(members=tuple(_WHO[name] for name in names))


def _votes(*committees: tuple[str, ...]) -> dict[str, Method]:
    return {" + ".join(names): _committee(*names) if len(names) > 1 else _WHO[names[0]] for names in committees}


OWN: dict[str, Study] = {
    "prior": Study(
        question="What does the ensemble add as the prior of a Gaussian process?",
        papers="nothing, it is the library's own",
        variants={
            "dre-gp": _PRIOR,
            "dre-gp, confidence bound": replace(_PRIOR, acquisition=AcquisitionConfig(kind="lcb")),
            "the ensemble alone (dre-no-finetune)": DRE(fine_tuning=FineTuneConfig(epochs=0)),
            "fine-tuned (dre)": DRE(),
            "the process alone (gp)": GaussianProcess(),
        },
        trials=50,
    ),
    "committee": Study(
        question="Who should vote?",
        papers="nothing, it is the library's own",
        variants=_votes(
            ("dre-gp", "fsbo"),
            ("dre-gp",),
            ("fsbo",),
            ("gcp",),
            ("dre", "fsbo"),
            ("gcp", "fsbo"),
            ("dre-gp", "gcp"),
            ("dre-gp", "gcp", "fsbo"),
            ("dre", "gcp", "fsbo"),
            ("dre-gp", "taf", "fsbo"),
        ),
        trials=50,
    ),
}
