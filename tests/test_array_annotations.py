"""The check of shapes in annotations: it finds wrong shapes, and reads all annotations."""

import importlib
import inspect
import pkgutil
from typing import get_type_hints

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

from dre_jax.gp.kernels import squared_distances
from tests.array_annotations import ROOMS


@pytest.mark.parametrize(
    ("b", "reason"), [(jnp.ones((2, 4)), "D=3"), (jnp.ones(3), "'m D'"), (jnp.ones((2, 3), int), "Float")]
)
def test_a_wrong_array_is_an_error(b, reason):
    with pytest.raises(TypeCheckError, match=f"(?s)squared_distances.*'b'.*{reason}"):
        squared_distances(jnp.ones((5, 3)), b)


def test_arrays_of_numpy_are_arrays():
    assert squared_distances(jnp.ones((5, 3)), np.ones((2, 3), np.float32)).shape == (5, 2)


def functions_of(room):
    """Yields the functions of a room and of its classes, without their decorators."""
    package = importlib.import_module(f"dre_jax.{room}")
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        classes = [kind for kind in vars(module).values() if inspect.isclass(kind)]
        things = [*vars(module).values(), *(thing for kind in classes for thing in vars(kind).values())]
        functions = filter(inspect.isfunction, (inspect.unwrap(thing) for thing in things if callable(thing)))
        checked = (function for function in functions if function.__name__ != "__init__")
        yield from (function for function in checked if function.__module__ == module.__name__)


@pytest.mark.parametrize("room", ROOMS)
def test_annotations_can_be_read(room):
    """An annotation of an unknown name would not be checked, without a word."""
    assert all(isinstance(get_type_hints(function), dict) for function in functions_of(room))
