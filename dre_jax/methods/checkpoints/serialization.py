"""A fitted method as JSON: its configuration, and the structure that its parameters are arrays of.

Classes go by their names. Those of configurations are the ones that the registry's methods have; those of parameters
are listed in `PARAMETER_CLASSES`. Everything else is refused, so that a file can name nothing but these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.data.checks import show
from dre_jax.errors import CheckpointError, ConfigError
from dre_jax.gp.regression import ConditionedGP, GPParams
from dre_jax.methods.baselines.dkgp import DeepKernel
from dre_jax.methods.baselines.sources import SourceProcesses
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.hedged_prior.folds import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import HypothesisArrays
from dre_jax.methods.hedged_prior.length_scale_prior import LengthScalePrior
from dre_jax.methods.hedged_prior.prior import LearnedPrior
from dre_jax.methods.hedged_prior.task_process import TaskHyperpriors
from dre_jax.methods.hedged_prior.weights import HedgedPriorParams, WeightSelection
from dre_jax.methods.registry import CONFIGURATIONS
from dre_jax.methods.settings import convert
from dre_jax.optim.full_batch import HistoryFitConfig
from dre_jax.search.method import Method, members_of

PARAMETER_CLASSES: dict[str, type] = {
    "EnsembleParams": EnsembleParams,
    "DeepKernel": DeepKernel,
    "GPParams": GPParams,
    "Conditioned": ConditionedGP,
    "SourceProcesses": SourceProcesses,
    "LearnedPrior": LearnedPrior,
    "HypothesisArrays": HypothesisArrays,
    "WeightSelection": WeightSelection,
    "HedgedPriorParams": HedgedPriorParams,
    "LengthScalePrior": LengthScalePrior,
    "HeldOutEvidence": HeldOutEvidence,
    "TaskHyperpriors": TaskHyperpriors,
}
"""Named tuples and dataclasses that parameters consist of, by their names in checkpoints, which stay when a class is
renamed. A method with a class of its own adds it here."""

CONFIG_NAMES: dict[str, type] = {"TuningConfig": HistoryFitConfig}
"""Configuration classes that have been renamed since, by their names in checkpoints."""

RENAMED_FIELDS: dict[str, dict[str, str]] = {
    "HedgedPriorParams": {"transfer_log_odds": "trust"},
    "PriorTraining": {"transfer_probability": "trust", "transfer_strength": "trust_strength"},
    "SourceProcesses": {"gp": "given"},
}
"""Fields that have been renamed since, by class, and their names in checkpoints."""

_PARAMETER_NAMES = {kind: name for name, kind in PARAMETER_CLASSES.items()}
_CONFIG_CLASS_NAMES = {kind: name for name, kind in CONFIG_NAMES.items()}


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
        name = _CONFIG_CLASS_NAMES.get(kind, kind.__name__)
        if _config_class(name) is not kind:
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
    kind = _config_class(str(value.get("class"))) if isinstance(value, Mapping) else None
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


def _config_class(name: str) -> type | None:
    return CONFIG_NAMES.get(name, CONFIGURATIONS.get(name))


def structure_to_json(tree: Any) -> tuple[Any, dict[str, Any]]:
    """Returns the structure of parameters, with shape and dtype of every array, and the arrays by their paths.

    Raises:
      CheckpointError: for anything but arrays of numbers in dictionaries, tuples, lists and `PARAMETER_CLASSES`.

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
        if kind in _PARAMETER_NAMES:
            static, fields = _static_fields(kind), {}
            for name, field in _fields(kind):
                value = getattr(tree, field)
                fields[name] = {"value": value} if field in static else describe(value, (*path, name))
            return {"class": _PARAMETER_NAMES[kind], "fields": fields}
        if kind is dict and all(isinstance(name, str) for name in tree):
            return {"dict": {name: describe(item, (*path, name)) for name, item in tree.items()}}
        if kind in (tuple, list):
            return {kind.__name__: [describe(item, (*path, str(i))) for i, item in enumerate(tree)]}
        if isinstance(tree, (np.ndarray, jax.Array)) and not jnp.issubdtype(tree.dtype, jax.dtypes.prng_key):
            arrays[".".join(path)] = tree
            return {"shape": list(tree.shape), "dtype": str(tree.dtype)}
        rule = "parameters must be arrays in tuples, dictionaries and named tuples"
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
                kind = PARAMETER_CLASSES.get(name)
                names = {} if kind is None else dict(_fields(kind))
                if kind is None or sorted(names) != sorted(fields):
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


def check_parameter_classes(method: Method) -> None:
    """Raises `CheckpointError` if `fit` of a method, or of a member, declares parameters of a class that is not listed.

    The annotation of what `fit` returns tells it before a long fit. `structure_to_json` refuses all else afterwards.
    """
    for part in (method, *members_of(method)):
        for kind in _annotated_classes(get_type_hints(type(part).fit).get("return")):
            if kind not in _PARAMETER_NAMES:
                rule = "parameters must be of the classes in PARAMETER_CLASSES"
                raise CheckpointError(f"{rule}, but {type(part).__name__} learns {kind.__name__}")


def _annotated_classes(annotation: Any) -> Iterator[type]:
    """Yields the classes with fields in an annotation, and in the annotations of their fields."""
    nested = list(get_args(annotation))
    if isinstance(annotation, type) and (dataclasses.is_dataclass(annotation) or hasattr(annotation, "_fields")):
        yield annotation
        hints, static = get_type_hints(annotation), _static_fields(annotation)
        nested += [hints[field] for _, field in _fields(annotation) if field not in static]
    for inner in nested:
        yield from _annotated_classes(inner)


def _fields(kind: Any) -> list[tuple[str, str]]:
    """Returns the fields of a dataclass or of a named tuple: their names in checkpoints, and their names."""
    names = kind._fields if hasattr(kind, "_fields") else [field.name for field in dataclasses.fields(kind)]
    renamed = RENAMED_FIELDS.get(kind.__name__, {})
    return [(renamed.get(name, name), name) for name in names]


def _static_fields(kind: Any) -> set[str]:
    """Returns the fields of a class that are no parameters: JAX takes them for part of the structure."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {field.name for field in fields if field.metadata.get("static")}
