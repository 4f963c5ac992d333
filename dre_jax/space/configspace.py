"""Search spaces from and to ConfigSpace, the format of SMAC, auto-sklearn and YAHPO Gym (extra `configspace`).

Bounds, logarithms, choices, their order, default values, conditions, forbidden combinations and the order of two
numbers carry over. Prior distributions, weights and notes of ConfigSpace are left out, and so are likely values of this
library. A rule that only one of the two libraries has is refused.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

from dre_jax.errors import ConfigError, import_extra
from dre_jax.space.conditions import Interval
from dre_jax.space.parameters import Categorical, Float, Int, Parameter, Permutation
from dre_jax.space.rules import Forbidden, Less, Rule
from dre_jax.space.scalars import Choice, plain_value
from dre_jax.space.space import Space

_Values = tuple[Choice, ...] | Interval
_Conditions = dict[str, _Values]
_MOST_LEVELS = 1000
"""Maximum number of values of a whole number that other hyperparameters depend on."""
_library = functools.partial(import_extra, "ConfigSpace", "ConfigSpace", "configspace")


def from_configspace(config_space: Any) -> Space:
    """Returns the space of a `ConfigSpace.ConfigurationSpace`; a constant becomes a categorical of one choice.

    Raises:
      ConfigError: for anything else, a forbidden range or equality of two numbers, a condition on one value of a real
        number, or a choice that is not a text, number, truth value or None; the message names it.
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
    when: dict[str, list[_Conditions]] = {}
    for condition in config_space.conditions:
        name = condition.child.name
        when[name] = _join_alternatives(when.get(name, [{}]), _alternatives(condition))
    parameters = {name: _parameter(entry, when.get(name)) for name, entry in config_space.items()}
    return Space(parameters, rules=[rule for clause in config_space.forbidden_clauses for rule in _rules(clause)])


def to_configspace(space: Space, *, name: str | None = None, seed: int | None = None) -> Any:
    """Returns a `ConfigSpace.ConfigurationSpace` of the same configurations.

    Encodings of others (`Space.codes`) are left out; a hyperparameter of one value becomes a constant.

    Args:
      space: the search space.
      name: name of the result.
      seed: seed of the result.

    Raises:
      ConfigError: for a permutation, a number with a step, choices that ConfigSpace takes for equal (1 and True), or a
        rule that the default values do not satisfy.
      MissingExtraError: without ConfigSpace.

    Example:
      >>> to_configspace(Space({"C": Float(0.5, 2.0, log=True)}))["C"].log
      True
    """
    library = _library()
    config_space = library.ConfigurationSpace(name=name, seed=seed)
    for hyperparameter, parameter in space.items():
        try:
            config_space.add(_hyperparameter(library, hyperparameter, parameter))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{hyperparameter} must be one that ConfigSpace takes, but: {error}") from error
    for hyperparameter in space.sequence:
        alternatives = []
        for conditions in space[hyperparameter].alternatives:
            parts = [
                part
                for condition in conditions
                for part in _conditions(library, config_space, hyperparameter, *condition)
            ]
            alternatives.append(_join_parts(library.AndConjunction, parts))
        if alternatives:
            config_space.add(_join_parts(library.OrConjunction, alternatives))
    for rule in space.rules:
        try:
            config_space.add(_clause(library, config_space, rule))
        except ValueError as error:
            raise ConfigError(f"ConfigSpace needs default values that satisfy {str(rule)!r}: {error}") from error
    return config_space


def _alternatives(condition: Any) -> list[_Conditions]:
    """Returns alternative mappings of parents to values, one of which must hold."""
    library = _library()
    if isinstance(condition, library.AndConjunction):
        return functools.reduce(_join_alternatives, map(_alternatives, condition.components))
    if not isinstance(condition, library.OrConjunction):
        return [{condition.parent.name: _parent_values(condition)}]
    alternatives: list[_Conditions] = []
    for alternative in itertools.chain(*map(_alternatives, condition.components)):
        same = next(
            (other for other in alternatives if other.keys() == alternative.keys() and len(alternative) == 1), None
        )
        (name, values), *_ = alternative.items()
        before = None if same is None else same[name]
        if isinstance(before, tuple) and isinstance(values, tuple):
            same[name] = tuple(dict.fromkeys(before + values))  # type: ignore[index]
        else:
            alternatives.append(dict(alternative))
    return alternatives


def _join_alternatives(left: list[_Conditions], right: list[_Conditions]) -> list[_Conditions]:
    """Returns the alternatives that satisfy both, without those that cannot hold."""
    alternatives = []
    for first, second in itertools.product(left, right):
        shared = {name: _intersection(first[name], second[name]) for name in first.keys() & second.keys()}
        alternatives += [] if None in shared.values() else [first | second | shared]
    if not alternatives:
        raise ConfigError(f"conditions must be able to hold together, but got {left!r} and {right!r}")
    return alternatives


def _intersection(left: _Values, right: _Values) -> Any:
    """Returns the values of a parent that both conditions allow, an interval or choices; None if there are none."""
    if isinstance(left, Interval) and isinstance(right, Interval):
        above = [bound for bound in (left.above, right.above) if bound is not None]
        below = [bound for bound in (left.below, right.below) if bound is not None]
        bounds = max(above, default=None), min(below, default=None)
        return Interval(*bounds) if None in bounds or bounds[0] < bounds[1] else None  # type: ignore[operator]
    return tuple(value for value in left if value in right) or None  # type: ignore[union-attr]


def _parent_values(condition: Any) -> _Values:
    """Returns the values of the parent that satisfy a condition."""
    library, parent, levels = _library(), condition.parent, _levels(condition.parent)
    if levels is None and isinstance(parent.lower, int) and parent.upper - parent.lower < _MOST_LEVELS:
        levels = tuple(range(parent.lower, parent.upper + 1))
    if levels is not None:
        return tuple(level for level in levels if condition.satisfied_by_value({parent.name: level}))
    if isinstance(condition, library.GreaterThanCondition):
        return Interval(above=condition.value)
    if isinstance(condition, library.LessThanCondition):
        return Interval(below=condition.value)
    raise ConfigError(f"a hyperparameter can depend on few values or an interval, but this does not: {condition!r}")


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
    if not isinstance(rule, (Less, Forbidden)):
        raise ConfigError(f"ConfigSpace has only Forbidden and Less among the rules, but the space has {str(rule)!r}")
    if isinstance(rule, Less):
        kind = library.ForbiddenGreaterThanRelation if rule.or_equal else library.ForbiddenGreaterThanEqualsRelation
        return kind(config_space[rule.smaller], config_space[rule.larger])
    parts = [library.ForbiddenInClause(config_space[name], list(values)) for name, values in rule.values]
    return parts[0] if len(parts) == 1 else library.ForbiddenAndConjunction(*parts)


def _levels(hyperparameter: Any) -> tuple[Any, ...] | None:
    levels = getattr(
        hyperparameter,
        "choices",
        getattr(hyperparameter, "sequence", (hyperparameter.value,) if hasattr(hyperparameter, "value") else None),
    )
    return None if levels is None else tuple(map(plain_value, levels))


def _parameter(hyperparameter: Any, when: list[_Conditions] | None) -> Parameter:
    levels = _levels(hyperparameter)
    try:
        if levels is not None:
            default = hyperparameter.default_value if len(levels) > 1 else ...
            return Categorical(levels, ordered=hasattr(hyperparameter, "sequence"), when=when, default=default)
        kind = Int if isinstance(hyperparameter.lower, int) else Float
        return kind(
            hyperparameter.lower,
            hyperparameter.upper,
            log=hyperparameter.log,
            when=when,
            default=hyperparameter.default_value,
        )
    except ConfigError as error:
        raise ConfigError(f"{hyperparameter.name}: {error}") from error


def _hyperparameter(library: Any, name: str, parameter: Parameter) -> Any:
    default = {"default_value": parameter.default} if parameter.has_default else {}
    if isinstance(parameter, Categorical):
        if parameter.ordered:
            return library.OrdinalHyperparameter(name, parameter.choices, **default)
        if len(parameter.choices) == 1:
            return library.Constant(name, parameter.choices[0])
        return library.CategoricalHyperparameter(name, parameter.choices, **default)
    if isinstance(parameter, Permutation):
        raise ConfigError(f"ConfigSpace has no permutations, but {name} is one")
    if parameter.low == parameter.high:
        return library.Constant(name, parameter.low)
    if parameter.step not in (None, 1) or (isinstance(parameter, Float) and parameter.step):
        raise ConfigError(f"ConfigSpace has no steps, but {name} has one of {parameter.step!r}")
    kind = library.UniformIntegerHyperparameter if isinstance(parameter, Int) else library.UniformFloatHyperparameter
    return kind(name, parameter.low, parameter.high, log=parameter.log, **default)


def _join_parts(conjunction: Any, parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else conjunction(*parts)


def _conditions(library: Any, config_space: Any, child: str, parent: str, values: _Values) -> list[Any]:
    """Returns the conditions that a parent must satisfy together."""
    hyperparameters = config_space[child], config_space[parent]
    if isinstance(values, Interval):
        kinds = (library.GreaterThanCondition, values.above), (library.LessThanCondition, values.below)
        return [kind(*hyperparameters, bound) for kind, bound in kinds if bound is not None]
    if len(values) == 1:
        return [library.EqualsCondition(*hyperparameters, values[0])]
    return [library.InCondition(*hyperparameters, list(values))]
