"""Floyd's choice in C++ against the loop in JAX that it stands for."""

import jax
import numpy as np
import pytest

from dre_jax import native
from dre_jax.data.sampling import _choose, uniform_below

pytestmark = pytest.mark.skipif(not native.available(), reason="no C++ compiler on this machine")

loop, compiled = (jax.jit(jax.vmap(f)) for f in (_choose, native.draw_without_replacement))


# Around the border between a bit a number and a search among those chosen, and where nearly all are chosen.
@pytest.mark.parametrize("n", [1, 40, 63, 64, 65, (1 << 17) - 1, 1 << 17, (1 << 17) + 1, 2**31 - 1])
@pytest.mark.parametrize("length", [1, 40])
def test_the_same_numbers_as_the_loop(n, length):
    batch = 50
    rng = np.random.default_rng(n + length)
    k = rng.integers(0, min(n, length) + 1, batch).astype(np.int32)
    newest = (n - k[:, None] + np.arange(length)).astype(np.int32)
    draws = np.asarray(jax.jit(uniform_below)(rng.integers(0, 2**32, (batch, length), dtype=np.uint32), newest + 1))
    # Few bits: the same is drawn again and again.
    draws = np.where(np.arange(batch)[:, None] % 2 == 0, draws % 7 % (newest + 1), draws)
    np.testing.assert_array_equal(compiled(draws, newest, k), loop(draws, newest, k))
