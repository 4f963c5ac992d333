"""How suggestions run: with the cache of compiled programs, and one thread per factorisation."""

import contextlib
from collections.abc import Iterator

import jax
import numpy as np
from jax import Array

from dre_jax.runtime.cache import keep_programs_within
from dre_jax.runtime.threads import SharedContext, one_thread


@contextlib.contextmanager
def _suggestion_runtime() -> Iterator[None]:
    with keep_programs_within(), one_thread:
        yield


suggestion_runtime = SharedContext(_suggestion_runtime)
"""Context in which JAX caches compiled programs (`dre_jax.runtime.cache`) and a factorisation on a CPU uses one thread.

The model that is tuned may use the same cores: with more threads, a suggestion from 200 trials took 30 s, not 1.3 s.
"""


def seed_key(seed: int) -> Array:
    """Returns `jax.random.key` of a seed below 2^32, for which JAX would trace and lower a program in each process.

    Example:
      >>> bool(seed_key(7) == jax.random.key(7))
      True
    """
    if jax.config.jax_default_prng_impl != "threefry2x32":  # type: ignore[attr-defined]
        return jax.random.key(seed)
    return jax.random.wrap_key_data(jax.device_put(np.array([0, seed], np.uint32)))
