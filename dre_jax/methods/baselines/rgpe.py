"""Ranking-weighted Gaussian process ensemble (Feurer, Letham and Bakshy 2018).

The Gaussian processes of all past tasks and of the new task predict together,

    mu(x) = sum_i w_i mu_i(x),     sigma^2(x) = sum_i w_i^2 sigma_i^2(x).

The weights measure how well each process orders the trials so far. S joint samples at the trials are drawn from the
posterior of every past task, and S from each leave-one-out process of the new task. Of the latter, only pairs with the
omitted trial count. w_i is the share of the samples in which i has the fewest misranked pairs (equation 3). A past task
is left out if the median of its losses is above the 95th percentile of the losses of the new task, so that many poor
models do not dilute the weights.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.fit import fit_gp
from dre_jax.gp.regression import GPParams, add_noise, gp_posterior, matmul, sample_leave_one_out
from dre_jax.gp.source_processes import SourceProcesses, joint_posterior, predict_sources
from dre_jax.methods.baselines.shared import ByResponse, FromSources
from dre_jax.methods.baselines.source_processes import misranked_share, misranked_share_left_out
from dre_jax.methods.entries.entry import Entry
from dre_jax.search.history import Candidates, History


@dataclass(frozen=True, kw_only=True)
class RGPE(FromSources, ByResponse):
    """Gaussian processes of past tasks and of the task at hand, weighted by how well they rank the trials."""

    samples: int = 100
    """S"""
    guard: float = 0.95
    """Percentile of the losses of the task at hand that a past task's median must not exceed."""

    def predict(
        self, params: SourceProcesses, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the weighted predictions of all Gaussian processes."""
        process = fit_gp(self.fitting, history.x, y, history.where)
        losses = self.losses(params, process, history, y, key)
        weights = ranking_weights(losses, self.guard)
        means, variances = predict_sources(params, candidates.x)
        process_mean, process_variance = gp_posterior(process, history.x, y, history.where, candidates.x)
        mean = matmul(weights[:-1], means) + weights[-1] * process_mean
        return mean, matmul(weights[:-1] ** 2, variances) + weights[-1] ** 2 * process_variance

    def losses(self, params: SourceProcesses, process: GPParams, history: History, y: Array, key: Array) -> Array:
        """Samples shares of misranked pairs, f32[sources + 1, S]; the task at hand is last."""
        source_key, process_key = jax.random.split(key)
        n, n_sources = y.shape[0], params.x.shape[0]
        # Slots in front, so that slot j draws the same for any capacity.
        noise = jax.random.normal(source_key, (n, n_sources, self.samples), y.dtype)

        def sample_share(source: SourceProcesses, noise: Array) -> Array:
            mean, matrix = joint_posterior(source, history.x)
            lower, _ = safe_cholesky(
                add_noise(matrix, jnp.zeros((), y.dtype), history.where), jnp.exp(source.params.log_scale)
            )
            return misranked_share((mean[:, None] + matmul(lower, noise)).T, history.level, history.where)

        source_shares = jax.vmap(sample_share, in_axes=(0, 1))(params, noise)
        signal, noises = jax.random.normal(process_key, (n, 2, self.samples), y.dtype).swapaxes(0, 1)
        samples = sample_leave_one_out(process, history.x, y, history.where, signal, noises)
        return jnp.concatenate([source_shares, misranked_share_left_out(samples, history.level, history.where)[None]])


def ranking_weights(losses: Array, guard: float) -> Array:
    """Returns the share of samples in which each process has the least loss, f[M], with the sum 1.

    Of equal losses, the new task wins; past tasks share the sample equally. Losses are f[M, S], those of the new task
    last; the percentile is in [0, 1].
    """
    dilutes = jnp.median(losses, axis=1) > jnp.quantile(losses[-1], guard)
    dilutes = dilutes.at[-1].set(False)
    usable_losses = jnp.where(dilutes[:, None], jnp.inf, losses)
    least = (usable_losses == jnp.min(usable_losses, axis=0)[None]).astype(losses.dtype)
    new_task_wins = jnp.zeros_like(least).at[-1].set(1.0)
    wins = jnp.where(least[-1:] > 0, new_task_wins, least / jnp.sum(least, axis=0)[None])
    return jnp.mean(wins, axis=1)


ENTRIES = (
    Entry(
        name="rgpe",
        summary="Gaussian processes of past tasks, weighted by how well they rank the trials",
        paper="Feurer, Letham and Bakshy 2018",
        transfer=True,
        default=RGPE(),
        free=("acquisition", "samples", "guard"),
    ),
)
