"""Comparison of a checkpoint with the training and the version at hand; errors say what differs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dre_jax.data.columns import Column, differing_columns
from dre_jax.errors import CheckpointError, ConfigError


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Returns the differences between two descriptions, a phrase each: ``name (ours, theirs)``.

    Example:
      >>> differences({"a": 1, "b": {"c": (1, 2), "d": 3}}, {"a": 2, "b": {"c": [1, 2]}, "e": 0})
      ['a (1 here, 2 in the checkpoint)', 'b.d (3 here, None in the checkpoint)']
    """
    phrases = []
    for name in ours:
        mine, other = (list(value) if isinstance(value, tuple) else value for value in (ours[name], theirs.get(name)))
        if isinstance(mine, dict) and isinstance(other, dict):
            phrases += differences(mine, other, f"{prefix}{name}.")
        elif mine != other:
            phrases.append(f"{prefix}{name} ({_shorten(mine)} here, {_shorten(other)} in the checkpoint)")
    return phrases


def check_same_training(
    folder: str | Path,
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    columns: Sequence[Column] | None = None,
    their_columns: Sequence[Column] | None = None,
) -> None:
    """Raises `CheckpointError` if a folder holds another training; columns are compared where both sides know them."""
    phrases = differences(ours, theirs)
    if columns and their_columns:
        phrases += differing_columns(columns, their_columns)
    if phrases:
        rule = f"{folder} holds another training: {'; '.join(phrases)}"
        raise CheckpointError(f"{rule}; give another folder or remove it")


@contextlib.contextmanager
def check_version(folder: str | Path) -> Iterator[None]:
    """Raises `CheckpointError` for errors of code that reads metadata of another version of dre_jax."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
        reason = str(error) if isinstance(error, ConfigError) else repr(error)
        raise CheckpointError(f"the checkpoint in {folder} is not this version's: {reason}") from error


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:12]}..."
