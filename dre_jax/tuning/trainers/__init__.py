"""Callbacks of trainers: they report each epoch to a trial, and end the training where the trial says.

The library imports a trainer only when its callback is imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dre_jax.tuning.trainers.epochs import report_epoch

if TYPE_CHECKING:
    from dre_jax.tuning.trainers.keras import KerasReport
    from dre_jax.tuning.trainers.lightgbm import LightGBMReport
    from dre_jax.tuning.trainers.lightning import LightningReport
    from dre_jax.tuning.trainers.transformers import TransformersReport
    from dre_jax.tuning.trainers.xgboost import XGBoostReport

__all__ = ["KerasReport", "LightGBMReport", "LightningReport", "TransformersReport", "XGBoostReport", "report_epoch"]


def __getattr__(name: str) -> Any:
    # A trainer takes seconds to import, and most users have only one.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{name.removesuffix('Report').lower()}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return __all__
