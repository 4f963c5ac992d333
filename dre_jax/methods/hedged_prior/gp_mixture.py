"""Gaussian processes with fixed, fitted and drawn hyperparameters, averaged by evidence; without past tasks.

Few trials do not determine length scales: the most likely ones are often far too long or too short, and a search that
trusts them stops early or tries the edges. Here processes with fixed length scales, others that are fitted to the
trials, and others whose length scales, noise and warps are drawn are components of a mixture. The trials' evidence
weights them, the fitted ones by their predictions (`dre_jax.gp.task_processes`). The expected improvement is the
weighted sum of the components'. This is the mixture of `hedged_prior` without past tasks.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.checks import AboveTwo
from dre_jax.gp.length_scale_prior import generic_prior_like
from dre_jax.gp.response_scale import ResponseTransform, ScaledResponses, scale_by_evidence
from dre_jax.gp.task_processes import fixed_processes
from dre_jax.methods.entries.entry import Entry
from dre_jax.methods.hedged_prior.mixture import MixturePosterior, condition_mixture
from dre_jax.methods.hedged_prior.mixture_method import MixtureMethod
from dre_jax.search.history import History
from dre_jax.search.method import NoMetaLearning


@dataclass(frozen=True, kw_only=True)
class GaussianProcessMixture(NoMetaLearning, MixtureMethod):
    """A mixture of Gaussian processes, without past tasks.

    Raises:
      ConfigError: if ``degrees_of_freedom`` is not above 2.

    Example:
      >>> GaussianProcessMixture().processes.lengthscales
      (0.1, 0.25, 0.6)
    """

    degrees_of_freedom: AboveTwo[float] = 5.0
    """nu > 2 of the variance scale of the task; see `dre_jax.gp.student`."""
    linear_log_odds: float = 2.0
    """Log-odds, before the first trial, of a linear response scale; the other one compresses responses below the
    median. The evidence of the fixed processes chooses one; see `scale_by_evidence`."""

    def condition(self, params: None, history: History) -> tuple[MixturePosterior, ResponseTransform]:
        """Returns the processes given the history, on the response scale of higher evidence, and this scale."""
        where = history.where
        history = history._replace(x=jnp.where(where[:, None], history.x, 0.0))
        fixed = fixed_processes(self.processes, generic_prior_like(history.x))

        def trials_of(scaled: ScaledResponses) -> History:
            noise_var = scaled.transform.noise_var(history.noise_var, history.response)
            return history.with_response(scaled.y, noise_var)

        def log_density(scaled: ScaledResponses) -> Array:
            trials = trials_of(scaled)
            densities = jax.vmap(lambda process: process.log_density(trials, self.degrees_of_freedom))(fixed)
            return jax.nn.logsumexp(densities)

        scaled = scale_by_evidence(history.response, where, log_density, self.linear_log_odds)
        posterior = condition_mixture(self.processes, None, trials_of(scaled), self.degrees_of_freedom)
        return posterior, scaled.transform


ENTRIES = (
    Entry(
        name="gp-mixture",
        summary="Gaussian processes of fixed, fitted and drawn length scales, averaged by evidence; this library's own",
        paper="this library",
        default=GaussianProcessMixture(),
    ),
)
