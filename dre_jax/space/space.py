"""Search spaces of hyperparameters, and their encoding as columns in [0, 1].

Columns are HPO-B's (Pineda Arango et al., HPO-B, NeurIPS 2021 Datasets and Benchmarks): a number is scaled by its
bounds, after a logarithm if it has one; a categorical is one-hot; `NAME.na` is 1 where a conditional number is
inactive, and `NAME.ohe._INVALID` where a conditional categorical is. A permutation, which HPO-B does not have, has a
column for each pair of its items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.data.checks import show
from dre_jax.data.columns import Column
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.conditions import describe_conditions
from dre_jax.space.encoding import Code, check_code, default_code, layout_part, ordered_columns
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.parameters import Categorical, Float, Int, Parameter, Permutation
from dre_jax.space.projection import allowed_points
from dre_jax.space.rules import Rule, check_rule
from dre_jax.space.scalars import Value
from dre_jax.space.sobol import sobol_points
from dre_jax.space.values import (
    checked_value,
    nearest_value,
    number_of,
    numbers_of,
    parents_first,
    unreadable_reasons,
)

Params = dict[str, Value]
"""A configuration: values by name, of the hyperparameters that are active."""
_POINTS = 64  # drawn at first for the rules


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
          rules: further rules of configurations: `dre_jax.tuning.Forbidden`, `Less`, `Sum`, `Count`,
            `Formula` and `Allowed`.

        Raises:
          ConfigError: for an empty space, or an invalid name. For a condition on a hyperparameter that is not in the
            space, has no such value, has no levels, or depends on itself. For a rule that is not about the
            hyperparameters, rules that nothing satisfies, or default values that a rule forbids.
        """
        if not isinstance(parameters, Mapping) or not parameters:
            raise ConfigError(f"a space must map at least one name to a hyperparameter, but got {parameters!r}")
        for name, parameter in parameters.items():
            if not isinstance(name, str) or not name:
                raise ConfigError(f"the name of a hyperparameter must be text, but got {name!r}")
            if not isinstance(parameter, (Float, Int, Categorical, Permutation)):
                entry = f"{name!r} is {parameter!r}"
                raise ConfigError(f"a hyperparameter must be a Float, Int, Categorical or Permutation, but {entry}")
        self._parameters = dict(parameters)
        self.codes: Mapping[str, Code] = dict(codes or {})
        """Encodings other than the default ones."""
        for name, code in self.codes.items():
            if name not in self._parameters:
                raise ConfigError(f"a code must be of a hyperparameter of the space, but got one of {name!r}")
            check_code(name, self._parameters[name], code)
        self.sequence = parents_first(self._parameters)
        """The names with parents first; points have this order."""
        self._position = {name: i for i, name in enumerate(self.sequence)}
        if not isinstance(rules, Iterable):
            raise ConfigError(f"the rules of a space must be a list of them, but got {rules!r}")
        self.rules: tuple[Rule, ...] = tuple(check_rule(rule, self._parameters) for rule in rules)
        """What configurations must satisfy, beside bounds and conditions."""
        code_of = {name: self.code(name) for name in self._parameters}
        self.columns: tuple[Column, ...] = ordered_columns(self._parameters, code_of, order)
        """Descriptions of the D columns."""
        self._order = tuple(column.name for column in self.columns)
        self.defaults = {name: p.default for name, p in self._parameters.items() if p.has_default}
        """The default values by name, of the hyperparameters that have one."""
        self._check_defaults()
        if self.rules:  # raises where none is allowed
            allowed_points(self.layout, lambda n: sobol_points(n, len(self), 0), _POINTS)

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

    @cached_property
    def layout(self) -> SpaceLayout:
        """The layout of the unit cube with the columns of this space."""
        return self.layout_in(self)

    def layout_in(self, target: Space) -> SpaceLayout:
        """Returns the layout of the unit cube with the columns of another space; see `mismatches`."""
        position = {column.name: i for i, column in enumerate(target.columns)}
        parts = []
        for name in self.sequence:
            parameter = self._parameters[name]
            conditions = tuple(
                tuple(
                    (self._position[parent], numbers_of(self._parameters[parent], values))
                    for parent, values in alternative
                )
                for alternative in parameter.alternatives
            )
            parts.append(layout_part(name, parameter, target[name], target.code(name), position, conditions))
        rules = tuple(rule.in_layout(self._parameters, self._position) for rule in self.rules)
        return SpaceLayout(tuple(parts), len(target.columns), rules)

    def code(self, name: str) -> Code:
        """Returns the encoding of a hyperparameter."""
        return self.codes[name] if name in self.codes else default_code(self._parameters[name])

    def check(self, params: Mapping[str, Any], *, absent: Collection[str] = (), rules: bool = True) -> Params:
        """Returns a configuration with values of the declared types, in the space's order.

        Args:
          params: values by name.
          absent: hyperparameters that may be missing, and with them those that depend on them.
          rules: whether the rules must allow the configuration. Those of a past study need not: rules may be newer.

        Raises:
          DataError: for a hyperparameter that is unknown, missing or inactive, or a value that it does not take; the
            message names it. For a configuration that a rule forbids.
        """
        self._check_mapping(params)
        checked_params: Params = {}
        missing: set[str] = set()
        for name in self.sequence:
            parameter = self._parameters[name]
            active = self.is_active(name, checked_params, missing)
            if active and name in params:
                checked_params[name] = checked_value(name, parameter, params[name])
            elif active and (name in absent or not missing.isdisjoint(parameter.parents)):
                missing.add(name)
            elif active:
                raise DataError(f"a configuration must give every active hyperparameter, but {name!r} is missing")
            elif name in params:
                when = describe_conditions(parameter.alternatives)
                raise DataError(f"{name!r} is active only for {when}, but got {name}={params[name]!r}")
        checked_params = {name: checked_params[name] for name in self if name in checked_params}
        if rules:
            self._check_rules(checked_params)
        return checked_params

    def check_part(self, params: Mapping[str, Any]) -> Params:
        """Returns a part of a configuration with values of the declared types.

        Raises:
          DataError: for a hyperparameter that is unknown, or a value that it does not take; the message names it. For
            values that a rule forbids.
        """
        self._check_mapping(params)
        checked_params = {name: checked_value(name, self._parameters[name], value) for name, value in params.items()}
        self._check_rules(checked_params, partial=True)
        return checked_params

    def allows(self, params: Params) -> bool:
        """Returns whether a configuration of `check` satisfies all rules."""
        return next(self._violated_rules(params), None) is None

    def _check_mapping(self, params: object) -> None:
        if not isinstance(params, Mapping):
            raise DataError(f"a configuration must map names to values, but got {show(params)}")
        self.check_names(params)

    def check_names(self, names: Iterable[str]) -> None:
        """Checks that names are those of hyperparameters. Raises `DataError`; the message has the first other one."""
        unknown = [name for name in names if name not in self._parameters]
        if unknown:
            raise DataError(f"hyperparameters are {', '.join(self)}, but got {unknown[0]!r}")

    def _check_defaults(self) -> None:
        active = self.active_part(self.defaults)
        for rule in self._violated_rules(active, partial=True):
            values = {name: active[name] for name in rule.names}
            raise ConfigError(f"default values must satisfy {str(rule)!r}, but are {values!r}")

    def _check_rules(self, params: Params, *, partial: bool = False) -> None:
        for rule in self._violated_rules(params, partial=partial):
            raise DataError(f"a configuration must satisfy {str(rule)!r}, but got {params!r}")

    def _violated_rules(self, params: Params, *, partial: bool = False) -> Iterator[Rule]:
        """Yields the rules that a configuration violates; of a part, those whose hyperparameters it has."""
        if not self.rules:
            return
        values, active = self._numbers(params)
        parts = self.layout.parts
        for rule, layout_rule in zip(self.rules, self.layout.rules, strict=True):
            is_complete = not partial or params.keys() >= set(rule.names)
            if is_complete and not layout_rule.allows(parts, values, active):
                yield rule

    def _numbers(self, params: Params) -> tuple[list[float], list[bool]]:
        """Returns the levels and numbers of a configuration as its layout has them, with masks of those that it has."""
        parameters = self._parameters
        values = [number_of(parameters[name], params[name]) if name in params else 0.0 for name in self.sequence]
        return values, [name in params for name in self.sequence]

    def encode(self, params: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Returns the columns f64[D] of a configuration. Raises `DataError` as `check` does without rules."""
        return self.encode_rows([self.check(params, rules=False)])[0]

    def encode_rows(self, configurations: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.float64]:
        """Returns the columns f64[n, D] of configurations of `check`; missing values count as inactive."""
        points, masks = np.full((len(configurations), len(self)), 0.5), []
        for i, (name, part) in enumerate(zip(self.sequence, self.layout.parts, strict=True)):
            masks.append(np.array([name in params for params in configurations], bool))
            numbers = [number_of(self._parameters[name], params[name]) for params in configurations if name in params]
            points[masks[-1], i] = part.coordinates(np.array(numbers, np.float64))
        return np.asarray(self.layout.columns(points.clip(0.0, 1.0), active=masks))

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
        params: Params = {}
        for name, part in zip(self.sequence, self.layout.parts, strict=True):
            number = part.decode(values, or_inactive=drop_absent) if self.is_active(name, params) else None
            if number is not None:
                params[name] = nearest_value(self._parameters[name], number)
        return {name: params[name] for name in self if name in params}

    def point(self, params: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Returns the point f64[P] of a configuration, 0.5 where inactive; see `dre_jax.space.layout`.

        Raises `DataError` as `check` does without rules.
        """
        params = self.check(params, rules=False)
        parts = zip(self.layout.parts, *self._numbers(params), strict=True)
        coordinates = [part.coordinates(number) if is_active else 0.5 for part, number, is_active in parts]
        return np.array(coordinates, np.float64).clip(0.0, 1.0)

    def coordinate(self, name: str, value: Any) -> float:
        """Returns the coordinate of a hyperparameter's value. Raises `DataError` as `check` does."""
        parameter = self._parameters[name]
        number = number_of(parameter, checked_value(name, parameter, value))
        return min(max(float(self.layout.parts[self._position[name]].coordinates(number)), 0.0), 1.0)

    def coordinates(self, values: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Returns the coordinates f64[P] of fixed values, NaN elsewhere. Raises `DataError` as `check` does."""
        return np.array([self.coordinate(name, values[name]) if name in values else np.nan for name in self.sequence])

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
        ignored_names = self._parameters.keys() - params.keys() if partial else set[str]()
        for name in self.sequence:
            if name in active and not self.is_active(name, active, ignored_names):
                del active[name]
        return active

    def params(self, point: npt.NDArray[Any]) -> Params:
        """Returns the configuration at a point f[P]."""
        point = np.asarray(point, np.float64)
        active, numbers = self.layout.active(point), self.layout.values(point)
        values: Params = {
            name: nearest_value(self._parameters[name], float(number))
            for name, is_active, number in zip(self.sequence, active, numbers, strict=True)
            if is_active
        }
        values = self.exact(values)
        return {name: values[name] for name in self if name in values}

    def exact(self, params: Params) -> Params:
        """Returns a configuration that satisfies the rules to the last digits, if it nearly does."""
        if not self.rules:
            return params
        values, active = self._numbers(params)
        changed: dict[int, float] = {}
        for rule in self.layout.rules:
            for i, value in rule.exact(self.layout.parts, values, active).items():
                values[i] = changed[i] = value
        return params | {self.sequence[i]: value for i, value in changed.items()}

    def is_reordered(self, other: Space) -> bool:
        """Returns whether another space has the same hyperparameters and encodings, in this or another order."""
        same = self._parameters == other._parameters and self.codes == other.codes
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
                reasons += unreadable_reasons(name, self._parameters[name], other[name])
        return reasons

    def require_encodes(self, other: Space) -> None:
        """Raises `DataError` if a surrogate's space, this one, has `mismatches`; the message says what to do."""
        if mismatches := self.mismatches(other):
            remedy = "surrogate.for_space(space) learns anew from the past studies that it keeps"
            command = "dre-jax meta-train --from-surrogate on the command line"
            differ = f"the surrogate must know the space, but they differ: {', '.join(mismatches)}"
            raise DataError(f"{differ}; {remedy} ({command})")

    @property
    def size(self) -> float:
        """Number of configurations, an upper bound with conditions; infinity with a real number."""
        return self.layout.size

    def is_active(self, name: str, params: Mapping[str, Any], ignored_names: Set[str] = frozenset()) -> bool:
        """Returns whether the conditions of a hyperparameter hold, except those on ``ignored_names``.

        Conditions on invalid values hold: `check` rejects these.
        """
        if not self._parameters[name].when:
            return True
        i, values, ignored = self._position[name], dict[int, float](), set[int]()
        parents = self.layout.parts[i].parents
        for parent in parents:
            parent_name = self.sequence[parent]
            try:
                is_given, parameter = parent_name in params, self._parameters[parent_name]
                values[parent] = number_of(parameter, params[parent_name]) if is_given else 0.0
            except (TypeError, ValueError, OverflowError):
                ignored.add(parent)
            if parent_name in ignored_names:
                ignored.add(parent)
        active = {parent: self.sequence[parent] in params for parent in parents}
        return bool(self.layout.conditions_hold(i, values, active, ignored))
