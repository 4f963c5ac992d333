"""`Suggester` behind HPO-B's own call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax import DRE, ConfigError, DataError, ModelConfig, RandomSearch, Suggester
from dre_jax.methods.dre.model.ensemble import init
from dre_jax.search.loop import jitted_suggest
from dre_jax.suggest.candidates import CandidateConfig
from tests.error_messages import error_table
from tests.known_methods import NEAREST, Valued

MODEL = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))


def make_task(n=40, seed=0):
    """A hill at (0.3, 0.6), its height far from [0, 1]."""
    x = np.random.default_rng(seed).random((n, 2))
    return x, 50.0 - 7.0 * ((x - [0.3, 0.6]) ** 2).sum(axis=1, keepdims=True)


def test_the_seed_decides_and_trials_draw_anew():
    x, y = make_task()

    def picks(seed):
        suggester = Suggester(RandomSearch(), seed=seed)
        return tuple(suggester.observe_and_suggest(x[:n], y[:n], x[20:]) for n in range(1, 9))

    assert picks(0) == picks(0)
    assert len({picks(seed) for seed in range(5)}) == 5
    assert len(set(picks(0))) > 2


@pytest.mark.parametrize("shape", [(), (1,)])
def test_responses_in_any_scale_and_shape(shape):
    x, y = make_task()
    ask = Suggester(NEAREST).observe_and_suggest
    expected = ask(x[:6], y[:6], x[6:])
    for scaled in (y * 1e12, y * 1e-12, y - 1e6):
        assert ask(x[:6], scaled[:6].reshape(6, *shape), x[6:]) == expected
    # float32 would merge these.
    near = 1.0 + np.arange(6) * 1e-12
    best = x[5]
    assert ask(x[:6], near.reshape(6, *shape), x[6:]) == int(np.argmin(((x[6:] - best) ** 2).sum(axis=1)))


X, Y = make_task(8)


def suggestion(x_obs, y_obs, x_pen=None):
    return lambda: Suggester(RandomSearch()).observe_and_suggest(x_obs, y_obs, x_pen)


test_bad_input_is_refused = error_table(
    DataError,
    (suggestion(X[:3], Y[:3], X[:0]), "at least one row"),
    (suggestion(X[:3], Y[:3], X[4]), "X_pen must be an array (m, D)"),
    (suggestion(X[:3], Y[:3], X[3:, :1]), "one column count"),
    (suggestion(X[0], Y[:1], X[3:]), "one column count"),
    (suggestion(X[:3], Y[:3] * np.nan, X[3:]), "NaN or infinity"),
    (suggestion(X[:3], Y[:3], X[3:] * np.inf), "X_pen must hold finite numbers"),
    (suggestion(X[:0], Y[:0]), "at least one row"),
    (suggestion(X[:3] * np.nan, Y[:3]), "NaN or infinity"),
)


@pytest.mark.parametrize("method", ["gp", RandomSearch])
def test_a_name_or_a_class_is_no_method(method):
    with pytest.raises(ConfigError):
        Suggester(method)


def test_an_ensemble_for_other_columns_is_refused():
    x, y = np.random.default_rng(0).random((6, 3)), np.arange(5.0)
    with pytest.raises(DataError, match="the ensemble was trained on 4 columns, but the configurations have 3"):
        Suggester(DRE(model=MODEL), init(MODEL, 4, jax.random.key(0))).observe_and_suggest(x[:5], y, x[5:])


def test_a_growing_history_compiles_once_a_bucket():
    method = Valued(lambda history, x: -x[:, 0])  # which no other test compiles
    x, y = make_task(70)
    suggester = Suggester(method)
    before = jitted_suggest._cache_size()
    compiled = []
    for n in range(1, 41):
        suggester.observe_and_suggest(x[:n], y[:n], x[n:])
        compiled.append(jitted_suggest._cache_size() - before)
    # Histories of up to 16, 32 and 64 trials.
    assert compiled == [1] * 16 + [2] * 16 + [3] * 8
    # Another run of the same method, and a table of nearly the same size, compile nothing.
    Suggester(method, seed=1).observe_and_suggest(x[:5], y[:5], x[5:68])
    assert jitted_suggest._cache_size() - before == 3


# In the unit cube, without candidates.
POINTS = np.random.default_rng(0).random((7, 3))
HEIGHTS = -((POINTS - [0.3, 0.7, 0.5]) ** 2).sum(axis=1)
HILL = Valued(lambda history, x: -jnp.sum((x - jnp.array([[0.3, 0.7, 0.5]])) ** 2, axis=-1))


def driven(suggester, n):
    """The trials after n more of them on the hill."""
    x, y = POINTS, HEIGHTS
    for _ in range(n):
        point = suggester.observe_and_suggest(x, y)
        assert ((point >= 0) & (point <= 1)).all()
        x, y = np.vstack([x, point]), np.append(y, -((point - [0.3, 0.7, 0.5]) ** 2).sum())
    return x, y


def test_a_constant_acquisition_is_uniform_random_search():
    suggesters = [Suggester(RandomSearch(), key=jax.random.key(seed)) for seed in range(120)]
    points = np.array([suggester.observe_and_suggest(POINTS, HEIGHTS) for suggester in suggesters])
    assert points.dtype == np.float64
    for column in points.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    # Drawn again at every trial of a run, and the columns do not hang together.
    assert np.abs(np.corrcoef(points.T) - np.eye(3)).max() < 0.25
    suggester = Suggester(RandomSearch(), key=jax.random.key(0))
    assert len({tuple(suggester.observe_and_suggest(POINTS[:n], HEIGHTS[:n])) for n in range(1, 8)}) == 7


def test_the_best_of_many_points_is_suggested():
    """As by a slow search of the points that were drawn; steps from the best trials come closer than uniform draws."""
    far = {}
    for name, config in (("both", CandidateConfig()), ("uniform", CandidateConfig(steps=0))):
        far[name] = np.sqrt(-driven(Suggester(HILL, key=jax.random.key(1), candidates=config), 8)[1].max())
    assert far["both"] < 0.01 < far["uniform"] < 0.1
