"""Deep Ranking Ensembles: hyperparameter optimisation that learns to rank from past tasks, in JAX."""

from dre_jax.errors import CheckpointError, ConfigError, DataError, DreError, MissingExtraError

__version__ = "0.1.0"

__all__ = ["CheckpointError", "ConfigError", "DataError", "DreError", "MissingExtraError", "__version__"]
