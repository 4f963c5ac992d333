"""The origin of a result, and its comparison with the training and the version at hand; errors say what differs."""

import contextlib
import platform
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
from jax import Array

from dre_jax.data import SearchSpace, fingerprint
from dre_jax.data.columns import Column, differing_columns
from dre_jax.errors import CheckpointError, ConfigError, DataWarning
from dre_jax.methods.dre.backends.provenance import backend


def provenance(meta: SearchSpace, key: Array, *, is_fitted: bool = False) -> dict[str, Any]:
    """Returns facts on the training data of a method and the backend of its training.

    After the fit (``is_fitted``), C++ loops that it did not use need not be built.
    """
    return {
        "fingerprint": fingerprint(meta),
        "tasks": list(meta.train),
        "key": [int(word) for word in jax.random.key_data(key).ravel()],
        "versions": versions(),
        "backends": [backend(decide=not is_fitted)],
    }


def warn_of_backends(backends: list[dict[str, str]], origin: Path) -> None:
    """Warns with a `DataWarning` where a result is continued by another backend: rounding may differ.

    ``origin`` is the result's file or folder; see `dre_jax.methods.dre.backends.provenance.with_backend`.
    """
    mine = backend()
    other_backends = [" on ".join(record.values()) for record in backends if record != mine]
    if other_backends:
        here = " on ".join(mine.values())
        message = f"{origin} was computed by {', '.join(other_backends)}, and goes on by {here}: rounding may differ"
        warnings.warn(message, DataWarning, stacklevel=3)


def versions(*more: str) -> dict[str, str]:
    """Returns the versions of the packages that a result depends on, and of more packages."""
    packages = ("dre_jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", *more)
    by_package = {"python": platform.python_version()}
    for name in packages:
        try:
            by_package[name] = version(name)
        except PackageNotFoundError:  # run from a source tree that is not installed
            by_package[name] = "not installed"
    return by_package


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
