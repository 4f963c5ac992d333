"""Search spaces from the descriptors of meta-datasets: `meta-dataset-descriptors.json`, HPO-B's form.

A descriptor gives the range of every number before and after the transformation ln(x + 1e-4), and the levels of every
categorical. Descriptors of this library also say whether a number is whole, and when a hyperparameter is active.
"""

from collections.abc import Mapping
from typing import Any

from dre_jax.data.columns import columns_of
from dre_jax.data.raw_columns import LOG_OFFSET
from dre_jax.data.scale import Scale
from dre_jax.errors import DataError
from dre_jax.space.encoding import Code, LevelCode, NumberCode
from dre_jax.space.parameters import Categorical, Float, Int, Parameter
from dre_jax.space.space import Space


def from_descriptor(descriptor: Mapping[str, Any]) -> Space:
    """The space that a descriptor with kinds and conditions describes, encoded as its tables are.

    Raises `DataError` for a descriptor without kinds, as HPO-B's own are; see `dre_jax.space.hpob`.
    """
    try:
        columns = columns_of(descriptor)
        variables, logs = descriptor["variables"], set(descriptor["variables_to_apply_log"])
        parameters: dict[str, Parameter] = {}
        codes: dict[str, Code] = {}
        for name in dict.fromkeys(column.parent for column in columns):
            parameters[name], codes[name] = _read(variables[name], name in logs)
        return Space(parameters, codes=codes, order=[column.name for column in columns])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"a descriptor must say of each variable its kind and range, but: {error!r}") from error


def _read(variable: Mapping[str, Any], log: bool) -> tuple[Parameter, Code]:
    condition = variable.get("condition")
    when = None if condition is None else {condition["variable"]: tuple(condition["levels"])}
    if variable["kind"] == "categorical":
        levels = tuple(map(str, variable["categories"]))
        return Categorical(levels, when=when), LevelCode(levels, levels)
    low, high = variable["min_before_tf"], variable["max_before_tf"]
    code = NumberCode(Scale(float(low), float(high), log, LOG_OFFSET if log else 0.0), missing=when is not None)
    return (Int if variable["kind"] == "integer" else Float)(low, high, log=log, when=when), code
