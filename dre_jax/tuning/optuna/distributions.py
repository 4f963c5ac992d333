"""Search spaces as Optuna's distributions, and values as its trials hold them."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, cast

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.parameters import Categorical, Float, Int, Parameter, Permutation
from dre_jax.space.scalars import Value, is_choice, levels_of
from dre_jax.space.space import Params, Space
from dre_jax.space.values import nearest_value


def from_optuna(distributions: Mapping[str, BaseDistribution]) -> Space:
    """Returns the space of Optuna's distributions, all of them active.

    Raises:
      ConfigError: if a distribution is not one of Optuna's, or a space cannot hold its choices or bounds.

    Example:
      >>> from_optuna({"C": FloatDistribution(1e-3, 1e3, log=True), "degree": IntDistribution(1, 5)})["degree"]
      Int(low=1, high=5)
    """
    return Space({name: _parameter(name, distribution) for name, distribution in distributions.items()})


def to_optuna(space: Space) -> dict[str, BaseDistribution]:
    """Returns the distributions of a space. Optuna has no conditions, so the objective has to check them.

    Optuna has no steps on a logarithmic scale either: these distributions have all numbers between the bounds. It has
    no permutations: theirs is the distribution of their positions, and `Permutation.at` returns the order at one.

    Example:
      >>> to_optuna(Space({"C": Float(1e-3, 1e3, log=True)}))
      {'C': FloatDistribution(high=1000.0, log=True, low=0.001, step=None)}
    """
    return {name: _distribution(parameter) for name, parameter in space.items()}


@dataclass
class Translation:
    """Converts values between a space and Optuna's distributions.

    Choices that the space cannot hold are represented by their index.
    """

    space: Space
    distributions: dict[str, BaseDistribution]

    @cached_property
    def _fixed_values(self) -> dict[str, Any]:
        """The values of hyperparameters that have one."""
        return {
            name: _first(distribution) for name, distribution in self.distributions.items() if distribution.single()
        }

    def names(self) -> list[str]:
        """Returns the hyperparameters with more than one value."""
        return [name for name in self.distributions if name not in self._fixed_values]

    def restrict(self, distributions: Mapping[str, BaseDistribution]) -> Translation:
        """Returns the translation in which distributions that are subsets of the current ones replace them."""
        parameters, current = dict(self.space), dict(self.distributions)
        for name, distribution in distributions.items():
            if name in current and distribution != current[name] and can_hold(name, distribution):
                parameter = _with_belief_of(parameters[name], _to_parameter(name, distribution))
                new_parameters = {**parameters, name: replace(parameter, when=parameters[name].when)}
                try:
                    is_inside = not self.space.mismatches(Space(new_parameters, rules=self.space.rules))
                except ConfigError:  # a choice is gone that others depend on
                    is_inside = False
                if is_inside:
                    parameters, current = new_parameters, {**current, name: distribution}
        return (
            self if current == self.distributions else Translation(Space(parameters, rules=self.space.rules), current)
        )

    def from_optuna_value(self, name: str, value: Any) -> Any:
        """Returns the space's value for one of Optuna's values. Raises `DataError` if the space does not have it."""
        parameter = self.space[name]
        if isinstance(parameter, Permutation):
            return parameter.at(int(value))
        if not isinstance(parameter, Categorical):
            is_rounded = _has_log_step(parameter) and parameter.low <= value <= parameter.high
            return nearest_value(parameter, value) if is_rounded else value
        try:
            return parameter.choices[int(self.distributions[name].to_internal_repr(value))]
        except ValueError as error:
            raise DataError(str(error)) from error

    def to_optuna_values(self, params: Mapping[str, Value]) -> dict[str, Any]:
        """Returns a configuration as Optuna's values."""
        values: dict[str, Any] = {}
        for name, value in params.items():
            parameter, distribution = self.space[name], cast(Any, self.distributions[name])
            if isinstance(parameter, Categorical):
                values[name] = distribution.choices[parameter.index(value)]
            elif isinstance(parameter, Permutation):
                values[name] = parameter.index(value)
            else:  # by rounding, the last step may exceed the bounds
                values[name] = min(max(cast(float, value), distribution.low), distribution.high)
        return values

    def to_numbers(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Returns Optuna's values as numbers: choices by their index."""
        return {name: self.distributions[name].to_internal_repr(value) for name, value in values.items()}

    def from_numbers(self, numbers: Mapping[str, float]) -> dict[str, Any]:
        """Inverts `to_numbers`."""
        by_name = self.distributions
        return {name: by_name[name].to_external_repr(value) for name, value in numbers.items() if name in by_name}

    def read_params(self, values: Mapping[str, Any]) -> Params | None:
        """Returns the configuration in a trial's values; None if all are missing, or a value is outside of the space.

        A value that is missing, because the trial was pruned before it or did not need it, is set to the middle.
        """
        all_values = self._fixed_values | {name: value for name, value in values.items() if name in self.space}
        if len(all_values) == len(self._fixed_values):
            return None
        try:
            params = {name: self.from_optuna_value(name, value) for name, value in all_values.items()}
            return self.space.check(self.space.active_part(self._middle | params))
        except DataError:
            return None

    @cached_property
    def _middle(self) -> Params:
        """The middle of each hyperparameter's range, whether it is active or not."""
        spaces = {name: Space({name: replace(parameter, when=None)}) for name, parameter in self.space.items()}
        return {name: space.params(np.array([0.5]))[name] for name, space in spaces.items()}


def translation_of(space: Space | Mapping[str, BaseDistribution]) -> Translation:
    """Returns the translation of a space or of distributions.

    Raises `ConfigError` if the argument is neither, or a space cannot hold a distribution.
    """
    if isinstance(space, Space):
        return Translation(space, to_optuna(space))
    if not isinstance(space, Mapping):
        rule = "a search space must be a Space or map names to distributions (a surrogate is passed by surrogate=)"
        raise ConfigError(f"{rule}, but got {reprlib.repr(space)}")
    distributions = dict(cast("Mapping[str, BaseDistribution]", space))
    return Translation(Space({name: _to_parameter(name, d) for name, d in distributions.items()}), distributions)


def can_hold(name: str, distribution: BaseDistribution) -> bool:
    """Returns whether a space can hold a distribution; choices may be of any type."""
    try:
        Space({name: _to_parameter(name, distribution)})
    except ConfigError:
        return False
    return True


def _first(distribution: BaseDistribution) -> Any:
    """Returns the value of a distribution that has one value."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    return distribution.low


def _to_parameter(name: str, distribution: BaseDistribution) -> Parameter:
    choices = distribution.choices if isinstance(distribution, CategoricalDistribution) else ()
    if not all(map(is_choice, choices)) or len(set(levels_of(choices))) < len(choices):
        return Categorical(tuple(range(len(choices))))
    return _parameter(name, distribution)


def _parameter(name: str, distribution: BaseDistribution) -> Parameter:
    try:
        if isinstance(distribution, CategoricalDistribution):
            return Categorical(distribution.choices)
        if isinstance(distribution, FloatDistribution):
            return Float(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
        if isinstance(distribution, IntDistribution):
            return Int(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    raise ConfigError(f"{name} must be one of Optuna's distributions, but got {distribution!r}")


def _with_belief_of(other: Parameter, parameter: Parameter) -> Parameter:
    """Returns a hyperparameter with the likely values and the default of another one, as far as it has these values."""
    likely: Any = other.likely
    default: Any = other.default
    if isinstance(other, Categorical) and isinstance(parameter, Categorical):
        likely = [choice for choice in likely or () if choice in parameter.choices] or None
        return replace(parameter, likely=likely, default=default if default in parameter.choices else ...)
    if isinstance(parameter, (Categorical, Permutation)) or type(parameter) is not type(other):
        return parameter
    assert isinstance(other, (Float, Int))
    if likely is not None:
        low, high = max(likely[0], parameter.low), min(likely[1], parameter.high)
        likely = (low, high) if low <= high else None
    if _has_log_step(other):  # which a distribution does not have
        low, high = (cast(Any, nearest_value(other, bound)) for bound in (parameter.low, parameter.high))
        if parameter.low <= low <= high <= parameter.high:
            parameter = replace(other, low=low, high=high, likely=None, default=None)
    inside = other.has_default and parameter.low <= default <= parameter.high
    return replace(parameter, likely=likely, default=default if inside else None)


def _has_log_step(parameter: Float | Int) -> bool:
    return parameter.log and parameter.step not in (None, 1 if isinstance(parameter, Int) else None)


def _distribution(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(parameter.choices)
    if isinstance(parameter, Permutation):
        return IntDistribution(0, parameter.size - 1)
    if isinstance(parameter, Int):
        whole_step = 1 if parameter.log else parameter.step
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=whole_step)
    if parameter.step is None or parameter.log:
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    # In decimals, as Optuna counts its steps.
    low, step = Decimal(str(parameter.low)), Decimal(str(parameter.step))
    high = low + round((parameter.high - parameter.low) / parameter.step) * step
    return FloatDistribution(float(low), float(high), step=float(step))
