"""Optuna: a sampler, a pruner, search spaces as distributions, and studies from trials."""

from dre_jax.errors import MissingExtraError

try:
    from dre_jax.tuning.optuna.distributions import from_optuna, to_optuna
    from dre_jax.tuning.optuna.export import to_study
    from dre_jax.tuning.optuna.pruner import DREPruner
    from dre_jax.tuning.optuna.reports import report_cost, report_stderr
    from dre_jax.tuning.optuna.sampler import DRESampler
    from dre_jax.tuning.optuna.stopping import StopWhenGainBelow
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "optuna":
        raise
    raise MissingExtraError("optuna", "optuna") from error

__all__ = [
    "DREPruner",
    "DRESampler",
    "StopWhenGainBelow",
    "from_optuna",
    "report_cost",
    "report_stderr",
    "to_optuna",
    "to_study",
]
