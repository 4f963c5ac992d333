"""Search spaces from lists and SciPy distributions."""

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import ParameterSampler

from dre_jax import Categorical, ConfigError, Float, Int, Space
from dre_jax.space.distributions import distributions_of
from tests.error_messages import error_table


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        (stats.uniform(1.0, 2.0), Float(1.0, 3.0)),
        (stats.loguniform(1e-3, 1e2), Float(1e-3, 1e2, log=True)),
        (stats.randint(2, 5), Int(2, 4)),
        (stats.norm(1.0, 2.0), Float(*stats.norm(1.0, 2.0).ppf([0.001, 0.999]))),
        (stats.poisson(3.0), Int(0, 10)),
        ([1, 2.5, None, "auto"], Categorical([1, 2.5, None, "auto"])),
        (np.array([0.1, 1.0]), Categorical([0.1, 1.0])),
        (Float(0.0, 1.0), Float(0.0, 1.0)),
    ],
)
def test_ranges_are_those_that_the_distribution_draws_from(distribution, expected):
    assert distributions_of({"a": distribution}).space["a"] == expected


def test_alternatives_have_the_configurations_that_scikit_learn_samples():
    grids = [
        {"kernel": ["rbf"], "C": [1.0, 10.0], "tol": [0.1]},
        {"kernel": ["poly"], "C": [1.0, 10.0], "degree": [2, 3]},
        {"kernel": ["poly", "linear"], "C": [100.0]},
    ]
    distributions = distributions_of(grids)
    points = np.random.default_rng(0).random((200, len(distributions.space)))
    drawn = [distributions.values(distributions.space.params(point)) for point in points]
    assert {frozenset(one.items()) for one in drawn} == {frozenset(one.items()) for one in ParameterSampler(grids, 8)}
    assert distributions.space["C.0"].when == (("alternative", (0, 1)),)


def test_a_space_stays_as_it_is():
    space = Space({"alternative": Float(0.0, 1.0)})
    distributions = distributions_of(space)
    assert distributions.space is space
    assert distributions.values({"alternative": 0.5}) == {"alternative": 0.5}


test_other_descriptions_are_refused = error_table(
    ConfigError,
    (lambda: distributions_of({"a": stats.beta}), "a must be a range, a list, or a distribution of SciPy"),
    (lambda: distributions_of({"a": 3}), "a must be a range, a list, or a distribution of SciPy, but got 3"),
    (lambda: distributions_of({"a": "text"}), "a must be a range, a list"),
    (lambda: distributions_of({"a": stats.cauchy(0.0, np.inf)}), "must have finite quantiles"),
    (lambda: distributions_of([]), "must map names to values, or be a list of such mappings"),
    (lambda: distributions_of([{"a": [1]}, 3]), "must map names to values, but got 3"),
    (lambda: distributions_of([{"alternative": [1]}, {}]), "none may have a parameter 'alternative'"),
)
