"""Methods behind the one protocol: two pure functions, `fit` and `acquire`."""

from dre_jax.methods.dre import DRE
from dre_jax.methods.random_search import RandomSearch
from dre_jax.methods.registry import METHODS, Entry, find

__all__ = ["DRE", "METHODS", "Entry", "RandomSearch", "find"]
