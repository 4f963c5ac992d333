"""Checks of what a method declares, made once, when it is registered or loaded."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any

from dre_jax.errors import ConfigError
from dre_jax.methods.settings import leaves

if TYPE_CHECKING:
    from dre_jax.methods.entry import Entry

_REQUIRED = {"fit": ("meta", "key"), "acquire": ("params", "history", "candidates", "key")}
_OPTIONAL = {
    "begin": ("params", "n_columns", "key"),
    "advance": ("state", "history", "candidates", "key"),
    "draw": ("params", "history", "candidates", "key"),
    "widen": ("params", "n_columns", "width"),
    "one_by_one": ("platform", "n_columns", "longest"),
    "tune": ("params", "history", "key"),
    "rate": ("tuned", "history", "candidates"),
    "tell": ("params",),
}
_FLAGS: dict[str, tuple[str, ...]] = {
    "transfer": (),
    "stateful": ("begin", "advance"),
    "widens": ("widen",),
    "tuned_per_slot": ("tune", "rate"),
    "double_precision": (),
    "differentiable": (),
}
"""Attributes of a method that are true or false, and the functions that one that is true needs."""


def check_entry(entry: Entry) -> None:
    """Checks that an entry has a method of the one protocol or a host method, with what the loops call.

    Raises:
      ConfigError: for a function that is missing or takes other arguments, or a flag that is neither true nor false.

    Example:
      >>> from dre_jax.methods import find
      >>> check_entry(find("gp"))
    """
    if (entry.default is None) == (entry.host is None):
        number = "neither" if entry.host is None else "both"
        raise ConfigError(f"method {entry.name}: an entry must have either default= or host=, but has {number}")
    if entry.host is not None:
        if not isinstance(entry.host, type):
            raise ConfigError(f"method {entry.name}: host= must be a class, but is {entry.host!r}")
        if not callable(getattr(entry.host, "observe_and_suggest", None)):
            raise ConfigError(f"method {entry.name}: the class must have a method observe_and_suggest, but has none")
        return
    _check_method(entry.default, entry.name)
    fields = [f"{path}." for path, _ in leaves(entry.default)]
    unknown = [path for path in entry.free if not any(field.startswith(f"{path}.") for field in fields)]
    if unknown:
        raise ConfigError(f"method {entry.name}: free= must name fields of the method, but has {', '.join(unknown)}")


def _check_method(method: Any, name: str) -> None:
    if isinstance(method, type):
        raise ConfigError(f"method {name}: default= must be an object, but is the class {method.__name__}")
    for function, arguments in _REQUIRED.items():
        if not callable(getattr(method, function, None)):
            raise ConfigError(f"method {name}: must have a function {function}({', '.join(arguments)}), but has none")
    for function, arguments in (_REQUIRED | _OPTIONAL).items():
        if hasattr(method, function):
            _check_arguments(getattr(method, function), function, arguments, name)
    for flag, functions in _FLAGS.items():
        value = getattr(method, flag, False)
        if not isinstance(value, bool):
            raise ConfigError(f"method {name}: {flag} must be True or False, but is {value!r}")
        missing = [function for function in functions if value and not hasattr(method, function)]
        if missing:
            raise ConfigError(f"method {name}: {flag} is True, so it must have {' and '.join(missing)}")
    if not dataclasses.is_dataclass(method):
        raise ConfigError(f"method {name}: must be a frozen dataclass, but {type(method).__name__} is no dataclass")
    try:
        hash(method)
    except TypeError as error:
        raise ConfigError(f"method {name}: must be a frozen dataclass with hashable fields, but has {error}") from error


def _check_arguments(function: Any, label: str, arguments: tuple[str, ...], name: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # no function, or one whose arguments are unknown
        if callable(function):
            return
        raise ConfigError(f"method {name}: {label} must be a function, but is {function!r}") from None
    try:
        signature.bind(*arguments)
    except TypeError:
        rule = f"method {name}: {label} must take ({', '.join(arguments)})"
        raise ConfigError(f"{rule}, but takes ({', '.join(signature.parameters)})") from None
