"""Deep Ranking Ensembles: hyperparameter optimisation that learns to rank from past tasks, in JAX."""

from dre_jax.data import SearchSpace, Task, list_spaces, load_space
from dre_jax.errors import CheckpointError, ConfigError, DataError, DreError, MissingExtraError
from dre_jax.methods import DRE, RandomSearch
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.trainer import meta_train
from dre_jax.methods.dre.training_config import FineTuneConfig, LossConfig, MetaTrainConfig
from dre_jax.search import AcquisitionConfig, Suggester, run_tasks

__version__ = "0.1.0"

__all__ = [
    "DRE",
    "AcquisitionConfig",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "DreError",
    "FineTuneConfig",
    "LossConfig",
    "MetaTrainConfig",
    "MissingExtraError",
    "ModelConfig",
    "RandomSearch",
    "SearchSpace",
    "Suggester",
    "Task",
    "__version__",
    "list_spaces",
    "load_space",
    "meta_train",
    "run_tasks",
]
