"""What a backend is asked to compute: the static sizes of training steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from dre_jax.methods.dre.model_config import ModelConfig


class StepRequest(NamedTuple):
    """Training steps, by all that is known when a program is traced."""

    model: ModelConfig
    loss: str
    """Its name in `dre_jax.losses.LOSSES`."""
    columns: int
    rows: int
    """Of the table that row numbers refer to."""
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
