"""Checks of what a method declares, made once, when it is registered or loaded."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any

from dre_jax.errors import ConfigError
from dre_jax.methods.settings import leaves
from dre_jax.search.method import CAPABILITY_FUNCTIONS, CapableMethod, capabilities_of

if TYPE_CHECKING:
    from dre_jax.methods.entry import Entry


def check_entry(entry: Entry) -> None:
    """Checks that an entry has a method of the one protocol or a host method, with what the loops call.

    Raises:
      ConfigError: if a function of the protocol or of a declared capability is missing or takes other arguments, or
        if a capability is neither true nor false.

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
    for function in ("fit", "acquire"):
        _check_function(method, function, name)
    _check_capabilities(method, name)
    if not dataclasses.is_dataclass(method):
        raise ConfigError(f"method {name}: must be a frozen dataclass, but {type(method).__name__} is no dataclass")
    try:
        hash(method)
    except TypeError as error:
        raise ConfigError(f"method {name}: must be a frozen dataclass with hashable fields, but has {error}") from error


def _check_capabilities(method: Any, name: str) -> None:
    capabilities = capabilities_of(method)
    for field in dataclasses.fields(capabilities):
        declared = getattr(capabilities, field.name)
        if not isinstance(declared, bool) and not (declared is None and field.default is None):
            raise ConfigError(f"method {name}: {field.name} must be True or False, but is {declared!r}")
        if declared:
            for function in CAPABILITY_FUNCTIONS.get(field.name, ()):
                _check_function(method, function, name, f"{field.name} is True, so it must")
    if capabilities.slotwise_fit and not capabilities.fits_history:
        raise ConfigError(f"method {name}: slotwise_fit is True, so fits_history must be True, but is False")
    if capabilities.committee and not isinstance(getattr(method, "members", None), tuple):
        raise ConfigError(f"method {name}: committee is True, so it must have a tuple members, but has none")


def _check_function(method: Any, label: str, name: str, rule: str = "must") -> None:
    """Raises `ConfigError` if a method lacks a function of `CapableMethod`, or if it takes other arguments.

    Args:
      method: the method.
      label: name of the function.
      name: the method's name.
      rule: why it must have the function, for the message of the error.
    """
    function, (_, *arguments) = (
        getattr(method, label, None),
        inspect.signature(getattr(CapableMethod, label)).parameters,
    )
    if not callable(function):
        raise ConfigError(f"method {name}: {rule} have a function {label}({', '.join(arguments)}), but has none")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # the arguments are unknown
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        takes = f"but takes ({', '.join(signature.parameters)})"
        raise ConfigError(f"method {name}: {label} must take ({', '.join(arguments)}), {takes}") from None
