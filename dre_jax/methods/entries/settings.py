"""Fields of a method's configuration by dotted name: set, from values or their text, and listed."""

import ast
import contextlib
import dataclasses
import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dre_jax.errors import ConfigError

Settings = Mapping[str, object]
"""Value, or its text, by dotted field: `{"fine_tuning.epochs": 10, "acquisition.kind": "ei"}`."""

Config = TypeVar("Config")
_NOT_OF_THE_TYPE = (ValueError, TypeError, OverflowError)
_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "none"}


def parse(texts: Iterable[str]) -> dict[str, object]:
    """Returns settings from texts `FIELD=VALUE`.

    Raises `ConfigError` for a text of another form, or a field that is named twice.

    Example:
      >>> parse(["acquisition.beta=2"])
      {'acquisition.beta': '2'}
    """
    settings: dict[str, object] = {}
    for text in texts:
        field, equals, value = text.partition("=")
        if not field or not equals:
            raise ConfigError(f"a setting must be FIELD=VALUE, but got {text!r}")
        if field in settings:
            raise ConfigError(f"a field must be set once, but got {field}={settings[field]} and {text}")
        settings[field] = value
    return settings


def configure(config: Config, settings: Settings, *, name: str, short: Iterable[str] = ()) -> Config:
    """Returns a copy of a method's configuration with other values, or their text, in some of its fields.

    The configuration is a frozen dataclass; its fields may be dataclasses too, or tuples of them
    (`hypotheses.0.slope_mean`). The value of such a field may be JSON, as `config_to_json` returns it. Messages call
    the method ``name``, and list its ``short`` settings too. Raises `ConfigError` for an unknown field, or a value of
    another type or out of range.
    """
    return _replace(config, {tuple(path.split(".")): value for path, value in settings.items()}, name, "", tuple(short))


def config_to_json(config: Any) -> dict[str, Any]:
    """Returns every field of a configuration, as JSON that `configure` reads.

    Raises `TypeError` and `ValueError` for values that JSON does not have.
    """
    text = json.dumps(dataclasses.asdict(config), allow_nan=False, default=np.generic.item)
    content: dict[str, Any] = json.loads(text)
    return content


def leaves(config: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yields every field that `configure` can set: its dotted name and its value.

    Example:
      >>> from dre_jax.search import AcquisitionConfig
      >>> dict(leaves(AcquisitionConfig()))
      {'kind': 'lcb', 'beta': 1.0}
    """
    for field in _types(config):
        value = _get(config, field)
        if _is_nested(value):
            yield from leaves(value, f"{path}{field}.")
        else:
            yield f"{path}{field}", value


def to_text(value: object) -> str:
    """Returns the text of a field's value, which `configure` reads as that value."""
    if isinstance(value, tuple):
        return ",".join(map(to_text, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def convert(kind: Any, value: object, field: str) -> Any:
    """Returns a value, or its text, as an annotation says: int, float, bool, str, None, Literal, tuple, union, Any.

    Raises `ConfigError` for a value of another type; the message names the field.
    """
    try:
        return _read(kind, value)
    except _NOT_OF_THE_TYPE:
        raise ConfigError(f"{field} must be {_describe_type(kind)}, but got {value!r}") from None


def unknown_setting(setting: str, settings: Iterable[str], name: str) -> ConfigError:
    """Returns the error for an unknown setting; the message names the known settings, and the nearest one."""
    settings = tuple(settings)
    rule = f"{name} takes {', '.join(settings) or 'no settings'}"
    return ConfigError(f"{rule}, but got {setting!r}{did_you_mean(setting, settings)}")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns the nearest of some names as a hint; empty if none is near.

    Example:
      >>> did_you_mean("dree", ["dre", "gp"])
      ' (did you mean dre?)'
    """
    near = difflib.get_close_matches(name, tuple(names), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _replace(
    config: Any, settings: Mapping[tuple[str, ...], object], name: str, path: str, short: Iterable[str]
) -> Any:
    types, by_field = _types(config), dict[str, dict[tuple[str, ...], object]]()
    for (field, *rest_of_path), value in settings.items():
        by_field.setdefault(field, {})[tuple(rest_of_path)] = value
    changes = {}
    for field, inner in by_field.items():
        where, nested = f"{path}{field}", field in types and _is_nested(_get(config, field))
        whole = inner.get(())
        if nested and isinstance(whole, Mapping):
            inner = {(name,): value for name, value in whole.items()}
        if nested and isinstance(whole, list):
            changes[field] = convert(types[field], whole, f"{name}: {where}")
        elif nested and () not in inner:
            changes[field] = _replace(_get(config, field), inner, name, f"{where}.", ())
        elif field in types and not nested and set(inner) == {()}:
            changes[field] = convert(types[field], inner[()], f"{name}: {where}")
        else:
            unknown_path = min(inner, key=len) if nested else max(inner, key=len)
            fields = (f"{path}{kind}{'.*' if _is_nested(_get(config, kind)) else ''}" for kind in types)
            raise unknown_setting(".".join((where, *unknown_path)), (*short, *fields), name)
    if isinstance(config, tuple):
        return tuple(changes.get(str(i), item) for i, item in enumerate(config))
    return dataclasses.replace(config, **changes) if changes else config


def _types(config: object) -> dict[str, Any]:
    """Returns annotations of the fields of a dataclass, or the classes of a tuple's items by their positions."""
    if isinstance(config, tuple):
        return {str(i): type(item) for i, item in enumerate(config)}
    if not dataclasses.is_dataclass(config):
        return {}
    hints = get_type_hints(type(config))
    return {field.name: hints[field.name] for field in dataclasses.fields(config)}


def _get(config: Any, field: str) -> Any:
    return config[int(field)] if isinstance(config, tuple) else getattr(config, field)


def _is_nested(value: object) -> bool:
    """Returns whether a value has fields of its own: a dataclass, or a tuple of them."""
    parts = value if isinstance(value, tuple) and value else (value,)
    return all(dataclasses.is_dataclass(part) for part in parts)


def _read(kind: Any, value: Any) -> Any:
    """Returns the value as a type; raises one of `_NOT_OF_THE_TYPE` for a value of another type."""
    text, arguments = isinstance(value, str), get_args(kind)
    if kind is Any:
        return _literal(value) if text else value
    if get_origin(kind) in (Union, UnionType):
        for alternative in arguments:
            with contextlib.suppress(*_NOT_OF_THE_TYPE):
                return _read(alternative, value)
        raise ValueError
    if get_origin(kind) is tuple:
        items = [part.strip() for part in value.split(",") if part.strip()] if text else list(value)
        kinds = arguments[:1] * len(items) if arguments[-1] is ... else arguments
        return tuple(_read(item_kind, item) for item_kind, item in zip(kinds, items, strict=True))
    if get_origin(kind) is Literal and value in arguments:
        return value
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        types = get_type_hints(kind)
        return kind(**{name: _read(types.get(name), item) for name, item in value.items()})
    if text and kind in (bool, NoneType):
        value = {"true": True, "false": False, "none": None}.get(value.lower(), value)
    if isinstance(kind, type) and kind not in (int, float) and isinstance(value, kind):
        return value
    if kind in (int, float) and isinstance(value, (str, Real)) and not isinstance(value, bool):
        number = kind(value)
        if math.isfinite(number) and (text or number == value):
            return number
    raise ValueError


def _literal(text: str) -> object:
    """Returns the Python literal in a text, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _describe_type(kind: Any) -> str:
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(map(_describe_type, arguments))
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if get_origin(kind) is tuple:
        number = "any number of" if arguments[-1] is ... else str(len(arguments))
        return f"{number} values separated by commas, each {_describe_type(arguments[0])}"
    return _WORDS.get(kind, getattr(kind, "__name__", str(kind)))
