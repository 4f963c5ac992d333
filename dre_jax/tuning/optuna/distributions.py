"""Search spaces as Optuna's distributions, and values as its trials hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.space.parameters import Categorical, Choice, Float, Int, Parameter, is_choice, levels_of
from dre_jax.tuning.space.space import Params, Space


def from_optuna(distributions: Mapping[str, BaseDistribution]) -> Space:
    """The space of Optuna's distributions, all of them active.

    Raises:
      ConfigError: for a distribution that is none of Optuna's, or has choices or bounds that a space cannot hold.

    Example:
      >>> from_optuna({"C": FloatDistribution(1e-3, 1e3, log=True), "degree": IntDistribution(1, 5)})["degree"]
      Int(low=1, high=5, log=False, step=1, when=())
    """
    return Space({name: _parameter(name, distribution) for name, distribution in distributions.items()})


def to_optuna(space: Space) -> dict[str, BaseDistribution]:
    """The distributions of a space. Optuna has no conditions: the objective has to keep them.

    Example:
      >>> to_optuna(Space({"C": Float(1e-3, 1e3, log=True)}))
      {'C': FloatDistribution(high=1000.0, log=True, low=0.001, step=None)}
    """
    return {name: _distribution(parameter) for name, parameter in space.items()}


class Translation:
    """A space, the distributions that Optuna knows it by, and values of the one as those of the other.

    Choices of any type are choices of the space by their position, where the space cannot hold them.
    """

    def __init__(self, space: Space, distributions: Mapping[str, BaseDistribution]) -> None:
        self.space = space
        self.distributions = dict(distributions)
        self._choices = {
            name: distribution.choices
            for name, distribution in distributions.items()
            if isinstance(distribution, CategoricalDistribution)
        }
        self._fixed = {
            name: _first(distribution) for name, distribution in distributions.items() if distribution.single()
        }

    def names(self) -> list[str]:
        """The hyperparameters that have more than one value."""
        return [name for name in self.distributions if name not in self._fixed]

    def adapted(self, distributions: Mapping[str, BaseDistribution]) -> Translation:
        """The same space, searched within other distributions: of those, that lie inside of it."""
        parameters, found = dict(self.space), dict(self.distributions)
        for name, distribution in distributions.items():
            if name in found and distribution != found[name] and can_hold(name, distribution):
                narrower = {**parameters, name: replace(_held(name, distribution), when=parameters[name].when)}
                try:
                    inside = not self.space.mismatches(Space(narrower))
                except ConfigError:  # a choice is gone that others depend on
                    inside = False
                if inside:
                    parameters, found = narrower, {**found, name: distribution}
        return self if found == self.distributions else Translation(Space(parameters), found)

    def inward(self, name: str, value: Any) -> Any:
        """A value of Optuna's as one of the space. Raises `DataError` for one that it does not have."""
        if name not in self._choices:
            return value
        try:
            at = int(self.distributions[name].to_internal_repr(value))
        except ValueError as error:
            raise DataError(str(error)) from error
        parameter = self.space[name]
        assert isinstance(parameter, Categorical)
        return parameter.choices[at]

    def outward(self, params: Mapping[str, Choice]) -> dict[str, Any]:
        """A configuration as Optuna's values."""
        found: dict[str, Any] = {}
        for name, value in params.items():
            parameter, distribution = self.space[name], self.distributions[name]
            if isinstance(parameter, Categorical):
                found[name] = self._choices[name][parameter.index(value)]
            else:
                found[name] = _inside(value, distribution)
        return found

    def plain(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Optuna's values as numbers: choices, which may be of any type, by their position."""
        return {name: self.distributions[name].to_internal_repr(value) for name, value in values.items()}

    def revived(self, numbers: Mapping[str, float]) -> dict[str, Any]:
        """Optuna's values, from what `plain` made of them."""
        known = self.distributions
        return {name: known[name].to_external_repr(value) for name, value in numbers.items() if name in known}

    def read(self, values: Mapping[str, Any]) -> Params | None:
        """The configuration in a trial's values; None where some are missing, or outside of the space."""
        try:
            given = self._fixed | {name: value for name, value in values.items() if name in self.space}
            return self.space.check(self.space.active_part({name: self.inward(name, v) for name, v in given.items()}))
        except DataError:
            return None


def translation_of(space: Space | Mapping[str, BaseDistribution]) -> Translation:
    """The translation of a space, or of the distributions of one.

    Raises:
      ConfigError: for anything else, or bounds that a space cannot hold.
    """
    if isinstance(space, Space):
        return Translation(space, to_optuna(space))
    if not isinstance(space, Mapping):
        raise ConfigError(f"a search space must be a Space or map names to distributions, but got {space!r}")
    distributions = cast("Mapping[str, BaseDistribution]", space)
    return Translation(Space({name: _held(name, d) for name, d in distributions.items()}), distributions)


def can_hold(name: str, distribution: BaseDistribution) -> bool:
    """Returns whether a space can hold a distribution, of whose choices there may be any type."""
    try:
        _held(name, distribution)
    except ConfigError:
        return False
    return True


def _first(distribution: BaseDistribution) -> Any:
    """The value of a distribution that has but one."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    return distribution.low


def _inside(value: Any, distribution: BaseDistribution) -> Any:
    """A number within its bounds: the last of many steps may lie a rounding beyond."""
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    return min(max(value, distribution.low), distribution.high)


def _held(name: str, distribution: BaseDistribution) -> Parameter:
    if isinstance(distribution, CategoricalDistribution) and not _are_choices(distribution.choices):
        return Categorical(tuple(range(len(distribution.choices))))
    return _parameter(name, distribution)


def _are_choices(choices: tuple[Any, ...]) -> bool:
    return all(map(is_choice, choices)) and len(set(levels_of(choices))) == len(choices)


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


def _distribution(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(parameter.choices)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    if parameter.step is None:
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    # In decimals, as Optuna counts its steps.
    low, step = Decimal(str(parameter.low)), Decimal(str(parameter.step))
    high = low + round((parameter.high - parameter.low) / parameter.step) * step
    return FloatDistribution(float(low), float(high), step=float(step))
