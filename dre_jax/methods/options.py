"""What a user can set of a method."""

from __future__ import annotations

from dataclasses import dataclass

from dre_jax.model import ModelConfig
from dre_jax.search.acquisition import AcquisitionConfig, Kind


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
