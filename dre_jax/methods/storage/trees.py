"""Trees of arrays as arrays by path, and back onto a tree.

A checkpoint holds no structure: the code has it. A part of the tree that is None in a checkpoint is None when restored.
So is a field that is None by default and that a checkpoint of an earlier version lacks.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from dre_jax.errors import ConfigError

_PATH: Any = {"simple": True, "separator": "."}


def flatten(tree: Any) -> dict[str, Any]:
    """Returns the arrays of a tree by their paths, and None for the parts that are None.

    Example:
      >>> list(flatten({"bias": (np.zeros(2), None)}).items())
      [('bias.0', array([0., 0.])), ('bias.1', None)]
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda part: part is None)
    return {jax.tree_util.keystr(path, **_PATH): leaf for path, leaf in leaves}


def restore(like: Any, arrays: Mapping[str, Any], *, exact: bool = False) -> Any:
    """Returns a tree with arrays by path in place of the leaves of ``like``; None in place of a part that is None.

    Raises `ConfigError` if the arrays are not those of ``like``, arrays or their shapes; unless ``exact``, only the
    numbers of axes must agree.

    Example:
      >>> restore({"bias": (np.ones(2), {"scale": 1.0})}, {"bias.0": np.zeros(2), "bias.1": None})
      {'bias': (array([0., 0.]), None)}
    """
    unused = {path for path, array in arrays.items() if array is not None}
    unknown = {path for path in _optional_fields(like) if not any(f"{name}.".startswith(f"{path}.") for name in arrays)}

    def take(path: Any, leaf: Any) -> Any:
        name = jax.tree_util.keystr(path, **_PATH)
        unused.discard(name)
        if name in unknown or (name in arrays and arrays[name] is None):
            return None
        ours, theirs = list(np.shape(leaf)), list(np.shape(arrays[name])) if name in arrays else None
        if theirs is None or (ours != theirs if exact else len(ours) != len(theirs)):
            raise ConfigError(f"arrays differ: {name} ({ours} here, {theirs} in the checkpoint)")
        return arrays[name]

    def is_taken(path: Any, part: Any) -> bool:
        name = jax.tree_util.keystr(path, **_PATH)
        return name in unknown or arrays.get(name, part) is None

    tree = jax.tree_util.tree_map_with_path(take, like, is_leaf=is_taken, is_leaf_takes_path=True)
    if unused:
        raise ConfigError(f"arrays differ: {', '.join(sorted(unused))} of the checkpoint are unknown here")
    return tree


def rename(arrays: Mapping[str, Any], names: Mapping[str, str | None]) -> dict[str, Any]:
    """Returns arrays by path, after the parts of a tree in ``names`` were renamed, or left out where the name is None.

    Example:
      >>> rename({"prior.old.mean": 1, "prior.unused": 2}, {"prior.old": "prior.new", "prior.unused": None})
      {'prior.new.mean': 1}
    """
    renamed_arrays = {}
    for path, array in arrays.items():
        old = next((name for name in names if f"{path}.".startswith(f"{name}.")), "")
        new = names.get(old, "")
        if new is not None:
            renamed_arrays[new + path.removeprefix(old)] = array
    return renamed_arrays


def _optional_fields(tree: Any, path: str = "") -> Iterator[str]:
    """Yields the paths of the fields of named tuples, in named tuples or dictionaries, that are None by default."""
    defaults = getattr(tree, "_field_defaults", {})
    fields = tree._asdict() if hasattr(tree, "_asdict") else tree if isinstance(tree, Mapping) else {}
    for name, child in fields.items():
        child_path = f"{path}.{name}" if path else str(name)
        if defaults.get(name, child) is None:
            yield child_path
        yield from _optional_fields(child, child_path)


def array_shapes(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the shape and dtype of each array, None for what is absent; as JSON, by path."""
    return {path: None if a is None else [list(a.shape), str(a.dtype)] for path, a in arrays.items()}
