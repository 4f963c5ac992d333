"""The origin of a result: data, key, versions, and the backends that computed it."""

from __future__ import annotations

import platform
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
from jax import Array

from dre_jax import native
from dre_jax.data import SearchSpace, fingerprint
from dre_jax.errors import DataWarning


def provenance(meta: SearchSpace, key: Array) -> dict[str, Any]:
    """Returns facts on what a method learns from and what computes it.

    Args:
      meta: the search space.
      key: PRNG key of the fit.
    """
    return {
        "fingerprint": fingerprint(meta),
        "tasks": list(meta.train),
        "key": [int(word) for word in jax.random.key_data(key).ravel()],
        "versions": versions(),
        "backends": native.with_backend([]),
    }


def warn_of_backends(backends: list[dict[str, str]], origin: Path) -> None:
    """Warns with a `DataWarning` where a result is continued by another backend: rounding may differ.

    Args:
      backends: of the result, see `dre_jax.native.with_backend`.
      origin: the result's file or folder.
    """
    mine = native.backend()
    others = [" on ".join(one.values()) for one in backends if one != mine]
    if others:
        here = " on ".join(mine.values())
        message = f"{origin} was computed by {', '.join(others)}, and goes on by {here}: rounding may differ"
        warnings.warn(message, DataWarning, stacklevel=3)


def versions(*more: str) -> dict[str, str]:
    """Versions of what a result depends on, and of more packages."""
    packages = ("dre_jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", *more)
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree that is not installed
            found[name] = "not installed"
    return found
