"""`hedged-prior` with one part of its training changed, for `dre-jax compare`.

``dre-jax compare --data bundled --split validation --out OUT --trials 40 --methods hedged-prior
scripts/training_variants.py:NO_DECAY scripts/training_variants.py:NO_HYPERPRIOR ...``
"""

from dre_jax.methods.hedged_prior.hedged_prior import HedgedPrior
from dre_jax.methods.hedged_prior.training import PriorTraining

NO_DECAY = HedgedPrior(training=PriorTraining(decay=0.0))
NO_HYPERPRIOR = HedgedPrior(training=PriorTraining(hyperprior=0.0))
ANY_HISTORIES = HedgedPrior(training=PriorTraining(histories="any"))
"""Histories keep random rows, not the best ones."""
TWO_FOLDS = HedgedPrior(training=PriorTraining(folds=2))
FEW_STEPS = HedgedPrior(training=PriorTraining(steps=150))
FEW_TASKS = HedgedPrior(training=PriorTraining(tasks=3))
"""In each step."""
