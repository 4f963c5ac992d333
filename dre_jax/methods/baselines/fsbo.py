"""Few-shot Bayesian optimisation (Wistuba and Grabocka 2021).

A deep kernel k(phi(x), phi(x')) is meta-trained: its network and hyperparameters maximise the marginal likelihood of
batches of the past tasks, whose responses are put on random scales (equations 8 to 11, Algorithm 1). Before every trial
it is fine-tuned on the history by the same likelihood, each time anew from the meta-trained parameters, Adam's rate
falling along a cosine (the thesis, chapter 4, on both). Expected improvement picks.

The paper's network is 128-128 with a squared-exponential kernel (see `DeepKernelConfig.kernel`), a rate of 0.001 and
batches of 50; HPO-B's 4 x 32 with a Matern 5/2, the default here. `start_configurations` chooses the first
configurations by the paper's measure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.data.tasks import build_table
from dre_jax.gp.response_scale import best_response, standardise
from dre_jax.methods.baselines.deep_kernel import DeepKernel, DeepKernelConfig, deep_kernel_posterior, tune
from dre_jax.methods.baselines.meta_kernel import KernelTraining, meta_train
from dre_jax.methods.entry import Entry
from dre_jax.optim.full_batch import HistoryFitConfig
from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, History

FREE = ("tuning", "reuse", "acquisition")
"""Fields that meta-training does not depend on."""
_TUNING = HistoryFitConfig(steps=50, learning_rate=1e-4)


@dataclass(frozen=True, kw_only=True)
class FewShotBO:
    """A deep kernel, meta-trained on past tasks and fine-tuned before every trial.

    Example:
      >>> FewShotBO(tuning=HistoryFitConfig(steps=500, learning_rate=0.03)).reuse
      False
    """

    model: DeepKernelConfig = field(default_factory=DeepKernelConfig)
    """Sizes."""
    meta_training: KernelTraining = field(default_factory=KernelTraining)
    """Training by `fit`."""
    tuning: HistoryFitConfig = _TUNING
    """Fine-tuning, before every trial: the paper's few epochs. The thesis takes 500 steps at 0.03, HPO-B's code up to
    10,000 at 0.001; on the validation tasks more than this forgot what was learned (regret at 25 trials of 40 runs on
    `svm` and 70 on `rbv2-xgboost`: 0.027 and 0.006 without, 0.029 and 0.007 so, 0.037 and 0.009 with 100 at 0.0003)."""
    reuse: bool = False
    """Continue from the parameters of the last trial, instead of starting anew (the thesis on restarts)."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""

    @on_one_thread
    def fit(self, meta: SearchSpace, key: Array) -> DeepKernel:
        """Meta-trains on a search space's training tasks (Algorithm 1)."""
        return meta_train(self.model, self.meta_training, build_table(meta.require_train_tasks()), key)[0]

    def acquire(self, params: DeepKernel, history: History, candidates: Candidates, key: Array) -> Array:
        """Fine-tunes, and values the candidates by the predictions."""
        return self.advance(params, history, candidates, key)[0]

    @property
    def stateful(self) -> bool:
        """Returns whether a trial continues from the parameters of the last."""
        return self.reuse and self.tuning.steps > 0

    def begin(self, params: DeepKernel, n_columns: int, key: Array) -> DeepKernel:
        """Parameters that fine-tuning starts from."""
        return params

    def advance(
        self, state: DeepKernel, history: History, candidates: Candidates, key: Array
    ) -> tuple[Array, DeepKernel]:
        """Acquisition values after fine-tuning from the given parameters, and the fine-tuned ones."""
        y = standardise(history.response, history.where).y
        process = tune(self.tuning, self.model, state, history.x, y, history.where)
        mean, variance = deep_kernel_posterior(self.model, process, history.x, y, history.where, candidates.x)
        values = acquire_by_response(self.acquisition, mean, jnp.sqrt(variance), best_response(y, history.where))
        return values, process


ENTRIES = (
    Entry(
        name="fsbo",
        summary="deep-kernel Gaussian process, meta-trained and fine-tuned before every trial",
        paper="Wistuba and Grabocka 2021",
        transfer=True,
        default=FewShotBO(),
        free=FREE,
    ),
)
