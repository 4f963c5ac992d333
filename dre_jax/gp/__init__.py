"""Gaussian processes: kernels, factorisations, regression, classification, fits, response scales.

`task_process` has the process of one task with its functions `condition`, `predict`, `sample` and `log_density`,
`task_processes` a mixture of fixed, fitted and drawn ones, `multi_task` the process that several tasks share, and
`source_processes` one process for each past task.
"""

from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import GPParams, gp_posterior, log_marginal_likelihood
from dre_jax.gp.response_scale import StandardisedResponses, best_response, standardise

__all__ = [
    "GPConfig",
    "GPParams",
    "StandardisedResponses",
    "best_response",
    "fit_gp",
    "gp_posterior",
    "log_marginal_likelihood",
    "safe_cholesky",
    "standardise",
]
