"""The state of meta-training: all that changes from step to step."""

from __future__ import annotations

from typing import NamedTuple

from jax import Array

from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.optim.adam import Moments


class TrainState(NamedTuple):
    """The state of meta-training after some steps."""

    params: EnsembleParams
    """The model's."""
    moments: Moments
    """Adam's."""
    step: Array
    """i32 scalar: steps done."""
