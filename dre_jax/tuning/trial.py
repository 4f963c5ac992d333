"""Trials of a study, and what every study checks: its direction, its seed and the values of trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from dre_jax.checks import check_seed, one_of
from dre_jax.errors import DataError
from dre_jax.tuning.space.parameters import Choice, plain_value
from dre_jax.tuning.space.space import Params

DIRECTIONS = ("minimize", "maximize")
State = Literal["running", "complete", "failed"]


@dataclass(frozen=True, repr=False)
class Trial:
    """One evaluation.

    `trial["x"]` is the value of the hyperparameter `x`, and `train(**trial)` passes all values.

    Example:
      >>> trial = Trial(0, {"x": 0.5})
      >>> trial["x"], trial.state
      (0.5, 'running')
    """

    number: int
    """From 0, in the order of `ask`."""
    _params: Mapping[str, Choice]
    state: State = "running"
    """Running, complete or failed."""
    value: float | None = None
    """The objective's value, if the trial is complete."""
    stderr: float | None = None
    """The value's standard error, if it is known."""

    @property
    def params(self) -> Params:
        """The configuration: Python values by name. A copy, so that changes to it do not change the study."""
        return dict(self._params)

    def keys(self) -> Iterable[str]:
        """Returns the names of the active hyperparameters."""
        return self._params.keys()

    __iter__: ClassVar[None] = None
    """A trial has no order: neither of its fields nor of its hyperparameters."""

    def __getitem__(self, name: str) -> Choice:
        return self._params[name]

    def __repr__(self) -> str:
        error = "" if self.stderr is None else f", stderr={self.stderr!r}"
        return f"Trial(number={self.number}, params={self.params}, state={self.state!r}, value={self.value!r}{error})"


def validate_study(direction: object, seed: object) -> None:
    """Checks the direction and the seed of a study. Raises `ConfigError`."""
    one_of("direction", direction, DIRECTIONS)
    check_seed(seed)


def objective_value(value: Any, subject: str = "the value of a trial") -> float:
    """Returns an objective's value as a float; a whole number beyond all floats becomes infinite.

    Args:
      value: a number of Python, NumPy, JAX or PyTorch.
      subject: start of the message.

    Raises:
      DataError: for anything else.
    """
    value = plain_value(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"{subject} must be a number, but got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
