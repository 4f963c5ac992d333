"""The scale of a number: a line, or a logarithm, onto [0, 1], for numbers and for arrays of NumPy and JAX."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dre_jax.runtime.arrays import namespace


@dataclass(frozen=True)
class Scale:
    """A line from a number to a coordinate: (t(x) - t(low)) / (t(high) - t(low)), t(x) = x or ln(x + offset)."""

    low: float
    high: float
    log: bool = False
    offset: float = 0.0

    def transform(self, x: Any) -> Any:
        """Returns t(x)."""
        return namespace(x).log(x + self.offset) if self.log else x

    @cached_property
    def _transformed_ends(self) -> tuple[float, float]:
        """The numbers t(low) and t(high)."""
        return float(self.transform(self.low)), float(self.transform(self.high))

    def to_unit(self, x: Any) -> Any:
        """Returns the coordinates of numbers; 0 throughout for a scale of one number."""
        low, high = self._transformed_ends
        return (self.transform(x) - low) / (high - low) if high > low else 0.0 * x

    def from_unit(self, u: Any) -> Any:
        """Returns the numbers at coordinates."""
        low, high = self._transformed_ends
        # The sum of two products: the ends are met exactly, and their difference never overflows.
        t = low * (1.0 - u) + high * u
        if not self.log:
            return t
        xp = namespace(u)
        value = xp.exp(t) - self.offset
        return xp.where(u <= 0.0, self.low, xp.where(u >= 1.0, self.high, value))
