"""What a method learns as arrays by path, and the tree that a checkpoint's arrays are put onto.

A checkpoint holds no structure: the method has it. `abstract_params` is the tree of what `fit` returns, by the method's
own function of this name or by tracing `fit`. Where the checkpoint has None in place of a part of the tree, so has what
is restored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.data import SearchSpace, Task
from dre_jax.data.checks import show
from dre_jax.errors import CheckpointError, ConfigError
from dre_jax.methods.registry import METHODS
from dre_jax.methods.settings import config_to_json, configure
from dre_jax.search.method import CapableMethod, Method, capabilities_of

_PATH: Any = {"simple": True, "separator": "."}


def flatten(tree: Any) -> dict[str, Any]:
    """Returns the arrays of a tree by their paths, and None for the parts that are None.

    Example:
      >>> list(flatten({"bias": (np.zeros(2), None)}).items())
      [('bias.0', array([0., 0.])), ('bias.1', None)]
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda part: part is None)
    return {jax.tree_util.keystr(path, **_PATH): leaf for path, leaf in leaves}


def restore(like: Any, arrays: Mapping[str, Any]) -> Any:
    """Returns a tree with arrays by path in place of the leaves of ``like``; None in place of a part that is None.

    Raises:
      ConfigError: if the arrays are not those of ``like``.

    Example:
      >>> restore({"bias": (0, {"scale": 1})}, {"bias.0": np.zeros(2), "bias.1": None})
      {'bias': (array([0., 0.]), None)}
    """
    unused = {path for path, array in arrays.items() if array is not None}

    def take(path: Any, leaf: Any) -> Any:
        name = jax.tree_util.keystr(path, **_PATH)
        if name not in arrays or (arrays[name] is not None and np.ndim(arrays[name]) != np.ndim(leaf)):
            raise ConfigError(f"parameters differ: {name} is not in the checkpoint, or has another number of axes")
        unused.discard(name)
        return arrays[name]

    def is_taken(path: Any, part: Any) -> bool:
        return arrays.get(jax.tree_util.keystr(path, **_PATH), part) is None

    tree = jax.tree_util.tree_map_with_path(take, like, is_leaf=is_taken, is_leaf_takes_path=True)
    if unused:
        raise ConfigError(f"parameters differ: {', '.join(sorted(unused))} of the checkpoint are unknown here")
    return tree


def abstract_params(method: Method, n_columns: int) -> Any:
    """Returns the tree of what `fit` of a method returns; shapes may differ in the numbers of tasks and rows.

    Raises:
      CheckpointError: if `fit` cannot be traced, and the method has no function that says what it returns.
    """
    if capabilities_of(method).abstracts_params:
        return cast(CapableMethod, method).abstract_params(n_columns)
    rows = np.random.default_rng(0).random((8, n_columns), np.float32)
    example = SearchSpace("example", train={name: Task(name, rows, np.arange(8.0)) for name in ("a", "b", "c")})
    try:
        return jax.eval_shape(lambda key: method.fit(example, key), jax.random.key(0))
    except Exception as error:  # whatever a method does with arrays that have no values
        rule = f"a checkpoint needs the tree of what {type(method).__name__}.fit returns, which JAX cannot trace"
        remedy = "declare Capabilities(abstracts_params=True) and a function abstract_params(n_columns)"
        raise CheckpointError(f"{rule} ({str(error).partition(chr(10))[0]}): {remedy}") from error


def check_storable(name: str, method: Method, params: Any, n_columns: int) -> None:
    """Raises `CheckpointError` if a checkpoint would not give a method and what it learned back as they are.

    Args:
      name: the method's, as in `METHODS`.
      method: its configuration.
      params: what it learned.
      n_columns: D
    """
    if name not in METHODS:
        raise CheckpointError(f"a method must be registered, but got {name!r}")
    check_configuration(name, method)
    arrays = flatten(params)
    for leaf in jax.tree.leaves(params):
        if not has_numbers(leaf):
            raise CheckpointError(f"parameters must be arrays of numbers, but got {show(leaf)}")
    if not jax.tree.leaves(params):
        raise CheckpointError(f"a method must have learned something, but {name} learned nothing")
    try:
        restored = restore(abstract_params(method, n_columns), arrays)
    except ConfigError as error:
        raise CheckpointError(f"{name}: fit must return the tree of abstract_params, but {error}") from error
    expected, actual = (str(jax.tree.structure(tree)) for tree in (restored, params))
    if expected != actual:
        raise CheckpointError(f"{name}: fit must return the tree of abstract_params, {expected}, but returned {actual}")


def check_configuration(name: str, method: Any) -> None:
    """Raises `CheckpointError` if a configuration is not the same after it has been JSON."""
    default: Any = METHODS[name].default
    try:
        content = json.loads(json.dumps(config_to_json(method)))
        if configure(default, content, name=name) == method:
            return
        reason = "it has classes that the method's default does not have"
    except (TypeError, ValueError, ConfigError) as error:
        reason = str(error)
    raise CheckpointError(f"the configuration of {name} must hold numbers, names and tuples: {reason}")


def has_numbers(array: Any) -> bool:
    """Returns whether a leaf is an array of numbers or booleans: no PRNG keys, texts or objects."""
    return hasattr(array, "dtype") and any(jnp.issubdtype(array.dtype, kind) for kind in (np.number, np.bool_))
