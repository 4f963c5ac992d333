"""The tree of what a method learns, and whether a checkpoint can hold it."""

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.data import SearchSpace, Task
from dre_jax.data.checks import show
from dre_jax.errors import CheckpointError, ConfigError
from dre_jax.methods.entries.settings import config_to_json, configure
from dre_jax.methods.registry import registered_entry
from dre_jax.methods.storage.trees import flatten, restore
from dre_jax.search.method import AbstractParamsMethod, Method


def abstract_params(method: Method, n_columns: int) -> Any:
    """Returns the tree of what `fit` of a method returns; shapes may differ in the numbers of tasks and rows.

    Raises `CheckpointError` if `fit` cannot be traced, and the method has no `abstract_params`.
    """
    if isinstance(method, AbstractParamsMethod):
        return method.abstract_params(n_columns)
    rows = np.random.default_rng(0).random((8, n_columns), np.float32)
    example = SearchSpace("example", train={name: Task(name, rows, np.arange(8.0)) for name in ("a", "b", "c")})
    try:
        return jax.eval_shape(lambda key: method.fit(example, key), jax.random.key(0))
    except Exception as error:  # whatever a method does with arrays that have no values
        rule = f"a checkpoint needs the tree of what {type(method).__name__}.fit returns, which JAX cannot trace"
        remedy = "add a function abstract_params(n_columns)"
        raise CheckpointError(f"{rule} ({str(error).partition(chr(10))[0]}): {remedy}") from error


def check_storable(name: str, method: Method, params: Any, n_columns: int) -> None:
    """Raises `CheckpointError` if a checkpoint would not restore a method and what it learned."""
    check_configuration(name, method)
    leaves = jax.tree.leaves(params)
    for leaf in leaves:
        if not has_numbers(leaf):
            raise CheckpointError(f"parameters must be arrays of numbers, but got {show(leaf)}")
    if not leaves:
        raise CheckpointError(f"a method must have learned something, but {name} learned nothing")
    try:
        restored = restore(abstract_params(method, n_columns), flatten(params))
    except ConfigError as error:
        raise CheckpointError(f"{name}: fit must return the tree of abstract_params, but {error}") from error
    expected, actual = (str(jax.tree.structure(tree)) for tree in (restored, params))
    if expected != actual or any(map(operator.is_not, jax.tree.leaves(restored), leaves)):
        raise CheckpointError(f"{name}: fit must return the tree of abstract_params, {expected}, but returned {actual}")


def check_configuration(name: str, method: Any) -> None:
    """Raises `CheckpointError` if a configuration is not the same after it has been JSON, or its method has no name."""
    entry = registered_entry(name)
    if entry is None:
        raise CheckpointError(f"a method must be registered, but got {name!r}")
    try:
        if configure(entry.default, config_to_json(method), name=name) == method:
            return
        reason = "it has classes that the method's default does not have"
    except (TypeError, ValueError, ConfigError) as error:
        reason = str(error)
    raise CheckpointError(f"the configuration of {name} must hold numbers, names and tuples: {reason}")


def has_numbers(array: Any) -> bool:
    """Returns whether a leaf is an array of numbers or booleans: no PRNG keys, texts or objects."""
    return hasattr(array, "dtype") and any(jnp.issubdtype(array.dtype, kind) for kind in (np.number, np.bool_))
