"""The ranking ensemble inside of a method: the method itself, or a member of a committee."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.search.method import Method, members_of


class EnsembleConfig(NamedTuple):
    """The configuration of a ranking ensemble inside of a method."""

    member: int | None
    """Which member of a committee has it; None where the method itself does."""
    model: ModelConfig
    training: MetaTrainConfig

    @property
    def prefix(self) -> str:
        """The path of the fields of what has the ensemble."""
        return "" if self.member is None else f"members.{self.member}."

    def replace(self, method: Any, **changes: Any) -> Any:
        """Returns a method with other values of fields of what has the ensemble."""
        if self.member is None:
            return dataclasses.replace(method, **changes)
        members = list(method.members)
        members[self.member] = dataclasses.replace(members[self.member], **changes)
        return dataclasses.replace(method, members=tuple(members))

    def select(self, params: Any) -> Any:
        """Returns the ensemble's part of the method's parameters."""
        return params if self.member is None else params[self.member]


def find_ensemble(method: Method) -> EnsembleConfig | None:
    """Returns the ranking ensemble that a method trains: its own, or that of the first member of it that has one.

    Example:
      >>> from dre_jax.methods import METHODS
      >>> ensemble = find_ensemble(METHODS["committee"].make())
      >>> ensemble.member, ensemble.model.members
      (0, 10)
    """
    for member, owner in ((None, method), *enumerate(members_of(method))):
        model, training = getattr(owner, "model", None), getattr(owner, "training", None)
        learns = getattr(owner, "transfer", True)
        if learns and isinstance(model, ModelConfig) and isinstance(training, MetaTrainConfig):
            return EnsembleConfig(member, model, training)
    return None
