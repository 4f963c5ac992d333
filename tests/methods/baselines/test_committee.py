"""A committee: the vote against SciPy's ranks."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm, rankdata

from dre_jax.methods.baselines.committee import Committee
from dre_jax.search.history import Candidates
from tests.known_methods import Valued


def test_votes_are_sums_of_gaussian_ranks_of_those_that_count():
    rng = np.random.default_rng(0)
    x = np.round(rng.uniform(0.1, 1.0, size=(40, 2)), 1).astype(np.float32)  # with ties
    where = rng.uniform(size=40) < 0.6
    columns = Valued(lambda history, x: x[:, 0]), Valued(lambda history, x: x[:, 1] ** -2.0)
    committee, key = Committee(members=columns), jax.random.key(0)
    candidates = Candidates(jnp.asarray(x), jnp.asarray(where))
    result = jax.jit(committee.acquire)(committee.fit(None, key), None, candidates, key)
    values = (x[where, 0], x[where, 1] ** -2)
    expected = sum(norm.ppf((rankdata(column) - 0.5) / where.sum()) for column in values)
    np.testing.assert_allclose(result[where], expected, atol=1e-5)
    assert not result[~where].any()
