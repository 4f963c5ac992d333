"""Checks of what a method declares, made when it is registered, loaded or configured."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dre_jax.errors import ConfigError
from dre_jax.search.method import CAPABILITY_FUNCTIONS, CapableMethod, capabilities_of

_NO_ARRAYS = (bool, int, float, complex, str, bytes, set, frozenset)
_MAPPINGS = (dict, Mapping)


def check_capabilities(method: Any, name: str) -> None:
    """Checks that a method has the functions of its declared capabilities, which may depend on its configuration.

    Raises:
      ConfigError: if a function is missing or takes other arguments, or if a capability is neither true nor false.
    """
    capabilities = capabilities_of(method)
    for field in dataclasses.fields(capabilities):
        value = getattr(capabilities, field.name)
        if not isinstance(value, bool) and not (value is None and field.default is None):
            raise ConfigError(f"method {name}: {field.name} must be True or False, but is {value!r}")
        if value:
            for function in CAPABILITY_FUNCTIONS.get(field.name, ()):
                check_function(method, function, name, f"{field.name} is True, so it must")
    for needy in ("slotwise_fit", "weighs_past", "predicts_components"):
        if getattr(capabilities, needy) and not capabilities.fits_history:
            raise ConfigError(f"method {name}: {needy} is True, so fits_history must be True, but is False")


def check_function(method: Any, label: str, name: str, rule: str = "must") -> None:
    """Raises `ConfigError` if a method lacks a function of `CapableMethod`, or if it takes other arguments.

    Args:
      method: the method.
      label: name of the function.
      name: the method's name.
      rule: why it must have the function, for the message of the error.
    """
    function = getattr(method, label, None)
    _, *arguments = inspect.signature(getattr(CapableMethod, label)).parameters
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


def declared_parameters(method: Any) -> Any:
    """Returns the annotation of what `fit` of a method returns; `Any` if there is none, or it cannot be evaluated.

    Example:
      >>> from dre_jax.methods import find
      >>> declared_parameters(find("fsbo").make()).__name__
      'DeepKernel'
    """
    fit: Any = getattr(type(method), "fit", None)
    fit = inspect.unwrap(fit)  # of its decorators
    annotations = getattr(fit, "__annotations__", {})
    if "return" not in annotations:
        return Any
    # The annotations of the arguments may be known to type checkers alone.
    return_hint = SimpleNamespace(__annotations__={"return": annotations["return"]})
    return _hints(return_hint, getattr(fit, "__globals__", {})).get("return", Any)


def parameter_classes(method: Any) -> Iterator[type]:
    """Yields the named tuples and dataclasses that `fit` of a method returns as declared, and those of their fields."""
    for kind in _parts(declared_parameters(method), set()):
        if is_structure(kind):
            yield kind


def unstorable_parts(method: Any) -> Iterator[str]:
    """Yields the names of types that `fit` of a method returns as declared and a checkpoint cannot store."""
    for kind in _parts(declared_parameters(method), set()):
        if kind in _NO_ARRAYS:
            yield kind.__name__
        elif get_origin(kind) in _NO_ARRAYS or (get_origin(kind) in _MAPPINGS and get_args(kind)[0] not in (str, Any)):
            yield str(kind)


def is_structure(kind: Any) -> bool:
    """Returns whether a type is a named tuple or a dataclass."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"))


def static_fields(kind: Any) -> set[str]:
    """Returns the fields of a class that are no parameters: JAX takes them for part of the structure."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {field.name for field in fields if field.metadata.get("static")}


def _parts(annotation: Any, visited_types: set[type]) -> Iterator[Any]:
    """Yields an annotation and those of its parts; of a union of types those that are no plain numbers."""
    yield annotation
    nested = get_args(annotation)
    if get_origin(annotation) in _MAPPINGS:
        nested = nested[1:]  # the keys are no parameters
    elif get_origin(annotation) in (Union, UnionType):
        nested = tuple(part for part in nested if part not in (*_NO_ARRAYS, NoneType))
    if is_structure(annotation) and annotation not in visited_types:
        visited_types.add(annotation)
        static, hints = static_fields(annotation), _hints(annotation)
        nested = tuple(hint for name, hint in hints.items() if name not in static)
    for part in nested:
        yield from _parts(part, visited_types)


def _hints(owner: Any, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns the annotations of an object; none if they cannot be evaluated."""
    try:
        return get_type_hints(owner, names)
    except Exception:  # whatever the text of an annotation raises
        return {}
