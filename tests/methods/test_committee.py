"""A committee: the vote against SciPy's ranks."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm, rankdata

from dre_jax.methods.committee import Committee
from dre_jax.search.history import Candidates


@dataclasses.dataclass(frozen=True)
class Column:
    """Values the candidates by one of their columns, to some power: a member whose vote is known."""

    number: int
    power: float = 1.0

    def fit(self, meta, key):
        return jnp.float32(self.power)

    def acquire(self, params, history, candidates, key):
        return candidates.x[:, self.number] ** params


@partial(jax.jit, static_argnums=0)
def acquire(committee, params, candidates, key):
    return committee.acquire(params, None, candidates, key)


def votes(members, x, where):
    committee = Committee(members=members)
    params = committee.fit(None, jax.random.key(0))
    candidates = Candidates(jnp.asarray(x), jnp.asarray(where))
    return np.asarray(acquire(committee, params, candidates, jax.random.key(1)))


def test_votes_are_sums_of_gaussian_ranks_of_those_that_count():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(40, 2)).astype(np.float32)
    where = rng.uniform(size=40) < 0.6
    found = votes((Column(0), Column(1)), x, where)
    expected = sum(norm.ppf((rankdata(column[where]) - 0.5) / where.sum()) for column in x.T)
    np.testing.assert_allclose(found[where], expected, atol=1e-5)


def test_only_the_order_of_a_members_values_matters():
    x = np.random.default_rng(1).uniform(size=(40, 2)).astype(np.float32)
    everyone = np.ones(40, bool)
    np.testing.assert_array_equal(
        votes((Column(0), Column(1)), x, everyone), votes((Column(0, power=5.0), Column(1)), x, everyone)
    )
