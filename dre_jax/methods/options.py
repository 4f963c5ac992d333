"""What a user can set of a method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dre_jax.model import ModelConfig
from dre_jax.search.acquisition import AcquisitionConfig, Kind

Fitting = TypeVar("Fitting")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user can set of a method; None leaves the method's own value."""

    model: ModelConfig | None = None
    """Sizes of a ranking ensemble: the checkpoint's, where there is one."""
    epochs: int | None = None
    """Steps of fitting or fine-tuning before every trial."""
    learning_rate: float | None = None
    """Their learning rate."""
    acquisition: Kind | None = None
    """Acquisition function."""

    def acquisition_or(self, own: AcquisitionConfig) -> AcquisitionConfig:
        """The acquisition function asked for, or the method's own."""
        return own if self.acquisition is None else AcquisitionConfig(kind=self.acquisition)

    def fitting_or(self, own: Fitting) -> Fitting:
        """A configuration with the fields `steps` and `learning_rate`, with what is asked for of them."""
        asked = {"steps": self.epochs, "learning_rate": self.learning_rate}
        changed: Any = own
        return replace(changed, **{name: value for name, value in asked.items() if value is not None})
