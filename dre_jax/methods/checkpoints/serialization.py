"""A fitted method as JSON: its configuration, and the structure that its parameters are arrays of.

Classes go by their names. Those of configurations are the ones that the registry's methods have; those of parameters
are the ones that `fit` of these methods returns by its annotation. Everything else is refused, so that a file can name
nothing but these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.data.checks import show
from dre_jax.errors import CheckpointError, ConfigError
from dre_jax.methods.declaration import declared_parameters, parameter_classes, static_fields, unstorable_parts
from dre_jax.methods.registry import CONFIGURATIONS, PARAMETERS
from dre_jax.methods.settings import convert
from dre_jax.search.method import Method

RENAMED_FIELDS: dict[str, dict[str, str]] = {
    "HedgedPriorParams": {"transfer_log_odds": "trust"},
    "PriorTraining": {"transfer_probability": "trust", "transfer_strength": "trust_strength"},
}
"""Fields that have other names in checkpoints, the surrogates that ship among them, by class."""


def config_to_json(config: Any) -> Any:
    """Returns every field of a configuration, with the names of its classes.

    Raises:
      CheckpointError: for a class or a value that no method of the registry has.

    Example:
      >>> from dre_jax.search import AcquisitionConfig
      >>> config_to_json(AcquisitionConfig())
      {'class': 'AcquisitionConfig', 'kind': 'lcb', 'beta': 1.0}
    """
    if dataclasses.is_dataclass(config):
        kind: Any = type(config)
        name = kind.__name__
        if CONFIGURATIONS.get(name) is not kind:
            raise CheckpointError(f"a configuration must be of the classes of registered methods, but got {name}")
        return {"class": name, **{name: config_to_json(getattr(config, field)) for name, field in _fields(kind)}}
    if isinstance(config, tuple):
        return [config_to_json(item) for item in config]
    value = config.item() if isinstance(config, np.generic) else config
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CheckpointError(f"a configuration must hold numbers, names and tuples, but got {config!r}")


def config_from_json(value: Any, path: str = "") -> Any:
    """Returns the configuration that `config_to_json` described; fields that it lacks have their defaults.

    Args:
      value: the description.
      path: of the field in the method's configuration, for messages.

    Raises:
      ConfigError: for a class, a field or a value that this version does not have; the message names it.

    Example:
      >>> config_from_json({"class": "AcquisitionConfig", "kind": "ei"})
      AcquisitionConfig(kind='ei', beta=1.0)
    """
    kind = CONFIGURATIONS.get(str(value.get("class"))) if isinstance(value, Mapping) else None
    if kind is None:
        where = path or "the method"
        raise ConfigError(f"{where} must be of a class of registered methods, but got {show(value)}")
    types, names, fields = get_type_hints(kind), dict(_fields(kind)), {}
    for name, field in value.items():
        if name == "class":
            continue
        if name not in names:
            raise ConfigError(f"{kind.__name__} has no field {path}{name}")
        fields[names[name]] = _field_from_json(types[names[name]], field, f"{path}{name}")
    try:
        return kind(**fields)
    except TypeError as error:
        raise ConfigError(f"{path or kind.__name__}: {error}") from error


def _field_from_json(kind: Any, value: Any, path: str) -> Any:
    if isinstance(value, Mapping):
        return config_from_json(value, f"{path}.")
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        return tuple(config_from_json(item, f"{path}.{i}.") for i, item in enumerate(value))
    return value if kind is Any else convert(kind, value, path)


def _parameter_name(kind: type) -> str | None:
    """Returns the name of a class of parameters in checkpoints; None if no registered method declares it."""
    return kind.__name__ if PARAMETERS.get(kind.__name__) is kind else None


def structure_to_json(tree: Any) -> tuple[Any, dict[str, Any]]:
    """Returns the structure of parameters, with shape and dtype of every array, and the arrays by their paths.

    Raises:
      CheckpointError: for anything but arrays of numbers in dictionaries, tuples, lists and the classes that registered
        methods declare.

    Example:
      >>> structure, arrays = structure_to_json({"bias": np.zeros(2, np.float32), "deep_set": None})
      >>> structure, list(arrays)
      ({'dict': {'bias': {'shape': [2], 'dtype': 'float32'}, 'deep_set': None}}, ['bias'])
    """
    arrays: dict[str, Any] = {}

    def describe(tree: Any, path: tuple[str, ...]) -> Any:
        kind = type(tree)
        if tree is None:
            return None
        name = _parameter_name(kind)
        if name is not None:
            static, fields = static_fields(kind), {}
            for label, field in _fields(kind):
                value = getattr(tree, field)
                fields[label] = {"value": value} if field in static else describe(value, (*path, label))
            return {"class": name, "fields": fields}
        if kind is dict and all(isinstance(name, str) for name in tree):
            return {"dict": {name: describe(item, (*path, name)) for name, item in tree.items()}}
        if kind in (tuple, list):
            return {kind.__name__: [describe(item, (*path, str(i))) for i, item in enumerate(tree)]}
        if isinstance(tree, (np.ndarray, jax.Array)) and has_numbers(tree):
            arrays[".".join(path)] = tree
            return {"shape": list(tree.shape), "dtype": str(tree.dtype)}
        rule = "parameters must be arrays in tuples, dictionaries and classes that the annotation of fit declares"
        raise CheckpointError(f"{rule}, but got {show(tree)}")

    return describe(tree, ()), arrays


def structure_from_json(structure: Any, leaf: Callable[[str, jax.ShapeDtypeStruct], Any]) -> Any:
    """Returns the tree that `structure_to_json` described, with what ``leaf`` returns for the path of every array.

    Raises:
      ConfigError: for a structure that this version does not have.

    Example:
      >>> structure_from_json({"tuple": [None, {"shape": [2], "dtype": "float32"}]}, lambda path, shape: (path, shape))
      (None, ('1', ShapeDtypeStruct(shape=(2,), dtype=float32)))
    """

    def make(structure: Any, path: tuple[str, ...]) -> Any:
        match structure:
            case None:
                return None
            case {"class": name, "fields": fields}:
                kind = PARAMETERS.get(name)
                names = {} if kind is None else dict(_fields(kind))
                defaults = getattr(kind, "_field_defaults", {})  # of fields that later versions added
                if kind is None or set(fields) - set(names) or set(names) - set(fields) - set(defaults):
                    here = "unknown" if kind is None else ", ".join(names)
                    raise ConfigError(f"parameters differ: {name} ({here} here, {', '.join(fields)} in the checkpoint)")
                return kind(**{names[name]: make(field, (*path, name)) for name, field in fields.items()})
            case {"dict": items}:
                return {name: make(item, (*path, name)) for name, item in items.items()}
            case {"tuple": items}:
                return tuple(make(item, (*path, str(i))) for i, item in enumerate(items))
            case {"list": items}:
                return [make(item, (*path, str(i))) for i, item in enumerate(items)]
            case {"value": value}:
                return value
            case {"shape": shape, "dtype": dtype}:
                return leaf(".".join(path), jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype)))
        rule = "the structure of parameters must be one that dre_jax wrote"
        raise ConfigError(f"{rule}, but got {show(structure)}")

    return make(structure, ())


def has_numbers(array: Any) -> bool:
    """Returns whether an array of NumPy or JAX holds numbers or booleans: no PRNG keys, texts or objects."""
    return any(jnp.issubdtype(array.dtype, kind) for kind in (np.number, np.bool_))


def check_parameter_classes(method: Method) -> None:
    """Raises `CheckpointError` if a checkpoint cannot store what `fit` of a method declares to return.

    The annotation tells it before a long fit. `structure_to_json` refuses all else afterwards.
    """
    name = type(method).__name__
    if declared_parameters(method) is Any:
        rule = f"{name}.fit must declare what it learns by an annotation, so that a checkpoint can store it"
        raise CheckpointError(f"{rule}: write `-> dict[str, Array]`, for example, or a named tuple of arrays")
    unknown = [kind.__name__ for kind in parameter_classes(method) if _parameter_name(kind) is None]
    for kind in (*unknown, *unstorable_parts(method)):
        rule = "parameters must be arrays in tuples, dictionaries and classes that registered methods declare"
        raise CheckpointError(f"{rule}, but {name}.fit learns {kind}")


def _fields(kind: Any) -> list[tuple[str, str]]:
    """Returns the fields of a dataclass or of a named tuple: their names in checkpoints, and their names."""
    names = kind._fields if hasattr(kind, "_fields") else [field.name for field in dataclasses.fields(kind)]
    saved_names = RENAMED_FIELDS.get(kind.__name__, {})
    return [(saved_names.get(name, name), name) for name in names]
