"""The rules that configurations share, each with one wording."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dre_jax.errors import ConfigError


def one_of(what: str, value: object, known: Iterable[str]) -> None:
    """A name among those known.

    Example:
      >>> one_of("schedule", "linear", ("constant", "cosine"))
      Traceback (most recent call last):
      ...
      dre_jax.errors.ConfigError: schedule must be one of constant, cosine, but got 'linear'
    """
    names = tuple(known)
    if value not in names:
        raise ConfigError(f"{what} must be one of {', '.join(names)}, but got {value!r}")


def at_least(least: int, config: Any, *names: str) -> None:
    """Fields of a configuration that must not fall below a number; NaN does.

    Example:
      >>> from types import SimpleNamespace
      >>> at_least(1, SimpleNamespace(steps=0), "steps")
      Traceback (most recent call last):
      ...
      dre_jax.errors.ConfigError: steps >= 1 must hold, but got steps=0
    """
    for name in names:
        value = getattr(config, name)
        if not value >= least:
            raise ConfigError(f"{name} >= {least} must hold, but got {name}={value}")


def positive(config: Any, *names: str) -> None:
    """Fields of a configuration that must be above zero; NaN is not."""
    for name in names:
        value = getattr(config, name)
        if not value > 0:
            raise ConfigError(f"{name} > 0 must hold, but got {name}={value}")


def check_seed(seed: object) -> None:
    """A seed that NumPy, JAX and Optuna all take.

    Example:
      >>> check_seed(2**32)
      Traceback (most recent call last):
      ...
      dre_jax.errors.ConfigError: the seed must be a whole number in [0, 2**32), but got 4294967296
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise ConfigError(f"the seed must be a whole number in [0, 2**32), but got {seed!r}")


def layer_sizes(config: Any, *names: str, empty: bool = False) -> None:
    """Fields of a configuration that list the sizes of layers, at least one unless there may be none."""
    for name in names:
        sizes = getattr(config, name)
        if (not sizes and not empty) or any(size < 1 for size in sizes):
            raise ConfigError(f"{name} must list positive layer sizes, but got {name}={sizes}")


def parse_names(text: str, option: str) -> list[str]:
    """Returns the parts of a comma-separated list.

    Raises:
      ConfigError: if there is no name, or one occurs twice.

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
