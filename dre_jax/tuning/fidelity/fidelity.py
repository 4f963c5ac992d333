"""Budgets of trials: how long a configuration may train, and where it may pause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.scalars import plain_value

_FACTOR = 2.0
"""Ratio of neighbouring budgets on a log scale: half of the trainings go on, so that each budget costs the same."""
_N_LINEAR = 5


@dataclass(frozen=True)
class Fidelity:
    """The budget of trials, such as epochs: a trial may pause at some budgets, its rungs, and be resumed later.

    Budgets are whole numbers if the lowest and the highest one are integers.

    Args:
      name: of the budget, such as "epochs".
      lowest: budget, above 0.
      highest: budget. The search is for the best value at this budget.
      log: whether rungs grow by a factor; otherwise they are the same distance apart.
      rungs: the budgets at which trials pause, increasing, the last one the highest; by default halves
        of the highest one, halves of these and so on, or five of the same distance.

    Raises:
      ConfigError: for a name that is no text, budgets that are not positive, finite and increasing, or rungs that do
        not end with the highest one.

    Example:
      >>> Fidelity("epochs", 1, 50).budgets
      (1, 2, 3, 6, 12, 25, 50)
      >>> Fidelity("share", 0.25, 1.0, log=False).budgets
      (0.25, 0.4375, 0.625, 0.8125, 1.0)
    """

    name: str
    lowest: float
    highest: float
    log: bool = True
    rungs: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigError(f"the name of a fidelity must be a text, but got {self.name!r}")
        for bound in ("lowest", "highest"):
            object.__setattr__(self, bound, _budget(getattr(self, bound), f"the {bound} budget of {self.name!r}"))
        if self.lowest >= self.highest:
            rule = f"the lowest budget of {self.name!r} must be below the highest one"
            raise ConfigError(f"{rule}, but got {self.lowest!r} and {self.highest!r}")
        if self.rungs is not None:
            rungs = tuple(_budget(rung, f"a rung of {self.name!r}") for rung in self.rungs)
            is_increasing = all(low < high for low, high in pairwise(rungs))
            if not is_increasing or not rungs or rungs[0] < self.lowest or rungs[-1] != self.highest:
                rule = f"the rungs of {self.name!r} must increase from at least {self.lowest!r} to {self.highest!r}"
                raise ConfigError(f"{rule}, but got {rungs!r}")
            object.__setattr__(self, "rungs", rungs)

    @cached_property
    def budgets(self) -> tuple[float, ...]:
        """The rungs, as given or as chosen."""
        if self.rungs is not None:
            return tuple(self.rungs)
        budgets = [self._round(budget) for budget in (self._on_log_scale() if self.log else self._on_linear_scale())]
        return tuple(sorted({self.lowest, *budgets, self.highest}))

    def _on_log_scale(self) -> list[float]:
        n = math.floor(math.log(self.highest / self.lowest) / math.log(_FACTOR) + 1e-9)
        return [self.highest / _FACTOR**i for i in range(1, n + 1)]

    def _on_linear_scale(self) -> list[float]:
        step = (self.highest - self.lowest) / (_N_LINEAR - 1)
        return [self.lowest + i * step for i in range(1, _N_LINEAR - 1)]

    def _round(self, budget: float) -> float:
        is_whole = isinstance(self.lowest, int) and isinstance(self.highest, int)
        return max(round(budget), self.lowest) if is_whole else budget

    def check(self, budget: Any) -> float:
        """Returns a budget as a number. Raises `DataError` unless it is between the lowest and the highest one."""
        try:
            number = _budget(budget, f"a budget of {self.name!r}")
        except ConfigError as error:
            raise DataError(str(error)) from None
        if not self.lowest <= number <= self.highest:
            rule = f"a budget of {self.name!r} must be from {self.lowest!r} to {self.highest!r}"
            raise DataError(f"{rule}, but got {budget!r}")
        return number

    def __str__(self) -> str:
        """The name and the bounds, as in `epochs=1:50`; or the name and the rungs."""
        return f"{self.name}={':'.join(map(budget_text, self.rungs or (self.lowest, self.highest)))}"

    def to_json(self) -> dict[str, Any]:
        """Returns what a study file has of the fidelity: the arguments of its constructor."""
        rungs = None if self.rungs is None else list(self.rungs)
        return {"name": self.name, "lowest": self.lowest, "highest": self.highest, "log": self.log, "rungs": rungs}


def budget_text(budget: float) -> str:
    """Returns a budget as a program and people read it: a whole number without a point.

    Example:
      >>> budget_text(3), budget_text(3.0), budget_text(1e6), budget_text(0.4375)
      ('3', '3', '1000000', '0.4375')
    """
    return f"{budget:.15g}"


def require_fidelity(subject: str, fidelity: Fidelity | None, given: Fidelity | None) -> None:
    """Raises `DataError`, which names a study, if it is continued with another fidelity than its own."""
    if given != fidelity:
        kind = "without a fidelity" if fidelity is None else f"with the fidelity {fidelity}"
        raise DataError(f"{subject} is a study {kind}, and continues with it (--fidelity), but got {given or 'none'}")


def _budget(value: Any, subject: str) -> float:
    """Returns a positive and finite number, whole ones as they are. Raises `ConfigError`, which names the subject."""
    number = plain_value(value)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < math.inf:
        raise ConfigError(f"{subject} must be a positive and finite number, but got {value!r}")
    return number
