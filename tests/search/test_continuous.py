"""Methods of the one protocol in [0, 1]^D."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from dre_jax.methods import RandomSearch
from dre_jax.search import Suggester
from dre_jax.search.candidates import CandidateConfig

X = np.random.default_rng(0).random((7, 3))
Y = -((X - [0.3, 0.7, 0.5]) ** 2).sum(axis=1)


@dataclass(frozen=True)
class Hill:
    """Knows the hill: values fall with the distance from its top."""

    top: tuple = (0.3, 0.7, 0.5)
    tag: str = ""

    def fit(self, meta, key):
        return None

    def acquire(self, params, history, candidates, key):
        return -jnp.sum((candidates.x - jnp.asarray(self.top, jnp.float32)[None]) ** 2, axis=-1)


def driven(suggester, n):
    """The trials after n more of them on the hill."""
    x, y = X, Y
    for _ in range(n):
        point = suggester.observe_and_suggest(x, y)
        assert ((point >= 0) & (point <= 1)).all()
        x, y = np.vstack([x, point]), np.append(y, -((point - [0.3, 0.7, 0.5]) ** 2).sum())
    return x, y


def test_a_constant_acquisition_is_uniform_random_search():
    points = np.array(
        [Suggester(RandomSearch(), key=jax.random.key(seed)).observe_and_suggest(X, Y) for seed in range(400)]
    )
    assert points.dtype == np.float64
    for column in points.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    # Drawn again at every trial of a run, and the columns do not hang together.
    assert np.abs(np.corrcoef(points.T) - np.eye(3)).max() < 0.2
    suggester = Suggester(RandomSearch(), key=jax.random.key(0))
    assert len({tuple(suggester.observe_and_suggest(X[:n], Y[:n])) for n in range(1, 8)}) == 7


def test_the_best_point_is_taken():
    """As by a slow search of the points that were drawn; steps from the best trials come closer than uniform draws."""
    far = {}
    for name, config in (("both", CandidateConfig()), ("uniform", CandidateConfig(steps=0))):
        far[name] = np.sqrt(-driven(Suggester(Hill(), key=jax.random.key(1), candidates=config), 8)[1].max())
    assert far["both"] < 0.01 < far["uniform"] < 0.1
