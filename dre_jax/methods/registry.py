"""Methods by name: each module of `_MODULES` describes its methods in a tuple `ENTRIES`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module

from dre_jax.errors import ConfigError
from dre_jax.methods.entry import Entry

__all__ = ["ALIASES", "METHODS", "Entry", "find", "real_name"]

_MODULES = (
    "dre.variants",
    "baselines.dre_gp",
    "hedged_prior.method",
    "baselines.committee",
    "baselines.random_search",
    "baselines.gp",
    "baselines.dngo",
    "baselines.bohamiann",
    "baselines.deep_ensemble",
    "baselines.dkgp",
    "baselines.metis",
    "baselines.hebo",
    "baselines.fsbo",
    "baselines.dklm",
    "baselines.rgpe",
    "baselines.tst",
    "baselines.taf",
    "baselines.gcp",
    "baselines.rf",
    "baselines.smac",
    "baselines.tpe",
)


def entries_of(modules: Iterable[str]) -> dict[str, Entry]:
    """The methods of modules in `dre_jax.methods`, by name."""
    found = (entry for module in modules for entry in import_module(f"dre_jax.methods.{module}").ENTRIES)
    return {entry.name: entry for entry in found}


METHODS = entries_of(_MODULES)
"""All methods, by name."""

ALIASES = {"recommended": "hedged-prior"}
"""Further names: that of the method recommended where there are past tasks (docs/results/recommended.md)."""


def real_name(name: str) -> str:
    """The method's own name where an alias is given; any other name as it is.

    Example:
      >>> real_name("recommended"), real_name("dre"), real_name("their.py:Method")
      ('hedged-prior', 'dre', 'their.py:Method')
    """
    return ALIASES.get(name, name)


def find(name: str) -> Entry:
    """The method of a name, or of an alias.

    Raises:
      ConfigError: for an unknown name; the message lists those that there are.

    Example:
      >>> find("random").transfer
      False
    """
    if real_name(name) in METHODS:
        return METHODS[real_name(name)]
    known = (*METHODS, *ALIASES)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"the method must be one of {', '.join(known)}, but got {name!r}{hint}")
