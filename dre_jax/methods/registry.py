"""Methods by name: each module of `_MODULES` describes its methods in a tuple `ENTRIES`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module

from dre_jax.errors import ConfigError
from dre_jax.methods.entry import Entry

__all__ = ["METHODS", "Entry", "find"]

_MODULES = (
    "ensembles",
    "dre_gp",
    "committee",
    "random_search",
    "gp",
    "dngo",
    "bohamiann",
    "deep_ensemble",
    "dkgp",
    "metis",
    "hebo",
    "fsbo",
    "dklm",
    "rgpe",
    "tst",
    "taf",
    "gcp",
    "rf",
    "smac",
    "tpe",
)


def entries_of(modules: Iterable[str]) -> dict[str, Entry]:
    """The methods of modules in `dre_jax.methods`, by name."""
    found = (entry for module in modules for entry in import_module(f"dre_jax.methods.{module}").ENTRIES)
    return {entry.name: entry for entry in found}


METHODS = entries_of(_MODULES)
"""All methods, by name."""


def find(name: str) -> Entry:
    """The method of a name.

    Raises:
      ConfigError: for an unknown name; the message lists those that there are.

    Example:
      >>> find("random").transfer
      False
    """
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(name, METHODS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"the method must be one of {', '.join(METHODS)}, but got {name!r}{hint}")
