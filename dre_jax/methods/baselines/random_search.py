"""Random search (Bergstra and Bengio 2012): every candidate is as good as any other."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from dre_jax.methods.entries.entry import Entry
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import NoMetaLearning


@dataclass(frozen=True)
class RandomSearch(NoMetaLearning):
    """Random search: equal values for all candidates, among which the loop draws by key.

    Example:
      >>> import jax
      >>> RandomSearch().fit(meta=None, key=jax.random.key(0)) is None
      True
    """

    def acquire(self, params: None, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns zero for every candidate."""
        return jnp.zeros(candidates.where.shape, jnp.float32)


ENTRIES = (Entry(name="random", summary="random search", paper="Bergstra and Bengio 2012", default=RandomSearch()),)
