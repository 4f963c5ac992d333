"""Deep ranking ensemble as the prior of a Gaussian process; this library's own.

The meta-trained ensemble is not fine-tuned. Before every trial it sees the history through its deep sets and ranks all
configurations, and a Gaussian process takes these ranks for its prior: it corrects them where the trials disagree,
prefers the members that are right on this task, and where the ensemble is of no use becomes an ordinary one
(`dre_jax.methods.baselines.ranked_prior` has the equations). Expected improvement picks.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from dre_jax.gp.fit import GPConfig
from dre_jax.methods.baselines.ranked_prior import FITTING, Ranked, fit, ranked_posterior
from dre_jax.methods.baselines.shared import ByResponse, FromEnsemble
from dre_jax.methods.dre.ensemble import EnsembleParams, Support, check_columns, scores, scores_in_blocks
from dre_jax.methods.entry import Entry
from dre_jax.search.history import Candidates, History
from dre_jax.search.ranks import gaussian_ranks


@dataclass(frozen=True, kw_only=True)
class RankedGaussianProcess(FromEnsemble, ByResponse):
    """A Gaussian process around what a meta-trained ranking ensemble expects.

    Example:
      >>> RankedGaussianProcess(fitting=GPConfig(steps=50)).acquisition.kind
      'ei'
    """

    fitting: GPConfig = FITTING
    """Search for the Gaussian process' hyperparameters."""

    def predict(
        self, params: EnsembleParams, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Of the Gaussian process, which is fitted to the trials as the ensemble ranks them."""
        trials, new = self.ranked(params, history, candidates)
        return ranked_posterior(fit(self.fitting, trials, y, history.where), trials, y, history.where, new)

    def ranked(self, params: EnsembleParams, history: History, candidates: Candidates) -> tuple[Ranked, Ranked]:
        """Trials and candidates with the members' ranks of them, each among all of both."""
        check_columns(self.model, params, candidates.x.shape[-1])
        support = Support(history.x, history.response, history.where)
        # Apart, so that the runs of a task go on sharing its table.
        of_candidates = scores_in_blocks(self.model, params, support, candidates.x)
        of_history = scores(self.model, params, support, history.x)
        z = gaussian_ranks(
            jnp.concatenate([of_history, of_candidates], axis=1), jnp.concatenate([history.where, candidates.where])
        ).T
        n = history.where.shape[0]
        return Ranked(history.x, z[:n]), Ranked(candidates.x, z[n:])


ENTRIES = (
    Entry(
        name="dre-gp",
        summary="Gaussian process around what a deep ranking ensemble expects; this library's own",
        paper="this library",
        transfer=True,
        default=RankedGaussianProcess(),
        free=("fitting", "acquisition"),
        reads_checkpoints=True,
    ),
)
