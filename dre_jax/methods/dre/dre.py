"""Deep Ranking Ensembles: the method of the paper (Khazi, Pineda Arango and Grabocka, ICLR 2023)."""

from dataclasses import dataclass, field
from functools import partial

import jax
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.methods.dre.model.ensemble import (
    EnsembleParams,
    Support,
    check_columns,
    init,
    pad_ensemble,
    scores,
    scores_in_blocks,
)
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.trainer import meta_train
from dre_jax.methods.dre.training_config import FineTuneConfig, MetaTrainConfig
from dre_jax.search.acquisition import AcquisitionConfig, acquire_by_rank
from dre_jax.search.history import Candidates, History, sort_history
from dre_jax.search.method import Capabilities


@dataclass(frozen=True, kw_only=True)
class DRE:
    """Meta-trained scorers, fine-tuned on the history before every trial; an acquisition over their ranks picks.

    Example:
      >>> DRE(fine_tuning=FineTuneConfig(epochs=0))  # doctest: +ELLIPSIS
      DRE(...)
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    """Sizes of the ensemble."""
    training: MetaTrainConfig = field(default_factory=MetaTrainConfig)
    """Its meta-training in `fit`."""
    fine_tuning: FineTuneConfig = field(default_factory=FineTuneConfig)
    """Fine-tuning, before every trial."""
    acquisition: AcquisitionConfig = field(default_factory=AcquisitionConfig)
    """The acquisition function."""
    transfer: bool = True
    """Start from meta-trained parameters; False draws random ones at every trial (DRE-RI)."""

    def fit(self, meta: SearchSpace, key: Array) -> EnsembleParams | None:
        """Meta-trains on a search space's training tasks (Algorithm 1), unless it starts from random parameters."""
        return meta_train(meta, self.model, self.training, key=key).params if self.transfer else None

    def acquire(self, params: EnsembleParams | None, history: History, candidates: Candidates, key: Array) -> Array:
        """Fine-tunes, and values the candidates by their ranks (the paper, Algorithm 2, lines 3 and 4)."""
        return self.score_candidates(self.fit_history(params, history, key), history, candidates)

    @property
    def capabilities(self) -> Capabilities:
        """Returns the capabilities as configured; see `dre_jax.search.method.Capabilities`."""
        return Capabilities(transfer=self.transfer)

    def abstract_params(self, n_columns: int) -> EnsembleParams | None:
        """Returns the shapes of the parameters; None if the method starts from random ones."""
        return jax.eval_shape(partial(init, self.model, n_columns), jax.random.key(0)) if self.transfer else None

    def pad_columns(self, params: EnsembleParams, n_columns: int, width: int) -> EnsembleParams:
        """Returns `dre_jax.methods.dre.model.ensemble.pad_ensemble` of the parameters."""
        return pad_ensemble(params, n_columns, width)

    def fit_history(self, params: EnsembleParams | None, history: History, key: Array) -> EnsembleParams:
        """Returns the parameters fine-tuned from meta-trained ones, or from random ones.

        Raises:
          DataError: if they were trained on another number of columns.
        """
        tune_key, start_key = jax.random.split(key)
        return self._tune(params, history, tune_key, start_key)

    def _tune(
        self, params: EnsembleParams | None, history: History, tune_key: Array, start_key: Array
    ) -> EnsembleParams:
        n_columns = history.x.shape[-1]
        if params is None:
            params = init(self.model, n_columns, start_key)
        check_columns(self.model, params, n_columns)
        return fine_tune(self.model, self.fine_tuning, params, *sort_history(history)[:4], tune_key)

    def score_candidates(self, fitted_params: EnsembleParams, history: History, candidates: Candidates) -> Array:
        """Returns the acquisition values of candidates for fine-tuned parameters."""
        history = sort_history(history)
        support = Support(history.x, history.response, history.where)
        # The parts stay apart, so that the runs of a task share its table.
        values = scores_in_blocks(self.model, fitted_params, support, candidates.x)
        best = scores(self.model, fitted_params, support, history.x[:1])[:, 0]
        return acquire_by_rank(self.acquisition, values, candidates.where, best, history.where[0])

    def sample_posterior(
        self, params: EnsembleParams | None, history: History, candidates: Candidates, key: Array
    ) -> Array:
        """Returns the scores of one random fine-tuned member, for parallel trials."""
        tune_key, start_key, member_key = jax.random.split(key, 3)
        fitted_params = self._tune(params, history, tune_key, start_key)
        history = sort_history(history)
        support = Support(history.x, history.response, history.where)
        values = scores_in_blocks(self.model, fitted_params, support, candidates.x)
        return values[jax.random.randint(member_key, (), 0, len(values))]
