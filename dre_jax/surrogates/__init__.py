"""Surrogates that predict responses: Gaussian processes, their kernels, networks, and scales of responses."""

from dre_jax.surrogates.cholesky import factor
from dre_jax.surrogates.gp import GPParams, log_marginal_likelihood, posterior
from dre_jax.surrogates.gp_fit import GPConfig, fit_gp
from dre_jax.surrogates.standard import Standard, best_of, standardise

__all__ = [
    "GPConfig",
    "GPParams",
    "Standard",
    "best_of",
    "factor",
    "fit_gp",
    "log_marginal_likelihood",
    "posterior",
    "standardise",
]
