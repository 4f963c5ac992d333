"""Rules that a formula states: any inequality of hyperparameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.space import expressions
from dre_jax.space.layout_formulas import Argument, Predicate, Source
from dre_jax.space.parameters import Categorical, Parameter, Permutation

_N_SAMPLES = 16
"""Number of configurations with which a formula is tested."""


@dataclass(frozen=True)
class Formula:
    """A condition that is true or false for each configuration, where all its hyperparameters are active.

    Args:
      formula: text, such as ``"width * depth <= 4096 or precision == 'bf16'"``, with the operators of Python and the
        functions abs, ceil, exp, floor, log, log2, log10, sqrt, max and min; or a function, whose arguments without
        default values are hyperparameters. A function gets numbers as arrays of NumPy or JAX, booleans as masks, and
        other choices as objects that compare with ``==`` and ``!=``. It returns a mask, entry by entry, and JAX must be
        able to trace it. Files cannot keep functions.

    Raises:
      ConfigError: for text that is no formula, and for anything but text and functions of at least one hyperparameter.

    Example:
      >>> def fits_in_memory(batch, width):
      ...     return 4 * batch * width**2 <= 1e9
      >>> Formula(fits_in_memory).names, Formula("batch * width**2 <= 2.5e8").names
      (('batch', 'width'), ('batch', 'width'))
    """

    formula: Source

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str) and not callable(self.formula):
            raise ConfigError(f"a formula must be text or a function, but got {self.formula!r}")
        if not self.names:
            raise ConfigError(f"a formula must be about hyperparameters, but {str(self)!r} names none")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters of the rule."""
        if isinstance(self.formula, str):
            return expressions.names_in(expressions.parse(self.formula))
        try:
            arguments = inspect.signature(self.formula).parameters.values()
        except (TypeError, ValueError):
            return ()
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return tuple(a.name for a in arguments if a.kind in kinds and a.default is inspect.Parameter.empty)

    def __str__(self) -> str:
        if isinstance(self.formula, str):
            return self.formula
        return f"{getattr(self.formula, '__name__', 'function')}({', '.join(self.names)})"

    def checked(self, parameters: Mapping[str, Parameter]) -> Formula:
        """Returns the rule.

        Raises `ConfigError` for a permutation, and unless the formula can be computed, in programs too, and is true or
        false for each of several configurations as for one alone.
        """
        if any(isinstance(parameters[name], Permutation) for name in self.names):
            raise ConfigError(f"a formula must be of numbers and choices, but {str(self)!r} has a permutation")
        predicate = self.in_layout(parameters, {name: i for i, name in enumerate(self.names)})
        samples = [_samples(parameters[name], number) for number, name in enumerate(self.names)]
        try:
            mask = predicate.holds(samples)
            alone = [predicate.holds([values[k] for values in samples]) for k in range(_N_SAMPLES)]
            arrays = [jax.ShapeDtypeStruct(values.shape, jnp.float32) for values in samples]
            traced = jax.eval_shape(lambda *values: predicate.holds(values), *arrays)
        except Exception as error:  # of the user's code
            reason = str(error).strip().partition("\n")[0]
            raise ConfigError(f"{str(self)!r} must be computable, but {type(error).__name__}: {reason}") from error
        for result in (mask, traced):
            if getattr(result, "dtype", None) != np.bool_ or result.shape != (_N_SAMPLES,):
                form = f"{getattr(result, 'dtype', type(result).__name__)}{list(getattr(result, 'shape', ()))}"
                rule = f"{str(self)!r} must be true or false for each of {_N_SAMPLES} configurations"
                raise ConfigError(f"{rule}, as x * y <= 8 is, but is {form}")
        if np.any(mask != np.array(alone)):
            raise ConfigError(f"{str(self)!r} must be about one configuration, but its results depend on the others")
        return self

    def in_layout(self, parameters: Mapping[str, Parameter], positions: Mapping[str, int]) -> Predicate:
        """Returns the rule about points, for hyperparameters and their positions by name."""
        choices = {
            name: parameter.choices if isinstance(parameter, Categorical) else ()
            for name, parameter in parameters.items()
        }
        return Predicate(self.formula, tuple(Argument(name, positions[name], choices[name]) for name in self.names))


def _samples(parameter: Any, number: int) -> np.ndarray:
    """Returns levels or numbers f64[`_N_SAMPLES`] of a hyperparameter, in another order for each number."""
    u = np.random.default_rng(number).permutation(_N_SAMPLES) / (_N_SAMPLES - 1.0)
    if isinstance(parameter, Categorical):
        return np.floor(u * (len(parameter.choices) - 1e-9))
    values = parameter.low + u * (parameter.high - parameter.low)
    return np.asarray(values if parameter.step is None else np.round(values), np.float64)
