"""A fitted method as JSON: its configuration, and the structure that its parameters are arrays of.

Classes go by their names. Those of configurations are the ones that the registry's methods have; those of parameters
are listed in `PARAMETER_CLASSES`. Whatever else JSON says is refused, so that a file can name nothing but these.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.errors import CheckpointError, ConfigError
from dre_jax.gp.regression import ConditionedGP, GPParams
from dre_jax.methods.baselines.deep_kernel import DeepKernel
from dre_jax.methods.baselines.sources import SourceProcesses
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.hedged_prior.folds import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import Believed
from dre_jax.methods.hedged_prior.length_scale_prior import LengthScalePrior
from dre_jax.methods.hedged_prior.prior import LearnedPrior
from dre_jax.methods.hedged_prior.task_process import TaskHyperpriors
from dre_jax.methods.hedged_prior.weights import Voted, WeighedPriors
from dre_jax.methods.settings import convert
from dre_jax.optim.full_batch import HistoryFitConfig

PARAMETER_CLASSES: dict[str, type] = {
    "EnsembleParams": EnsembleParams,
    "DeepKernel": DeepKernel,
    "GPParams": GPParams,
    "Conditioned": ConditionedGP,
    "SourceProcesses": SourceProcesses,
    "LearnedPrior": LearnedPrior,
    "Believed": Believed,
    "Voted": Voted,
    "WeighedPriors": WeighedPriors,
    "LengthScalePrior": LengthScalePrior,
    "HeldOutEvidence": HeldOutEvidence,
    "TaskHyperpriors": TaskHyperpriors,
}
"""Named tuples and dataclasses that parameters consist of, by their names in checkpoints, which stay when a class is
renamed. A method with a class of its own adds it here."""

_NAMES = {kind: name for name, kind in PARAMETER_CLASSES.items()}

CONFIG_NAMES: dict[type, str] = {HistoryFitConfig: "TuningConfig"}
"""Names in checkpoints of configuration classes that have been renamed since."""


def config_to_json(config: Any) -> Any:
    """Every field of a configuration, with the names of its classes.

    Raises:
      CheckpointError: for a class or a value that no method of the registry has.

    Example:
      >>> from dre_jax.search import AcquisitionConfig
      >>> config_to_json(AcquisitionConfig())
      {'class': 'AcquisitionConfig', 'kind': 'lcb', 'beta': 1.0}
    """
    if dataclasses.is_dataclass(config):
        name = _config_name(type(config))
        if _configurations().get(name) is not type(config):
            raise CheckpointError(f"a configuration must be of the classes of registered methods, but got {name}")
        return {"class": name, **{field: config_to_json(value) for field, value in _fields(config).items()}}
    if isinstance(config, tuple):
        return [config_to_json(item) for item in config]
    value = config.item() if isinstance(config, np.generic) else config
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CheckpointError(f"a configuration must hold numbers, names and tuples, but got {config!r}")


def config_from_json(given: Any) -> Any:
    """The configuration that `config_to_json` described; fields that have come since have their defaults.

    Raises:
      ConfigError: for a class, a field or a value that this version does not have; the message names it.

    Example:
      >>> config_from_json({"class": "AcquisitionConfig", "kind": "ei"})
      AcquisitionConfig(kind='ei', beta=1.0)
    """
    return _made(given, "")


def _made(given: Any, path: str) -> Any:
    kind = _configurations().get(str(given.get("class"))) if isinstance(given, Mapping) else None
    if kind is None:
        raise ConfigError(f"{path or 'the method'} must be of a class of registered methods, but got {_short(given)}")
    types = get_type_hints(kind)
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name == "class":
            continue
        if name not in {field.name for field in dataclasses.fields(kind)}:
            raise ConfigError(f"{kind.__name__} has no field {path}{name}")
        fields[name] = _value(types[name], value, f"{path}{name}")
    try:
        return kind(**fields)
    except TypeError as error:
        raise ConfigError(f"{path or kind.__name__}: {error}") from error


def _value(kind: Any, given: Any, path: str) -> Any:
    if isinstance(given, Mapping):
        return _made(given, f"{path}.")
    if isinstance(given, list) and given and all(isinstance(item, Mapping) for item in given):
        return tuple(_made(item, f"{path}.{i}.") for i, item in enumerate(given))
    return given if kind is Any else convert(kind, given, path)


@functools.cache
def _configurations() -> dict[str, type]:
    """The classes of the registry's configurations and of their fields, by name."""
    from dre_jax.methods.registry import METHODS

    found: dict[str, type] = {}
    for entry in METHODS.values():
        for kind in _classes(entry.default):
            name = _config_name(kind)
            if found.setdefault(name, kind) is not kind:
                raise TypeError(f"configurations must have different names, but there are two {name}")
    return found


def _config_name(kind: type) -> str:
    return CONFIG_NAMES.get(kind, kind.__name__)


def _classes(config: Any) -> Iterator[type]:
    if dataclasses.is_dataclass(config):
        yield type(config)
        for value in _fields(config).values():
            yield from _classes(value)
    elif isinstance(config, tuple):
        for item in config:
            yield from _classes(item)


def structure_to_json(tree: Any) -> Any:
    """The structure of parameters, with shape and dtype of every array.

    Raises:
      CheckpointError: for anything but arrays of numbers in dictionaries, tuples, lists and `PARAMETER_CLASSES`.

    Example:
      >>> structure_to_json({"bias": np.zeros(2, np.float32), "deep_set": None})
      {'dict': {'bias': {'shape': [2], 'dtype': 'float32'}, 'deep_set': None}}
    """
    if tree is None:
        return None
    if type(tree) in _NAMES:
        static = _static(type(tree))
        fields = {k: {"value": v} if k in static else structure_to_json(v) for k, v in _fields(tree).items()}
        return {"class": _NAMES[type(tree)], "fields": fields}
    if type(tree) is dict and all(isinstance(name, str) for name in tree):
        return {"dict": _each(structure_to_json, tree)}
    if type(tree) in (tuple, list):
        return {type(tree).__name__: [structure_to_json(item) for item in tree]}
    if isinstance(tree, (np.ndarray, jax.Array)) and not jnp.issubdtype(tree.dtype, jax.dtypes.prng_key):
        return {"shape": list(tree.shape), "dtype": str(tree.dtype)}
    raise CheckpointError(f"parameters must be arrays in tuples, dictionaries and named tuples, but got {_short(tree)}")


def structure_from_json(given: Any) -> Any:
    """The tree that `structure_to_json` described, with `jax.ShapeDtypeStruct` in the places of its arrays.

    Raises:
      ConfigError: for a structure that this version does not have.

    Example:
      >>> structure_from_json({"tuple": [None, {"shape": [2], "dtype": "float32"}]})
      (None, ShapeDtypeStruct(shape=(2,), dtype=float32))
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ConfigError(f"the structure of parameters must be one that dre_jax wrote, but got {_short(given)}")
    match dict(given):
        case {"class": name, "fields": fields}:
            return _node(name, _each(structure_from_json, fields))
        case {"dict": items}:
            return _each(structure_from_json, items)
        case {"tuple": items}:
            return tuple(structure_from_json(item) for item in items)
        case {"list": items}:
            return [structure_from_json(item) for item in items]
        case {"value": value}:
            return value
        case {"shape": shape, "dtype": dtype}:
            return jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype))
    raise ConfigError(f"the structure of parameters must be one that dre_jax wrote, but got {_short(given)}")


def _node(name: str, fields: dict[str, Any]) -> Any:
    kind = PARAMETER_CLASSES.get(name)
    known = [] if kind is None else _names(kind)
    if kind is None or sorted(known) != sorted(fields):
        ours = "unknown" if kind is None else ", ".join(known)
        raise ConfigError(f"parameters differ: {name} ({ours} here, {', '.join(fields)} in the checkpoint)")
    return kind(**fields)


def _names(kind: Any) -> list[str]:
    """Fields of the class of a dataclass or of a named tuple."""
    return list(kind._fields) if hasattr(kind, "_fields") else [field.name for field in dataclasses.fields(kind)]


def _static(kind: Any) -> set[str]:
    """Those that are no parameters: JAX takes them for part of the structure."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {field.name for field in fields if field.metadata.get("static")}


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in _names(type(value))}


def _each(change: Callable[[Any], Any], items: Mapping[str, Any]) -> dict[str, Any]:
    return {name: change(value) for name, value in items.items()}


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
