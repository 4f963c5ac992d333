"""Search spaces of hyperparameters, and their encoding as columns in [0, 1].

Columns are HPO-B's (Pineda Arango et al., HPO-B, NeurIPS 2021 Datasets and Benchmarks): a number is scaled by its
bounds, after a logarithm if it has one; a categorical is one-hot; `NAME.na` is 1 where a conditional number is
inactive, and `NAME.ohe._INVALID` where a conditional categorical is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.data.columns import Column, level_column, missing_column
from dre_jax.data.scale import Scale
from dre_jax.errors import ConfigError, DataError
from dre_jax.search.layout import Level, Number, SpaceLayout
from dre_jax.tuning.space.encoding import INVALID, Code, LevelCode, NumberCode, check_code, level_part, number_part
from dre_jax.tuning.space.parameters import (
    Categorical,
    Choice,
    Float,
    Int,
    Parameter,
    is_finite,
    levels_of,
    plain_value,
    value_at_step,
)
from dre_jax.tuning.space.rules import Rule, check_rule, layout_rule

Params = dict[str, Choice]
"""A configuration: values by name, of the hyperparameters that are active."""


class Space(Mapping[str, Parameter]):
    """Hyperparameters by name.

    Example:
      >>> space = Space({"C": Float(1e-3, 1e3, log=True), "kernel": Categorical(["rbf", "poly"]),
      ...                "degree": Int(2, 5, when={"kernel": "poly"})})
      >>> [column.name for column in space.columns]
      ['C', 'kernel.ohe._rbf', 'kernel.ohe._poly', 'degree', 'degree.na']
      >>> space.encode({"C": 1.0, "kernel": "rbf"}).tolist()
      [0.5, 1.0, 0.0, 0.0, 1.0]
      >>> space.decode([0.5, 0.0, 1.0, 1.0, 0.0])
      {'C': 1.0, 'kernel': 'poly', 'degree': 5}
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        *,
        codes: Mapping[str, Code] | None = None,
        order: Sequence[str] | None = None,
        rules: Iterable[Rule] = (),
    ) -> None:
        """Creates a search space.

        Args:
          parameters: hyperparameters by name.
          codes: encodings other than the default ones, as those of existing meta-datasets.
          order: names of all columns, if they do not follow the order of the hyperparameters.
          rules: forbidden combinations and orders of numbers, `dre_jax.tuning.Forbidden` and `Less`.

        Raises:
          ConfigError: for an empty space, a name that is none, a condition on a hyperparameter that is not there, has
            no such value, has no levels, or depends on itself, or a rule that is not about the hyperparameters.
        """
        if not isinstance(parameters, Mapping) or not parameters:
            raise ConfigError(f"a space must map at least one name to a hyperparameter, but got {parameters!r}")
        for name, parameter in parameters.items():
            if not isinstance(name, str) or not name:
                raise ConfigError(f"the name of a hyperparameter must be text, but got {name!r}")
            if not isinstance(parameter, (Float, Int, Categorical)):
                entry = f"{name!r} is {parameter!r}"
                raise ConfigError(f"a hyperparameter must be a Float, Int or Categorical, but {entry}")
        self._parameters = dict(parameters)
        self._codes = dict(codes or {})
        for name, code in self._codes.items():
            if name not in self._parameters:
                raise ConfigError(f"a code must be of a hyperparameter of the space, but got one of {name!r}")
            check_code(name, self._parameters[name], code)
        self._sequence = _parents_first(self._parameters)
        self.rules: tuple[Rule, ...] = tuple(check_rule(rule, self._parameters) for rule in rules)
        """Forbidden combinations and orders of numbers."""
        columns = [column for name in self._parameters for column in self._columns_of(name)]
        self._order = tuple(column.name for column in columns) if order is None else tuple(order)
        by_name = {column.name: column for column in columns}
        if len(by_name) < len(columns):
            raise ConfigError(f"columns must have different names, but got {[c.name for c in columns]}")
        if sorted(by_name) != sorted(self._order):
            raise ConfigError(f"the order must name the columns {', '.join(by_name)}, but got {', '.join(self._order)}")
        self.columns: tuple[Column, ...] = tuple(by_name[name] for name in self._order)
        """Descriptions of the D columns."""

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        return f"Space({self._parameters!r}{f', rules={list(self.rules)!r}' if self.rules else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return self.is_reordered(other) and self._order == other._order

    def __hash__(self) -> int:
        return hash((tuple(self._parameters.items()), self._order))

    @property
    def codes(self) -> Mapping[str, Code]:
        """Encodings other than the default ones."""
        return self._codes

    @property
    def sequence(self) -> tuple[str, ...]:
        """The names with parents first; points have this order."""
        return self._sequence

    @cached_property
    def layout(self) -> SpaceLayout:
        """The layout of the unit cube with the columns of this space."""
        return self.layout_in(self)

    def layout_in(self, target: Space) -> SpaceLayout:
        """Returns the layout of the unit cube with the columns of another space; see `mismatches`."""
        position = {column.name: i for i, column in enumerate(target.columns)}
        index = {name: i for i, name in enumerate(self._sequence)}
        parts: list[Number | Level] = []
        for name in self._sequence:
            parameter = self._parameters[name]
            conditions = tuple(
                (index[parent], tuple(_level(self._parameters[parent], value) for value in values))
                for parent, values in parameter.when
            )
            code = target.code(name) if name in target else None
            if isinstance(parameter, Categorical):
                theirs = parameter if code is None else target[name]
                assert isinstance(theirs, Categorical)
                own = name in target.codes
                parts.append(level_part(name, parameter, theirs, code, own, position, conditions))
            else:
                parts.append(number_part(name, parameter, code, position, conditions))
        rules = tuple(layout_rule(rule, self._parameters, index) for rule in self.rules)
        return SpaceLayout(tuple(parts), len(target.columns), rules)

    def code(self, name: str) -> Code:
        """The encoding of a hyperparameter."""
        parameter = self._parameters[name]
        if name in self._codes:
            return self._codes[name]
        if isinstance(parameter, Categorical):
            names = levels_of(parameter.choices)
            extra = (INVALID,) if parameter.when and not parameter.ordered else ()
            return LevelCode(names, (*names, *extra))
        return NumberCode(Scale(parameter.low, parameter.high, parameter.log), missing=bool(parameter.when))

    def check(self, params: Mapping[str, Any]) -> Params:
        """A configuration with values of the declared types, in the space's order.

        Raises:
          DataError: for a hyperparameter that is unknown, missing or inactive, or a value that it does not take; the
            message names it. For a configuration that a rule forbids.
        """
        checked = self._typed(params)
        self._check_rules(checked)
        return checked

    def allows(self, params: Params) -> bool:
        """Returns whether a configuration satisfies all rules."""
        return all(rule.allows(params) for rule in self.rules)

    def _check_rules(self, params: Params) -> None:
        for rule in self.rules:
            if not rule.allows(params):
                raise DataError(f"a configuration must satisfy {str(rule)!r}, but got {params!r}")

    def _typed(self, params: Mapping[str, Any]) -> Params:
        """Returns a configuration with values of the declared types, whether or not rules allow it."""
        if not isinstance(params, Mapping):
            raise DataError(f"a configuration must map names to values, but got {params!r}")
        self.check_names(params)
        checked: Params = {}
        for name in self._sequence:
            active = self._is_active(name, checked)
            if active and name not in params:
                raise DataError(f"a configuration must give every active hyperparameter, but {name!r} is missing")
            if active:
                checked[name] = _checked(name, self._parameters[name], params[name])
            elif name in params:
                when = " and ".join(f"{parent} in {list(values)!r}" for parent, values in self._parameters[name].when)
                raise DataError(f"{name!r} is active only for {when}, but got {name}={params[name]!r}")
        return {name: checked[name] for name in self if name in checked}

    def check_part(self, params: Mapping[str, Any]) -> Params:
        """Returns a part of a configuration with values of the declared types.

        Raises:
          DataError: for a hyperparameter that is unknown, or a value that it does not take; the message names it. For
            values that a rule forbids.
        """
        if not isinstance(params, Mapping):
            raise DataError(f"a configuration must map names to values, but got {params!r}")
        self.check_names(params)
        checked = {name: _checked(name, self._parameters[name], value) for name, value in params.items()}
        self._check_rules(checked)
        return checked

    def check_names(self, names: Iterable[str]) -> None:
        """Checks that names are those of hyperparameters. Raises `DataError`; the message has the first other one."""
        unknown = [name for name in names if name not in self._parameters]
        if unknown:
            raise DataError(f"hyperparameters are {', '.join(self)}, but got {unknown[0]!r}")

    def encode(self, params: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """The columns f64[D] of a configuration. Raises `DataError` as `check` does."""
        return np.asarray(self.layout.columns(self.point(params)))

    def decode(self, row: Sequence[float] | npt.NDArray[Any], *, drop_absent: bool = False) -> Params:
        """Returns the configuration of a row of columns; it is valid for any finite numbers.

        Args:
          row: [D]. Numbers are clipped and rounded to the nearest value; the largest one-hot column decides.
          drop_absent: leave out hyperparameters that their columns say are not set, and those that depend on them.

        Raises:
          DataError: if the number of columns differs, or a number is NaN.
        """
        try:
            values = np.asarray(row, np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.empty(0)
        if values.shape != (len(self.columns),) or np.isnan(values).any():
            raise DataError(f"a row must hold {len(self.columns)} numbers, but got {row!r}")
        of = dict(zip(self._order, values.tolist(), strict=True))
        decoded: Params = {}
        for name in self._sequence:
            if self._is_active(name, decoded) and not (drop_absent and self._is_absent(name, of)):
                decoded[name] = self._decode(name, of)
        return {name: decoded[name] for name in self if name in decoded}

    def point(self, params: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Returns the point f64[P] of a configuration, 0.5 where inactive; see `dre_jax.search.layout`.

        Rules need not allow it: they may be newer than a past study.
        """
        checked = self._typed(params)
        coordinates = np.full(len(self), 0.5)
        for i, name in enumerate(self._sequence):
            if name in checked:
                coordinates[i] = self._coordinate(i, checked[name])
        return coordinates

    def coordinate(self, name: str, value: Any) -> float:
        """Returns the coordinate of a hyperparameter's value. Raises `DataError` as `check` does."""
        return self._coordinate(self._sequence.index(name), _checked(name, self._parameters[name], value))

    def coordinate_of(self, name: str, value: Choice) -> float:
        """Returns the coordinate of a value between the bounds, which need not be at a step."""
        return self._coordinate(self._sequence.index(name), value)

    def _coordinate(self, i: int, value: Choice) -> float:
        parameter, part = self._parameters[self._sequence[i]], self.layout.parts[i]
        index = parameter.index(value) if isinstance(parameter, Categorical) else value
        return min(max(float(part.coordinates(np.float64(index))), 0.0), 1.0)

    def active_part(self, params: Mapping[str, Any], *, partial: bool = False) -> dict[str, Any]:
        """Returns a configuration without the values of inactive hyperparameters.

        Tables often have values in these cells, and tuners without conditions draw them.

        Args:
          params: values by name.
          partial: the configuration may lack hyperparameters, and conditions on these hold.

        Example:
          >>> space = Space({"kernel": Categorical(["rbf", "poly"]), "degree": Int(2, 5, when={"kernel": "poly"})})
          >>> space.active_part({"kernel": "rbf", "degree": 3})
          {'kernel': 'rbf'}
          >>> space.active_part({"degree": 3}), space.active_part({"degree": 3}, partial=True)
          ({}, {'degree': 3})
        """
        active = dict(params)
        ignored = self._parameters.keys() - params.keys() if partial else set[str]()
        for name in self._sequence:
            if name in active and not self._holds(name, active, ignored):
                del active[name]
        return active

    def _holds(self, name: str, values: Mapping[str, Any], ignored: Set[str]) -> bool:
        try:
            return self._is_active(name, dict(values), ignored)
        except (TypeError, ValueError):  # an invalid value of the parent, which `check` rejects
            return True

    def params(self, point: npt.NDArray[Any]) -> Params:
        """Returns the configuration at a point f[P]."""
        point = np.asarray(point, np.float64)
        active = self.layout.active(point)
        values: Params = {}
        for i, (name, part) in enumerate(zip(self._sequence, self.layout.parts, strict=True)):
            if active[i]:
                values[name] = _value(self._parameters[name], float(part.values(point[i])))
        return {name: values[name] for name in self if name in values}

    def is_reordered(self, other: Space) -> bool:
        """Returns whether another space has the same hyperparameters and encodings, in this or another order."""
        same = self._parameters == other._parameters and self._codes == other._codes
        return same and set(self.rules) == set(other.rules)

    def mismatches(self, other: Space) -> list[str]:
        """Returns the reasons why this space cannot encode configurations of another space; empty if it can.

        Numbers of the other space may have narrower bounds, and categoricals fewer choices.
        """
        reasons = [f"{name} (only in the surrogate)" for name in self if name not in other]
        for name in other:
            if name not in self:
                reasons.append(f"{name} (only here)")
            else:
                reasons += _unreadable(name, self._parameters[name], other[name])
        return reasons

    @cached_property
    def size(self) -> float:
        """Number of configurations, an upper bound with conditions; infinity with a real number."""
        return math.prod(float(size) or math.inf for size in self.layout.sizes)

    def _columns_of(self, name: str) -> Iterator[Column]:
        parameter, code = self._parameters[name], self.code(name)
        if isinstance(code, NumberCode):
            yield Column(name, "int" if isinstance(parameter, Int) else "float", name, code.scale.log)
            if code.missing:
                yield Column(missing_column(name), "missing", name)
        elif isinstance(parameter, Categorical) and parameter.ordered and name not in self._codes:
            yield Column(name, "ordinal", name)
            if parameter.when:
                yield Column(missing_column(name), "missing", name)
        else:
            yield from (Column(level_column(name, level), "level", name) for level in code.columns)

    def _is_active(self, name: str, config: Params, ignored: Set[str] = frozenset()) -> bool:
        """Returns whether the conditions of a hyperparameter hold, except those on ``ignored`` ones."""
        for parent, values in self._parameters[name].when:
            if parent in ignored:
                continue
            if parent not in config:
                return False
            own = self._parameters[parent]
            if _level(own, config[parent]) not in [_level(own, value) for value in values]:
                return False
        return True

    def _is_absent(self, name: str, of: Mapping[str, float]) -> bool:
        """Returns whether columns, by name, say that a hyperparameter is not set, and none of its values says so."""
        code = self.code(name)
        if isinstance(code, NumberCode):
            return code.missing and code.unset is None and of[missing_column(name)] >= 0.5
        has_flag = INVALID in code.columns and INVALID not in code.names
        return has_flag and of[level_column(name, INVALID)] >= 0.5

    def _decode(self, name: str, of: Mapping[str, float]) -> Choice:
        parameter, code = self._parameters[name], self.code(name)
        if isinstance(parameter, Categorical):
            if parameter.ordered and name not in self._codes:
                last = len(parameter.choices) - 1
                return parameter.choices[round(min(max(of[name], 0.0), 1.0) * last)]
            assert isinstance(code, LevelCode)
            strength = [of[level_column(name, level)] for level in code.names]
            return parameter.choices[int(np.argmax(strength))]
        assert isinstance(code, NumberCode)
        if code.unset is not None and code.missing and of[missing_column(name)] >= 0.5:
            return _value(parameter, code.unset)
        x = code.scale.from_unit(min(max(of[name], 0.0), 1.0))
        return _value(parameter, float(x))


def _level(parameter: Parameter, value: Any) -> int:
    """Returns the position of a choice, or a whole number itself: what conditions compare."""
    return parameter.index(value) if isinstance(parameter, Categorical) else int(value)


def _parents_first(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """The names, those that others depend on first."""
    for name, parameter in parameters.items():
        for parent, values in parameter.when:
            if not isinstance(parameters.get(parent), (Categorical, Int)):
                rule = "a hyperparameter can depend on a Categorical or an Int of its space"
                raise ConfigError(f"{rule}, but {name!r} depends on {parent!r}")
            for value in values:
                try:
                    _checked(parent, parameters[parent], value)
                except DataError as error:
                    raise ConfigError(f"{name!r} depends on {parent} = {value!r}, but {error}") from None
    order: dict[str, None] = {}
    while len(order) < len(parameters):
        ready = [
            name
            for name, parameter in parameters.items()
            if name not in order and all(parent in order for parent, _ in parameter.when)
        ]
        if not ready:
            remaining = [name for name in parameters if name not in order]
            raise ConfigError(f"a hyperparameter must not depend on itself, but {', '.join(remaining)} do")
        order |= dict.fromkeys(ready)
    return tuple(order)


def _checked(name: str, parameter: Parameter, value: Any) -> Choice:
    """The value as the hyperparameter has it."""
    value = plain_value(value)
    if isinstance(parameter, Categorical):
        try:
            return parameter.choices[parameter.index(value)]
        except (ValueError, TypeError):
            raise DataError(f"{name} must be one of {list(parameter.choices)!r}, but got {value!r}") from None
    rule = f"{name} must be a {'whole ' if isinstance(parameter, Int) else ''}number"
    rule = f"{rule} in [{parameter.low!r}, {parameter.high!r}]"
    if not is_finite(value):
        raise DataError(f"{rule}, but got {value!r}")
    room = 1e-9 * max(abs(parameter.low), abs(parameter.high))
    if not parameter.low - room <= value <= parameter.high + room:
        raise DataError(f"{rule}, but got {value!r}")
    number = _value(parameter, float(value) if isinstance(parameter, Float) else value)
    assert isinstance(number, (int, float))
    if abs(number - value) > 1e-6 * max(abs(parameter.step or 0.0), room):
        raise DataError(f"{rule} and steps of {parameter.step!r} from the lower bound, but got {value!r}")
    return number


def _value(parameter: Parameter, x: float) -> Choice:
    """Returns the value nearest to a number; for a categorical, the choice with this index."""
    if isinstance(parameter, Categorical):
        return parameter.choices[int(x)]
    x = min(max(x, parameter.low), parameter.high)
    if isinstance(parameter, Int):
        steps = round((x - parameter.low) / parameter.step)
        return min(parameter.low + steps * parameter.step, parameter.high)
    if parameter.step is None:
        return float(x)
    steps = round((x - parameter.low) / parameter.step)
    return min(value_at_step(parameter.low, parameter.step, steps), parameter.high)


def _unreadable(name: str, ours: Parameter, theirs: Parameter) -> Iterator[str]:
    """Yields the reasons why a hyperparameter of another space cannot be encoded."""
    if isinstance(ours, Categorical) != isinstance(theirs, Categorical):
        yield f"{name} ({_kind(theirs)} here, {_kind(ours)} in the surrogate)"
    elif isinstance(ours, Categorical) and isinstance(theirs, Categorical):
        unknown = [choice for choice in theirs.choices if not _has(ours, choice)]
        if unknown:
            yield f"{name} (choices {list(theirs.choices)!r} here, {list(ours.choices)!r} in the surrogate)"
    elif theirs.low < ours.low or theirs.high > ours.high:  # type: ignore[union-attr]
        here, there = (f"[{p.low!r}, {p.high!r}]" for p in (theirs, ours))  # type: ignore[union-attr]
        yield f"{name} ({here} here, {there} in the surrogate)"


def _has(parameter: Categorical, value: Choice) -> bool:
    try:
        parameter.index(value)
    except ValueError:
        return False
    return True


def _kind(parameter: Parameter) -> str:
    return {Float: "a number", Int: "a whole number", Categorical: "a categorical"}[type(parameter)]
