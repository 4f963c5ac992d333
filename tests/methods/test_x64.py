"""A process that has `jax_enable_x64` on, or off, for a model of its own: it gets the same surrogates and suggestions.

`scripts/test --x64` runs this where the whole process has it on, all of its threads included.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.suggest.precision import precision_of
from dre_jax.tuning import Evaluated, Float, Int, Optimizer, Space, Surrogate, past_of
from tests.known_methods import quick_method

pytestmark = [pytest.mark.x64, pytest.mark.thorough]  # no test of the quick tier, as all have both settings
SPACE = Space({"x": Float(0.0, 1.0), "n": Int(1, 4)})
TASKS = {str(t): [Evaluated({"x": x / 7, "n": 1 + x % 4}, (x / 7 - t / 3) ** 2) for x in range(8)] for t in range(2)}


def suggestions(surrogate, n_trials, n_jobs=1):
    optimizer = Optimizer(SPACE, surrogate)
    optimizer.optimize(lambda trial: trial["x"], n_trials=n_trials, n_jobs=n_jobs)
    return [trial.params for trial in optimizer.trials]


def in_both(compute):
    """What is computed as the process has it set, and the other way round."""
    own = jax.config.jax_enable_x64
    results = []
    for x64 in (own, not own):
        with jax.enable_x64(x64):
            results.append(compute())
            assert jnp.zeros(1).dtype == (np.float64 if x64 else np.float32)
    return results


@pytest.mark.parametrize(
    "name", ["gcp", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("dre", "hedged-prior"))]
)
def test_surrogates(name, tmp_path):
    def tuned():
        past = past_of(SPACE, TASKS, direction="minimize")
        surrogate = Surrogate.fit(past, method=quick_method(name), n_start=1)
        surrogate.save(tmp_path)
        with precision_of(surrogate.method) as dtype:
            assert jnp.zeros(1).dtype == dtype
        return surrogate.params, [suggestions(used, 3) for used in (surrogate, Surrogate.load(tmp_path))]

    (params, suggested), (other_params, others) = in_both(tuned)
    jax.tree.map(np.testing.assert_array_equal, params, other_params)
    assert {leaf.dtype.itemsize for leaf in jax.tree.leaves(params)} <= {1, 4}
    assert suggested == others == [suggested[0]] * 2


def test_without_a_surrogate():
    suggested, others = in_both(lambda: suggestions(None, 6))
    assert suggested == others
    assert len(suggestions(None, 6, n_jobs=2)) == 6  # in threads with the setting of the process
