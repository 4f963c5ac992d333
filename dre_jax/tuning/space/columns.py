"""Columns of one hyperparameter, and the value that they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dre_jax.data.columns import Column, level_column, missing_column
from dre_jax.tuning.space.encoding import INVALID, Code, LevelCode, NumberCode
from dre_jax.tuning.space.parameters import Categorical, Int, Parameter
from dre_jax.tuning.space.scalars import Choice
from dre_jax.tuning.space.values import nearest_value


def columns_of(name: str, parameter: Parameter, code: Code, own_code: bool) -> Iterator[Column]:
    """Yields the columns of a hyperparameter; ``own_code`` if its code is not the default one."""
    if isinstance(code, NumberCode):
        yield Column(name, "int" if isinstance(parameter, Int) else "float", name, code.scale.log)
        if code.missing:
            yield Column(missing_column(name), "missing", name)
    elif isinstance(parameter, Categorical) and parameter.ordered and not own_code:
        yield Column(name, "ordinal", name)
        if parameter.when:
            yield Column(missing_column(name), "missing", name)
    else:
        yield from (Column(level_column(name, level), "level", name) for level in code.columns)


def is_absent(name: str, code: Code, row: Mapping[str, float]) -> bool:
    """Returns whether columns, by name, say that a hyperparameter is not set, and none of its values says so."""
    if isinstance(code, NumberCode):
        return code.missing and code.unset is None and row[missing_column(name)] >= 0.5
    has_flag = INVALID in code.columns and INVALID not in code.names
    return has_flag and row[level_column(name, INVALID)] >= 0.5


def decode_value(name: str, parameter: Parameter, code: Code, own_code: bool, row: Mapping[str, float]) -> Choice:
    """Returns the value in columns, by name; ``own_code`` if the hyperparameter's code is not the default one."""
    if isinstance(parameter, Categorical):
        if parameter.ordered and not own_code:
            last = len(parameter.choices) - 1
            return parameter.choices[round(min(max(row[name], 0.0), 1.0) * last)]
        assert isinstance(code, LevelCode)
        strength = [row[level_column(name, level)] for level in code.names]
        return parameter.choices[int(np.argmax(strength))]
    assert isinstance(code, NumberCode)
    if code.unset is not None and code.missing and row[missing_column(name)] >= 0.5:
        return nearest_value(parameter, code.unset)
    x = code.scale.from_unit(min(max(row[name], 0.0), 1.0))
    return nearest_value(parameter, float(x))
