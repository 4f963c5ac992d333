"""Deep kernel with landmark meta-features, learned end to end (Jomaa, Pineda Arango, Schmidt-Thieme, Grabocka 2021).

FSBO, the covariance of which knows what task it is at: k(phi([x, c]), phi([x', c])), where the context

    c = rho(mean over the observed (x_i, y_i) of psi([x_i, y_i]))

is what a deep set makes of the trials so far. The deep set is meta-trained with the rest, by the marginal likelihood of
a batch given a support of 1 to 20 other rows of the same task, and sees responses scaled to [0, 1] over that support.
"""

from __future__ import annotations

from dre_jax.methods.baselines.deep_kernel import DeepKernelConfig
from dre_jax.methods.baselines.fsbo import FREE, FewShotBO
from dre_jax.methods.entry import Entry
from dre_jax.optim.full_batch import HistoryFitConfig

DKLM = FewShotBO(model=DeepKernelConfig(rho=(32, 32, 16)), tuning=HistoryFitConfig(steps=0, learning_rate=1e-4))
"""FSBO's network behind the deep set of the ranking ensembles. It is not fine-tuned: the deep set fits it to the task,
and on the validation tasks gradient steps gained nothing (regret at 25 trials, the mean of two trainings: 0.033 and
0.010 on `svm` and `rbv2-xgboost`, 0.044 and 0.007 with FSBO's 50 steps)."""


ENTRIES = (
    Entry(
        name="dklm",
        summary="the same, not fine-tuned, whose kernel also sees a deep set of the trials",
        paper="Jomaa, Pineda Arango, Schmidt-Thieme and Grabocka 2021",
        transfer=True,
        default=DKLM,
        free=FREE,
    ),
)
