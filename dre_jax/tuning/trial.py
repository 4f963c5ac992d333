"""Trials of a study, and the settings that every study has."""

from __future__ import annotations

from typing import Literal, NamedTuple

from dre_jax.checks import check_seed, one_of
from dre_jax.tuning.past.tasks import DIRECTIONS
from dre_jax.tuning.space.space import Params

State = Literal["running", "complete", "failed"]


class Trial(NamedTuple):
    """One evaluation."""

    number: int
    """From 0, in the order of `ask`."""
    params: Params
    """The configuration: Python values by name."""
    state: State = "running"
    """Running, complete or failed."""
    value: float | None = None
    """The objective's value, if the trial is complete."""


def validate_study(direction: object, seed: object) -> None:
    """Checks the direction and the seed of a study. Raises `ConfigError`."""
    one_of("direction", direction, DIRECTIONS)
    check_seed(seed)
