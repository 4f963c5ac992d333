"""The check of shapes and dtypes in annotations while the tests run; `tests/conftest.py` turns it on."""

from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from beartype import beartype
from jaxtyping import AbstractArray, install_import_hook

ROOMS = ("gp", "losses", "methods.hedged_prior", "nn", "optim", "search", "suggest", "tuning.suggestion")
"""Parts of `dre_jax` whose functions are checked."""


def check_calls():
    """Has all functions of the rooms check the arrays of each call, if nothing has imported the rooms yet."""
    install_import_hook([f"dre_jax.{room}" for room in ROOMS], f"{__name__}.check_arrays")


def check_arrays(function):
    """Returns a function that checks its annotations of arrays; mypy checks others, and tests pass wrong types.

    Fields are not checked: JAX fills trees with placeholders, and `jax.vmap` puts axes in front.
    """
    hints = {name: shapes_of(hint) for name, hint in function.__annotations__.items()}
    if function.__name__ == "__init__" or all(hint is Any for hint in hints.values()):
        return function
    function.__annotations__ = hints
    return beartype(function)


def shapes_of(hint):
    """Returns the part of an annotation that is checked: shapes and dtypes, of NumPy's arrays as of JAX's."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return hint.dtype[Any, hint.dim_str]
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        checked = [part if part in (NoneType, float, int, bool) else shapes_of(part) for part in parts]
        return reduce(or_, checked)
    return tuple[tuple(map(shapes_of, parts))] if get_origin(hint) is tuple and Ellipsis not in parts else Any
