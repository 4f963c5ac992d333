"""Surrogates in checkpoints: the entries that `Surrogate.save` adds to a method's checkpoint, and their reader."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from dre_jax.data.checks import show
from dre_jax.data.columns import DESCRIPTORS, differing_columns
from dre_jax.data.features import FeatureSpace, FeatureValue, plain_features
from dre_jax.errors import CheckpointError, ConfigError, DataError, DataWarning, DreError
from dre_jax.methods.checkpoints.fitted import FittedMethod, load_fitted, save_fitted
from dre_jax.methods.checkpoints.parameters import check_storable, has_numbers
from dre_jax.search.method import Method
from dre_jax.space.descriptors import from_descriptor
from dre_jax.space.hpob import HPOB_SPACES, from_hpob
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.space import Params, Space
from dre_jax.tuning.past.studies import PastStudies
from dre_jax.tuning.trials.objectives import DIRECTIONS

SPACE_NAME = "past"
"""Name of the search space in the checkpoint of a surrogate."""
_Path = str | os.PathLike[str]


def checkpoint_extra(
    space: Space,
    start: Sequence[Params],
    direction: str | None,
    metric: str | None,
    names: Sequence[str] = (),
    *,
    constrained: bool = False,
    features: FeatureSpace | None = None,
    task_features: Mapping[str, FeatureValue] | None = None,
) -> dict[str, Any]:
    """Returns the entries of a checkpoint that `Surrogate.load` needs beside the method.

    ``metric`` names the past values, and the checkpoint has the arrays of the studies of these names. ``features`` are
    those of the past tasks, ``task_features`` those of the task that the surrogate is for.
    """
    content = {"space": to_json(space), "start": list(start), "direction": direction, "metric": metric}
    optional: dict[str, Any] = {"studies": list(names), "constrained": constrained}
    optional["features"] = None if features is None else features.to_json()
    optional["task_features"] = None if task_features is None else dict(task_features)
    return {"tuning": content | {name: value for name, value in optional.items() if value}}


class _Surrogate(Protocol):
    """The part of `dre_jax.tuning.Surrogate` that this file writes; the surrogate's file imports this one."""

    @property
    def space(self) -> Space: ...
    @property
    def name(self) -> str: ...
    @property
    def method(self) -> Method: ...
    @property
    def params(self) -> Any: ...
    @property
    def start(self) -> tuple[Params, ...]: ...
    @property
    def facts(self) -> dict[str, Any]: ...
    @property
    def direction(self) -> str | None: ...
    @property
    def metric(self) -> str | None: ...
    @property
    def studies(self) -> PastStudies | None: ...
    @property
    def constrained(self) -> bool: ...
    @property
    def features(self) -> FeatureSpace | None: ...


def write_surrogate(
    folder: _Path, surrogate: _Surrogate, task_features: Mapping[str, FeatureValue] | None = None
) -> None:
    """Writes a surrogate for any task, and the features of the task that it is used for; see `Surrogate.save`."""
    studies = surrogate.studies
    extra = checkpoint_extra(
        surrogate.space,
        surrogate.start,
        surrogate.direction,
        surrogate.metric,
        () if studies is None else studies.all_names,
        constrained=surrogate.constrained,
        features=surrogate.features,
        task_features=task_features,
    )
    fitted_method = FittedMethod(
        name=surrogate.name,
        method=surrogate.method,
        params=surrogate.params,
        space=SPACE_NAME,
        n_columns=len(surrogate.space.columns),
        columns=surrogate.space.columns,
        facts=surrogate.facts,
        extra=extra,
        extra_arrays={} if studies is None else studies.arrays(),
    )
    save_fitted(Path(folder), fitted_method)


def read_surrogate(folder: _Path, space: Space | None) -> dict[str, Any]:
    """Returns the fields of the surrogate in a checkpoint; arguments and errors as in `Surrogate.load`."""
    checkpoint = load_fitted(Path(folder))
    is_surrogate = "tuning" in checkpoint.extra
    parts = _saved_fields(folder, checkpoint) if is_surrogate else _data_fields(folder, checkpoint, space)
    if space is not None:
        parts["space"].require_encodes(space)
    return {
        **parts,
        "name": checkpoint.name,
        "method": checkpoint.method,
        "params": jax.tree.map(np.asarray, checkpoint.params),
        "facts": checkpoint.facts,
        "path": os.path.abspath(folder),
    }


def _saved_fields(folder: _Path, checkpoint: FittedMethod) -> dict[str, Any]:
    """Returns the space, the start design, the direction and the past studies that `Surrogate.save` wrote."""
    try:
        content, arrays = checkpoint.extra["tuning"], checkpoint.extra_arrays
        space, direction, metric = from_json(content["space"]), content["direction"], content["metric"]
        if direction not in (None, *DIRECTIONS) or not (metric is None or isinstance(metric, str)):
            raise DataError(f"the direction of {metric!r} is {direction!r}")
        start = tuple(space.check_part(params) for params in content["start"])
        constrained = content.get("constrained", False) is True
        features = FeatureSpace.from_json(content["features"]) if "features" in content else None
        task_features = plain_features(content["task_features"]) if "task_features" in content else None
        studies = PastStudies.from_arrays(tuple(map(str, content["studies"])), arrays) if arrays else None
    except (KeyError, TypeError, ValueError, ConfigError, DataError) as error:
        reason = error if isinstance(error, DreError) else repr(error)
        raise CheckpointError(f"the surrogate in {folder} is not this version's: {reason}") from error
    fields = {"space": space, "start": start, "direction": direction, "metric": metric, "studies": studies}
    return {**fields, "constrained": constrained, "features": features, "task_features": task_features}


def _data_fields(folder: _Path, checkpoint: FittedMethod, space: Space | None) -> dict[str, Any]:
    """Returns the space, the descriptor's or the argument, and the start design that `dre-jax meta-train` wrote."""
    if checkpoint.columns is None:
        rule = f"data that a surrogate learned from must come with a {DESCRIPTORS}.json"
        raise CheckpointError(f"{rule}, but those of the checkpoint in {folder} did not: its columns have no names")
    descriptor = checkpoint.extra.get("descriptor")
    try:
        if descriptor is None:
            data_space = space
        else:
            is_hpob = checkpoint.space in HPOB_SPACES
            data_space = from_hpob(checkpoint.space, descriptor) if is_hpob else from_descriptor(descriptor)
    except (DataError, ConfigError):  # columns alone
        data_space = space
    if data_space is None:
        names = ", ".join(dict.fromkeys(column.parent for column in checkpoint.columns))
        raise CheckpointError(f"the checkpoint in {folder} has no ranges of its hyperparameters, {names}: give space=")
    differences = differing_columns(data_space.columns, checkpoint.columns)
    if differences:
        raise CheckpointError(f"the checkpoint in {folder} is of another space: {'; '.join(differences)}")
    return {"space": data_space, "start": tuple(map(data_space.decode, checkpoint.extra.get("start_rows", ())))}


def storable_params(name: str, method: Method, params: Any, n_columns: int) -> Any:
    """Returns what a method learned as arrays of NumPy; warns if a checkpoint cannot store it or the configuration."""

    def array(leaf: Any) -> np.ndarray:
        is_array = hasattr(leaf, "dtype")
        leaf = leaf if is_array and not has_numbers(leaf) else np.asarray(leaf)
        if not has_numbers(leaf):
            raise ConfigError(f"fit of a method must return arrays of numbers, but that of {name} returns {show(leaf)}")
        return leaf

    host_params = jax.tree.map(array, params)
    try:
        check_storable(name, method, host_params, n_columns)
    except CheckpointError as error:
        warnings.warn(f"the surrogate of {name} cannot be saved: {error}", DataWarning, stacklevel=4)
    return host_params
