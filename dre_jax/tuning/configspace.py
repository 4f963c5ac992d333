"""Search spaces from and to ConfigSpace, the format of SMAC, auto-sklearn and YAHPO Gym (extra `configspace`).

Bounds, logarithms, choices, their order, default values and the conditions of a hyperparameter carry over. What
ConfigSpace has beside them is left out, prior distributions, weights and notes, and so is what this library has: likely
values. What only one of the two can say is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.tuning.space.parameters import Categorical, Choice, Float, Int, Parameter, plain_value
from dre_jax.tuning.space.space import Space


def from_configspace(config_space: Any) -> Space:
    """Returns the space of a `ConfigSpace.ConfigurationSpace`; a constant becomes a categorical of one choice.

    Raises:
      ConfigError: for anything else, forbidden clauses, alternative conditions (`OrConjunction`), a condition on a
        hyperparameter without levels, or a choice that is no text, number, truth value or None; the message names it.
      MissingExtraError: without ConfigSpace.

    Example:
      >>> from ConfigSpace import ConfigurationSpace
      >>> from_configspace(ConfigurationSpace({"C": (0.5, 2.0), "kernel": ["rbf", "poly"]}))
      Space({'C': Float(low=0.5, high=2.0, default=1.25),
             'kernel': Categorical(choices=('rbf', 'poly'), default='rbf')})
    """
    library = _library()
    if not isinstance(config_space, library.ConfigurationSpace):
        raise ConfigError(f"a space must be a ConfigurationSpace, but got {config_space!r}")
    if config_space.forbidden_clauses:
        raise ConfigError(f"a space has no forbidden clauses, but this one has {config_space.forbidden_clauses[0]!r}")
    when: dict[str, dict[str, tuple[Choice, ...]]] = {}
    for condition in config_space.conditions:
        for one in _single(condition):
            allowed = when.setdefault(one.child.name, {})
            levels = _allowed(one)
            before = allowed.get(one.parent.name, levels)
            allowed[one.parent.name] = tuple(level for level in levels if level in before)
    return Space({name: _parameter(one, when.get(name)) for name, one in config_space.items()})


def to_configspace(space: Space, *, name: str | None = None, seed: int | None = None) -> Any:
    """Returns a `ConfigSpace.ConfigurationSpace` of the same configurations.

    Encodings of others (`Space.codes`) are left out; a hyperparameter of one value becomes a constant.

    Args:
      space: the search space.
      name: name of the result.
      seed: seed of the result.

    Raises:
      ConfigError: for a number with a step, or choices that ConfigSpace takes for equal (1 and True).
      MissingExtraError: without ConfigSpace.

    Example:
      >>> to_configspace(Space({"C": Float(0.5, 2.0, log=True)}))["C"].log
      True
    """
    library = _library()
    config_space = library.ConfigurationSpace(name=name, seed=seed)
    for one, parameter in space.items():
        try:
            config_space.add(_hyperparameter(library, one, parameter))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{one} must be one that ConfigSpace takes, but: {error}") from error
    for one in space.sequence:
        conditions = [_condition(library, config_space, one, *each) for each in space[one].when]
        if conditions:
            config_space.add(conditions[0] if len(conditions) == 1 else library.AndConjunction(*conditions))
    return config_space


def _library() -> Any:
    try:
        import ConfigSpace
    except ImportError as error:
        raise MissingExtraError("ConfigSpace", "configspace") from error
    return ConfigSpace


def _single(condition: Any) -> Iterable[Any]:
    """Yields the conditions of a conjunction."""
    library = _library()
    if isinstance(condition, library.AndConjunction):
        for part in condition.components:
            yield from _single(part)
    elif isinstance(condition, library.OrConjunction):
        raise ConfigError(f"conditions must hold together, but one of these is enough: {condition!r}")
    else:
        yield condition


def _allowed(condition: Any) -> tuple[Choice, ...]:
    """Returns the choices of the parent that satisfy a condition."""
    levels = _levels(condition.parent)
    if levels is None:
        raise ConfigError(f"a hyperparameter can depend on a categorical, but this does not: {condition!r}")
    return tuple(level for level in levels if condition.satisfied_by_value({condition.parent.name: level}))


def _levels(one: Any) -> tuple[Any, ...] | None:
    levels = getattr(one, "choices", getattr(one, "sequence", (one.value,) if hasattr(one, "value") else None))
    return None if levels is None else tuple(map(plain_value, levels))


def _parameter(one: Any, when: Mapping[str, tuple[Choice, ...]] | None) -> Parameter:
    levels = _levels(one)
    try:
        if levels is not None:
            default = one.default_value if len(levels) > 1 else ...
            return Categorical(levels, ordered=hasattr(one, "sequence"), when=when, default=default)
        kind = Int if isinstance(one.lower, int) else Float
        return kind(one.lower, one.upper, log=one.log, when=when, default=one.default_value)
    except ConfigError as error:
        raise ConfigError(f"{one.name}: {error}") from error


def _hyperparameter(library: Any, name: str, parameter: Parameter) -> Any:
    default = {"default_value": parameter.default} if parameter.has_default else {}
    if isinstance(parameter, Categorical):
        if parameter.ordered:
            return library.OrdinalHyperparameter(name, parameter.choices, **default)
        if len(parameter.choices) == 1:
            return library.Constant(name, parameter.choices[0])
        return library.CategoricalHyperparameter(name, parameter.choices, **default)
    if parameter.low == parameter.high:
        return library.Constant(name, parameter.low)
    if parameter.step not in (None, 1) or (isinstance(parameter, Float) and parameter.step):
        raise ConfigError(f"ConfigSpace has no steps, but {name} has one of {parameter.step!r}")
    kind = library.UniformIntegerHyperparameter if isinstance(parameter, Int) else library.UniformFloatHyperparameter
    return kind(name, parameter.low, parameter.high, log=parameter.log, **default)


def _condition(library: Any, config_space: Any, child: str, parent: str, values: tuple[Choice, ...]) -> Any:
    if len(values) == 1:
        return library.EqualsCondition(config_space[child], config_space[parent], values[0])
    return library.InCondition(config_space[child], config_space[parent], list(values))
