"""The rules that configurations share, each with one wording."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dre_jax.errors import ConfigError


def one_of(what: str, value: object, names: Iterable[str]) -> None:
    """Checks that a value is one of several names.

    Example:
      >>> one_of("schedule", "linear", ("constant", "cosine"))
      Traceback (most recent call last):
      ...
      dre_jax.errors.ConfigError: schedule must be one of constant, cosine, but got 'linear'
    """
    names = tuple(names)
    if value not in names:
        raise ConfigError(f"{what} must be one of {', '.join(names)}, but got {value!r}")


def _holds(rule: Callable[[], object]) -> bool:
    """Returns whether a comparison holds; it does not for a value that is not a number."""
    try:
        return bool(rule())
    except TypeError:
        return False


def at_least(least: int, name: str, value: Any) -> None:
    """A number that must not fall below another; NaN does."""
    if not _holds(lambda: value >= least):
        raise ConfigError(f"{name} >= {least} must hold, but got {name}={value}")


def _is_positive(value: Any) -> bool:
    return _holds(lambda: value > 0)


def _positive(name: str, value: Any) -> None:
    if not _is_positive(value):
        raise ConfigError(f"{name} > 0 must hold, but got {name}={value}")


def _above_two(name: str, value: Any) -> None:
    if not _holds(lambda: value > 2):
        raise ConfigError(f"{name} > 2 must hold, but got {value}")


def check_positive(**numbers: Any) -> None:
    """Checks that arguments are positive, unless they are None.

    Example:
      >>> check_positive(n_trials=3, timeout=0.0)
      Traceback (most recent call last):
      ...
      dre_jax.errors.ConfigError: timeout must be positive, but got 0.0
    """
    for name, value in numbers.items():
        if value is not None and not _is_positive(value):
            raise ConfigError(f"{name} must be positive, but got {value!r}")


def check_counts(least: int, **numbers: Any) -> None:
    """Checks that arguments are whole numbers from a least one on.

    Example:
      >>> check_counts(0, n_start=-1)
      Traceback (most recent call last):
      ...
      dre_jax.errors.ConfigError: n_start must be a whole number from 0, but got -1
    """
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ConfigError(f"{name} must be a whole number from {least}, but got {value!r}")


def check_share(name: str, value: Any) -> None:
    """A number between 0 and 1."""
    if not _holds(lambda: 0 < value < 1):
        raise ConfigError(f"{name} must be a share between 0 and 1, but got {value!r}")


def _layer_sizes(name: str, value: Any, *, empty: bool = False) -> None:
    if (not value and not empty) or any(size < 1 for size in value):
        raise ConfigError(f"{name} must list positive layer sizes, but got {name}={value}")


T = TypeVar("T")
Positive = Annotated[T, _positive]
NonNegative = Annotated[T, partial(at_least, 0)]
Share = Annotated[T, check_share]
AtLeastOne = Annotated[T, partial(at_least, 1)]
AboveTwo = Annotated[T, _above_two]
AtLeastTwo = Annotated[T, partial(at_least, 2)]
Layers = Annotated[tuple[int, ...], _layer_sizes]
"""Sizes of layers, one or more."""
AnyLayers = Annotated[tuple[int, ...], partial(_layer_sizes, empty=True)]


class Checked:
    """A dataclass whose fields must fit their annotations: `Positive[int]`, for example, or a `Literal`.

    None fits every annotation.

    Example:
      >>> from dataclasses import dataclass
      >>> @dataclass
      ... class Training(Checked):
      ...     steps: AtLeastOne[int]
      >>> Training(0)
      Traceback (most recent call last):
      ...
      dre_jax.errors.ConfigError: steps >= 1 must hold, but got steps=0
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, rule in _rules(kind):
            value = getattr(self, name)
            if value is not None:
                rule(name, value)


@cache
def _rules(kind: type) -> list[tuple[str, Callable[[str, Any], None]]]:
    """Returns the fields of a class that have rules, each with a function that checks its value."""
    hints = get_type_hints(kind, include_extras=True)
    return [(name, rule) for name, hint in hints.items() for rule in _rules_of(hint)]


def _rules_of(hint: Any) -> Iterator[Callable[[str, Any], None]]:
    if get_origin(hint) is Literal:
        yield partial(one_of, names=get_args(hint))
    yield from getattr(hint, "__metadata__", ())
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _rules_of(part)


def check_seed(seed: object) -> None:
    """Checks that a seed is one that NumPy, JAX and Optuna take.

    Example:
      >>> check_seed(2**32)
      Traceback (most recent call last):
      ...
      dre_jax.errors.ConfigError: the seed must be a whole number in [0, 2**32), but got 4294967296
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise ConfigError(f"the seed must be a whole number in [0, 2**32), but got {seed!r}")


def parse_names(text: str, option: str) -> list[str]:
    """Returns the parts of a comma-separated list.

    Raises `ConfigError` if there is no name, or one occurs twice.

    Example:
      >>> parse_names("test0, test1", "--seeds")
      ['test0', 'test1']
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"{option} must name different things separated by commas, but got {text!r}")
    return names


def parse_trials(text: str, option: str) -> list[int]:
    """Returns the whole numbers of a comma-separated list. Raises `ConfigError` as `parse_names` does."""
    names = parse_names(text, option)
    if not all(name.isascii() and name.isdigit() for name in names):
        raise ConfigError(f"{option} must be whole numbers separated by commas, but got {text!r}")
    return [int(name) for name in names]
