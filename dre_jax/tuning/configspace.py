"""Search spaces from and to ConfigSpace, the format of SMAC, auto-sklearn and YAHPO Gym (extra `configspace`).

Bounds, logarithms, choices, their order, default values, the conditions of a hyperparameter, forbidden combinations and
the order of two numbers carry over. What
ConfigSpace has beside them is left out, prior distributions, weights and notes, and so is what this library has: likely
values. What only one of the two can say is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.tuning.space.parameters import Categorical, Choice, Float, Int, Parameter, plain_value
from dre_jax.tuning.space.rules import Forbidden, Less, Rule
from dre_jax.tuning.space.space import Space

_MOST_LEVELS = 1000
"""Of a whole number that others depend on."""


def from_configspace(config_space: Any) -> Space:
    """Returns the space of a `ConfigSpace.ConfigurationSpace`; a constant becomes a categorical of one choice.

    Raises:
      ConfigError: for anything else, a forbidden range or equality of two numbers, alternative conditions on different
        hyperparameters, a condition on a real number, or a choice that is no text, number, truth value or None; the
        message names it.
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
    when: dict[str, dict[str, tuple[Choice, ...]]] = {}
    for condition in config_space.conditions:
        for child, parent, levels in _conditions(condition):
            allowed = when.setdefault(child, {})
            before = allowed.get(parent, levels)
            allowed[parent] = tuple(level for level in levels if level in before)
    parameters = {name: _parameter(one, when.get(name)) for name, one in config_space.items()}
    return Space(parameters, rules=[rule for clause in config_space.forbidden_clauses for rule in _rules(clause)])


def to_configspace(space: Space, *, name: str | None = None, seed: int | None = None) -> Any:
    """Returns a `ConfigSpace.ConfigurationSpace` of the same configurations.

    Encodings of others (`Space.codes`) are left out; a hyperparameter of one value becomes a constant.

    Args:
      space: the search space.
      name: name of the result.
      seed: seed of the result.

    Raises:
      ConfigError: for a number with a step, choices that ConfigSpace takes for equal (1 and True), or a rule that the
        default values do not satisfy.
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
    for rule in space.rules:
        try:
            config_space.add(_clause(library, config_space, rule))
        except ValueError as error:
            raise ConfigError(f"ConfigSpace needs default values that satisfy {str(rule)!r}: {error}") from error
    return config_space


def _library() -> Any:
    try:
        import ConfigSpace
    except ImportError as error:
        raise MissingExtraError("ConfigSpace", "configspace") from error
    return ConfigSpace


def _conditions(condition: Any) -> Iterator[tuple[str, str, tuple[Choice, ...]]]:
    """Yields the conditions that must hold together: child, parent, and the values of the parent."""
    library = _library()
    if isinstance(condition, library.AndConjunction):
        for part in condition.components:
            yield from _conditions(part)
    elif isinstance(condition, library.OrConjunction):
        alternatives = [list(_conditions(part)) for part in condition.components]
        if any(len(one) > 1 for one in alternatives) or len({one[0][1] for one in alternatives}) > 1:
            raise ConfigError(f"alternative conditions must be on one hyperparameter, but got {condition!r}")
        levels = dict.fromkeys(level for one in alternatives for level in one[0][2])
        yield (*alternatives[0][0][:2], tuple(levels))
    else:
        yield condition.child.name, condition.parent.name, _allowed(condition)


def _allowed(condition: Any) -> tuple[Choice, ...]:
    """Returns the values of the parent that satisfy a condition."""
    parent, levels = condition.parent, _levels(condition.parent)
    if levels is None and isinstance(parent.lower, int) and parent.upper - parent.lower < _MOST_LEVELS:
        levels = tuple(range(parent.lower, parent.upper + 1))
    if levels is None:
        raise ConfigError(f"a hyperparameter can depend on few values, but this depends on a range: {condition!r}")
    return tuple(level for level in levels if condition.satisfied_by_value({parent.name: level}))


def _rules(clause: Any) -> Iterator[Rule]:
    """Yields the rules of a forbidden clause."""
    library = _library()
    if isinstance(clause, library.ForbiddenOrConjunction):
        for part in clause.components:
            yield from _rules(part)
        return
    parts = clause.components if isinstance(clause, library.ForbiddenAndConjunction) else (clause,)
    kinds = (library.ForbiddenEqualsClause, library.ForbiddenInClause)
    if all(isinstance(part, kinds) for part in parts):
        yield Forbidden({part.hyperparameter.name: _values(part) for part in parts})
        return
    orders = {
        library.ForbiddenGreaterThanRelation: (False, True),
        library.ForbiddenGreaterThanEqualsRelation: (False, False),
        library.ForbiddenLessThanRelation: (True, True),
        library.ForbiddenLessThanEqualsRelation: (True, False),
    }
    if type(clause) not in orders:
        raise ConfigError(f"a space can forbid combinations of values and an order of two numbers, but got {clause!r}")
    is_swapped, or_equal = orders[type(clause)]
    names = [clause.left.name, clause.right.name]
    smaller, larger = reversed(names) if is_swapped else names
    yield Less(smaller, larger, or_equal)


def _values(clause: Any) -> list[Choice]:
    return [plain_value(value) for value in getattr(clause, "values", [getattr(clause, "value", None)])]


def _clause(library: Any, config_space: Any, rule: Rule) -> Any:
    """Returns the forbidden clause of a rule."""
    if isinstance(rule, Less):
        kind = library.ForbiddenGreaterThanRelation if rule.or_equal else library.ForbiddenGreaterThanEqualsRelation
        return kind(config_space[rule.smaller], config_space[rule.larger])
    parts = [library.ForbiddenInClause(config_space[name], list(values)) for name, values in rule.values]
    return parts[0] if len(parts) == 1 else library.ForbiddenAndConjunction(*parts)


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
