"""Methods behind the one protocol: two pure functions, `fit` and `acquire`."""

from dre_jax.methods.baselines.random_search import RandomSearch
from dre_jax.methods.dre.dre import DRE
from dre_jax.methods.entries.entry import Entry
from dre_jax.methods.registry import METHODS, find, register

__all__ = ["DRE", "METHODS", "Entry", "RandomSearch", "find", "register"]
