"""Search spaces as JSON."""

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from dre_jax.data.checks import show
from dre_jax.data.files import read_json, write_json
from dre_jax.data.scale import Scale
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.allowed import Allowed
from dre_jax.space.conditions import Interval
from dre_jax.space.counts import Count
from dre_jax.space.encoding import Code, LevelCode, NumberCode, OrderCode
from dre_jax.space.formulas import Formula
from dre_jax.space.parameters import Bool, Categorical, Float, Int, Parameter, Permutation
from dre_jax.space.rules import Forbidden, Less, Rule
from dre_jax.space.scalars import Choice
from dre_jax.space.space import Space
from dre_jax.space.sums import Sum

FORMAT = 1
_KINDS: dict[str, Any] = {
    "float": Float,
    "int": Int,
    "categorical": Categorical,
    "bool": Bool,
    "permutation": Permutation,
}


def to_json(space: Space) -> dict[str, Any]:
    """Returns a space as JSON. Raises `ConfigError` for a formula that is a function."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "parameters": {name: _parameter(parameter) for name, parameter in space.items()},
    }
    if space.rules:
        content["rules"] = [_rule(rule) for rule in space.rules]
    if space.codes:
        content["codes"] = {name: _code(code) for name, code in space.codes.items()}
        content["columns"] = [column.name for column in space.columns]
    return content


def from_json(content: Any) -> Space:
    """Returns the space in the content of `to_json`, or in a plain mapping of names to parameters.

    Raises `ConfigError` for anything else; the message names the hyperparameter.
    """
    if not isinstance(content, Mapping):
        raise ConfigError(f"a space must be a JSON object, but got {show(content)}")
    entries = content.get("parameters")
    if not isinstance(entries, Mapping) or isinstance(
        entries.get("type"), str
    ):  # a hyperparameter may be called "parameters"
        return Space({name: _from_parameter(name, value) for name, value in content.items()})
    if content.get("format", FORMAT) != FORMAT:
        raise ConfigError(f"a space must be of format {FORMAT}, but got {show(content['format'])}")
    unknown = set(content) - {"format", "parameters", "rules", "codes", "columns"}
    if unknown:
        raise ConfigError(f"a space has format, parameters, rules, codes and columns, but got {_names(unknown)}")
    parameters = {name: _from_parameter(name, value) for name, value in entries.items()}
    rules = content.get("rules", [])
    rules = [_from_rule(rule) for rule in (rules if isinstance(rules, list) else [rules])]
    if "codes" not in content:
        return Space(parameters, rules=rules)
    try:
        codes = {name: _from_code(value) for name, value in content["codes"].items()}
        return Space(parameters, codes=codes, order=[str(name) for name in content["columns"]], rules=rules)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"the codes of a space must be as they were written, but: {error!r}") from error


def read_space(path: str | os.PathLike[str]) -> Space:
    """Returns the space in a JSON file.

    Raises:
      DataError: if the file cannot be read or holds no space; the message names it.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
      ...     _ = file.write('{"layers": {"type": "int", "low": 1, "high": 8}}')
      ...     file.flush()
      ...     list(read_space(file.name))
      ['layers']
    """
    content = read_json(path)
    try:
        return from_json(content)
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from error


def write_space(path: str | os.PathLike[str], space: Space) -> None:
    """Writes a space as a JSON file, `path`.

    Raises:
      DataError: if it cannot be written.

    Example:
      >>> import tempfile
      >>> from dre_jax.tuning import Float
      >>> space = Space({"lr": Float(1e-5, 0.1, log=True)})
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     write_space(f"{folder}/space.json", space)
      ...     read_space(f"{folder}/space.json") == space
      True
    """
    write_json(Path(path), to_json(space), indent=1)


def _parameter(parameter: Parameter) -> dict[str, Any]:
    set_fields = {"type": type(parameter).__name__.lower(), **parameter.set_fields}
    if parameter.when:
        alternatives = [
            {name: _condition(values) for name, values in alternative} for alternative in parameter.alternatives
        ]
        set_fields["when"] = alternatives[0] if len(alternatives) == 1 else alternatives
    return {name: list(value) if isinstance(value, tuple) else value for name, value in set_fields.items()}


def _condition(values: tuple[Choice, ...] | Interval) -> list[Choice] | dict[str, float]:
    if isinstance(values, Interval):
        return {name: bound for name, bound in vars(values).items() if bound is not None}
    return list(values)


def _from_parameter(name: Any, content: Any) -> Parameter:
    kind = content.get("type") if isinstance(content, Mapping) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        rule = "a hyperparameter must have a type, float, int, categorical, bool or permutation"
        raise ConfigError(f"{name}: {rule}, but got {show(content)}")
    fields = {field: value for field, value in content.items() if field != "type"}
    options = inspect.signature(_KINDS[kind]).parameters
    unknown = fields.keys() - options.keys()
    if unknown:
        raise ConfigError(f"{name}: a hyperparameter of type {kind} has {_names(options)}, but got {_names(unknown)}")
    try:
        parameter: Parameter = _KINDS[kind](**fields)
    except TypeError as error:
        raise ConfigError(f"{name}: {str(error).partition('() ')[2] or error}") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    return parameter


def _rule(rule: Rule) -> dict[str, Any]:
    if isinstance(rule, Less):
        return {"less": [rule.smaller, rule.larger]} | ({"or_equal": True} if rule.or_equal else {})
    if isinstance(rule, Sum):
        bounds = {name: bound for name, bound in vars(rule).items() if bound is not None}
        return {"sum": dict(bounds.pop("weights")), **bounds}
    if isinstance(rule, Count):
        bounds = {name: bound for name, bound in vars(rule).items() if bound is not None}
        return {"count": _unused(bounds.pop("unused")), **bounds}
    if isinstance(rule, Formula):
        if not isinstance(rule.formula, str):
            rule_of_files = "formulas in files must be text, as Formula('x * y <= 8')"
            raise ConfigError(f"{rule_of_files}, but {str(rule)!r} is a function")
        return {"formula": rule.formula}
    if isinstance(rule, Allowed):
        return {"allowed": list(map(dict, rule.rows))}
    return {"forbidden": {name: list(values) for name, values in rule.values}}


def _from_rule(content: Any) -> Rule:
    match content:
        case {"forbidden": Mapping() as values, **others} if not others:
            return Forbidden(values)
        case {"less": [str(smaller), str(larger)], **others} if set(others) <= {"or_equal"}:
            return Less(smaller, larger, bool(others.get("or_equal")))
        case {"sum": weights, **bounds} if set(bounds) <= {"at_least", "at_most", "equals"}:
            return Sum(weights, **cast("dict[str, Any]", bounds))
        case {"count": unused, **bounds} if set(bounds) <= {"at_least", "at_most", "equals"}:
            return Count(unused, **cast("dict[str, Any]", bounds))
        case {"formula": str(formula), **others} if not others:
            return Formula(formula)
        case {"allowed": rows, **others} if not others:
            return Allowed(rows)
    sums = "{'sum': [...], 'at_most': x}, {'count': [...], 'at_most': n}, {'formula': 'x * y <= 8'}"
    kinds = f"{{'forbidden': {{...}}}}, {{'less': [name, name]}}, {sums} or {{'allowed': [{{...}}]}}"
    raise ConfigError(f"a rule must be {kinds}, but got {show(content)}")


def _unused(items: tuple[tuple[str, Any], ...]) -> list[Any] | dict[str, Any]:
    """Returns the names of a count, with the values that mean not in use where the rule names them."""
    if all(value is ... for _, value in items):
        return [name for name, _ in items]
    return dict(items)


def _code(code: Code) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(code).items()}


def _from_code(content: Mapping[str, Any]) -> Code:
    if "names" in content:
        return LevelCode(tuple(map(str, content["names"])), tuple(map(str, content["columns"])))
    if "items" in content:
        return OrderCode(tuple(map(str, content["items"])), bool(content["missing"]))
    scale, unset = content["scale"], content["unset"]
    low, high, offset = (float(scale[name]) for name in ("low", "high", "offset"))
    return NumberCode(
        Scale(low, high, bool(scale["log"]), offset),
        float(content["empty"]),
        bool(content["missing"]),
        None if unset is None else float(unset),
    )


def _names(names: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, names)))
