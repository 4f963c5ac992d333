from dre_jax.tuning.optuna import DRESampler

__all__ = ["DRESampler"]
