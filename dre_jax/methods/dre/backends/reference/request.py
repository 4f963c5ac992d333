"""The request to a backend: the lists of training steps, and their static sizes."""

from collections.abc import Container
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.losses import RankedList
from dre_jax.methods.dre.model.model_config import ModelConfig


class SampledLists(NamedTuple):
    """Sampled lists, as row numbers in the table; batch dimensions may stand in front."""

    support: Array
    """i32[..., K]"""
    support_where: Array
    """bool[..., K]"""
    query: Array
    """i32[..., Q], in the order of relevance."""
    ranked_list: RankedList
    """[..., Q]"""


class StepRequest(NamedTuple):
    """Training steps, as far as they are known when a program is traced."""

    model: ModelConfig
    loss: str
    """Its name in `dre_jax.losses.LOSSES`."""
    columns: int
    rows: int
    """Rows of the table that row numbers refer to."""
    support: int
    """Slots of a list's support, and of its query."""
    query: int
    lists_per_step: int
    own_lists: bool
    """Whether each member has lists of its own; otherwise all learn from the same."""
    params_only: bool
    """Whether only the parameters of the result are used, and the moments begin at zero, as in fine-tuning."""
    is_averaged: bool = False
    """Whether devices with other lists of the same members average their gradients at every step."""
    dtype: Any = jnp.float32

    def why_no_backend(self, losses: Container[str]) -> str | None:
        """Returns why no backend takes the steps, in a few words; None if one may. Unknown losses are a reason too."""
        if self.loss not in losses:
            return f"the loss {self.loss} is not supported"
        if self.dtype != jnp.float32:
            return "numbers are not float32"
        if self.is_averaged:
            return "devices share the lists of a member"
        if self.model.context == "shared" and self.own_lists:
            return "members share a deep set, but not their lists"
        return None
