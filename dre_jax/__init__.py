"""Deep Ranking Ensembles: hyperparameter optimisation that learns to rank from past tasks, in JAX."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dre_jax.data import SearchSpace, Task, list_spaces, load_space
from dre_jax.errors import CheckpointError, ConfigError, DataError, DreError, MissingExtraError
from dre_jax.methods import DRE, RandomSearch
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.trainer import meta_train
from dre_jax.methods.dre.training_config import FineTuneConfig, LossConfig, MetaTrainConfig
from dre_jax.search import AcquisitionConfig, run_tasks
from dre_jax.suggest import Suggester
from dre_jax.version import __version__

if TYPE_CHECKING:
    from dre_jax.functions import Measurement, optimize_functions
    from dre_jax.tuning import (
        Bool,
        Categorical,
        Choice,
        EngineConfig,
        Evaluated,
        Float,
        Int,
        Linear,
        Log,
        Optimizer,
        Optimizers,
        Past,
        Space,
        Surrogate,
        Trial,
        from_csv,
        from_frame,
        from_studies,
        past_of,
        read_space,
        write_space,
    )

__all__ = [
    "DRE",
    "AcquisitionConfig",
    "Bool",
    "Categorical",
    "CheckpointError",
    "Choice",
    "ConfigError",
    "DataError",
    "DreError",
    "EngineConfig",
    "Evaluated",
    "FineTuneConfig",
    "Float",
    "Int",
    "Linear",
    "Log",
    "LossConfig",
    "Measurement",
    "MetaTrainConfig",
    "MissingExtraError",
    "ModelConfig",
    "Optimizer",
    "Optimizers",
    "Past",
    "RandomSearch",
    "SearchSpace",
    "Space",
    "Suggester",
    "Surrogate",
    "Task",
    "Trial",
    "__version__",
    "from_csv",
    "from_frame",
    "from_studies",
    "list_spaces",
    "load_space",
    "meta_train",
    "optimize_functions",
    "past_of",
    "read_space",
    "run_tasks",
    "write_space",
]


def __getattr__(name: str) -> Any:
    # What is not imported above is in packages whose import takes time.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = "dre_jax.functions" if name in ("Measurement", "optimize_functions") else "dre_jax.tuning"
    value = globals()[name] = getattr(import_module(package), name)
    return value


def __dir__() -> list[str]:
    return __all__
