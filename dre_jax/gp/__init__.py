"""Gaussian processes that methods share: regression, fits, kernels, factorisations, response scales."""

from dre_jax.gp.cholesky import factor
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import GPParams, log_marginal_likelihood, posterior
from dre_jax.gp.response_scale import Standard, best_of, standardise

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
