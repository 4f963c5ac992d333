"""Search spaces from lists and SciPy distributions, as scikit-learn's searches take them.

A list may hold any objects, such as estimators and tuples. The search space has their text instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.space.parameters import Categorical, Float, Int, Parameter, Permutation
from dre_jax.space.scalars import Choice, Value, is_choice, plain_value
from dre_jax.space.space import Params, Space

ALTERNATIVE = "alternative"
"""Name of the hyperparameter that selects one of several dictionaries."""
_TAIL = 1e-3  # probability beyond the bounds of a distribution without bounds
_SUPPORT = {"loguniform", "reciprocal", "uniform", "randint"}


@dataclass(frozen=True)
class Distributions:
    """A search space, and the values that its configurations stand for.

    Example:
      >>> searched = distributions_of([{"kernel": ["rbf"], "C": [1.0, 10.0]}, {"kernel": ["poly"], "degree": [2, 3]}])
      >>> list(searched.space)
      ['alternative', 'C', 'degree', 'kernel.0', 'kernel.1']
      >>> searched.values({"alternative": 1, "degree": 3, "kernel.1": "poly"})
      {'degree': 3, 'kernel': 'poly'}
    """

    space: Space
    objects: Mapping[str, Mapping[Value, Any]]
    """The value of each choice, by hyperparameter, for values that cannot be choices themselves."""
    names: Mapping[str, str]
    """Names of the parameters by hyperparameter, where they differ: of dictionaries that share a name."""
    is_alternative: bool
    """Whether the space has the hyperparameter that selects a dictionary."""

    def values(self, params: Params) -> dict[str, Any]:
        """Returns a configuration as `set_params` takes it."""
        return {
            self.names.get(name, name): self.objects[name][value] if name in self.objects else value
            for name, value in params.items()
            if not (self.is_alternative and name == ALTERNATIVE)
        }


def distributions_of(space: Space | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Distributions:
    """Returns a search space from a description, which may be that of `RandomizedSearchCV` or `GridSearchCV`.

    The description maps names to a `Float`, `Int`, `Categorical` or `Permutation`, a list of values, or a distribution
    of SciPy. A list of such mappings is a choice of one of them. ``uniform``, ``loguniform`` and ``randint`` give
    ranges. Any other distribution gives the range between its quantiles 0.001 and 0.999, searched evenly.

    Raises `ConfigError` for anything else.
    """
    if isinstance(space, Space):
        return Distributions(space, {}, {}, is_alternative=False)
    if isinstance(space, Mapping):
        return _distributions(_parameters(space), {}, is_alternative=False)
    if not isinstance(space, Sequence) or isinstance(space, str) or not space:
        raise ConfigError(f"a search space must map names to values, or be a list of such mappings, but got {space!r}")
    alternatives = [_parameters(entry) for entry in space]
    if len(alternatives) == 1:
        return _distributions(alternatives[0], {}, is_alternative=False)
    parameters: dict[str, _Parameter] = {ALTERNATIVE: _Parameter(Categorical(tuple(range(len(alternatives)))))}
    names: dict[str, str] = {}
    for name in sorted({name for alternative in alternatives for name in alternative}):
        if name == ALTERNATIVE:
            raise ConfigError(f"of several mappings none may have a parameter {ALTERNATIVE!r}")
        same = _group([(i, alternative[name]) for i, alternative in enumerate(alternatives) if name in alternative])
        for parameter, numbers in same:
            unique = name if len(same) == 1 else f"{name}.{numbers[0]}"
            names |= {unique: name} if unique != name else {}
            in_all = len(numbers) == len(alternatives)
            parameters[unique] = parameter if in_all else parameter.when(numbers)
    return _distributions(parameters, names, is_alternative=True)


@dataclass(frozen=True)
class _Parameter:
    """A hyperparameter, and the values that its choices stand for."""

    parameter: Parameter
    objects: Mapping[Value, Any] | None = None

    def when(self, alternatives: Sequence[int]) -> _Parameter:
        """Returns the parameter, active in some of the alternatives."""
        conditions = [
            {**dict(alternative), ALTERNATIVE: list(alternatives)}
            for alternative in self.parameter.alternatives or ((),)
        ]
        return replace(self, parameter=replace(self.parameter, when=conditions))


def _distributions(
    parameters: Mapping[str, _Parameter], names: Mapping[str, str], *, is_alternative: bool
) -> Distributions:
    space = Space({name: entry.parameter for name, entry in parameters.items()})
    objects = {name: entry.objects for name, entry in parameters.items() if entry.objects is not None}
    return Distributions(space, objects, names, is_alternative)


def _group(parameters: Sequence[tuple[int, _Parameter]]) -> list[tuple[_Parameter, list[int]]]:
    """Returns the distinct parameters with the numbers of their mappings."""
    groups: list[tuple[_Parameter, list[int]]] = []
    for number, parameter in parameters:
        for other, numbers in groups:
            if other.parameter == parameter.parameter and other.objects is None and parameter.objects is None:
                numbers.append(number)
                break
        else:
            groups.append((parameter, [number]))
    return groups


def _parameters(space: Mapping[str, Any]) -> dict[str, _Parameter]:
    if not isinstance(space, Mapping):
        raise ConfigError(f"a search space must map names to values, but got {space!r}")
    return {name: _parameter(name, value) for name, value in space.items()}


def _parameter(name: str, value: Any) -> _Parameter:
    if isinstance(value, (Float, Int, Categorical, Permutation)):
        return _Parameter(value)
    if hasattr(value, "ppf") and not callable(value):  # a family is, and has no parameters
        return _Parameter(_range(name, value))
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        raise ConfigError(f"{name} must be a range, a list, or a distribution of SciPy, but got {value!r}")
    return _choices([plain_value(choice) for choice in value])


def _choices(values: Sequence[Any]) -> _Parameter:
    if all(map(is_choice, values)):
        return _Parameter(Categorical(tuple(values)))
    labels: list[Choice] = [value if is_choice(value) else f"{i}: {value!r}" for i, value in enumerate(values)]
    return _Parameter(Categorical(tuple(labels)), dict(zip(labels, values, strict=True)))


def _range(name: str, distribution: Any) -> Float | Int:
    """Returns the range of a distribution of SciPy."""
    family = getattr(getattr(distribution, "dist", None), "name", "")
    low, high = distribution.support() if family in _SUPPORT else distribution.ppf([_TAIL, 1 - _TAIL])
    if not np.isfinite([low, high]).all():
        raise ConfigError(f"the distribution of {name} must have finite quantiles, but they are {low} and {high}")
    if hasattr(getattr(distribution, "dist", None), "pmf"):
        return Int(int(low), int(high))
    return Float(float(low), float(high), log=family in ("loguniform", "reciprocal"))
