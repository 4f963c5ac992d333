"""Every compiled method tunes a live model."""

import math

import jax
import numpy as np
import pytest

from dre_jax.methods import METHODS
from dre_jax.tuning import Categorical, Evaluated, Float, Int, Optimizer, Space, Surrogate, past_of

SPACE = Space(
    {
        "x": Float(1e-3, 1.0, log=True),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
    }
)
QUICK_TO_COMPILE = {"random", "dre"}
NAMES = [
    pytest.param(name, marks=[] if name in QUICK_TO_COMPILE else pytest.mark.thorough)
    for name, entry in METHODS.items()
    if entry.host is None
]


def loss(params, shift=0.0):
    return (math.log10(params["x"]) + 1.5 + shift) ** 2 + 0.1 * params.get("degree", 0)


@pytest.fixture(scope="module")
def past():
    points = np.random.default_rng(0).random((12, len(SPACE)))
    configurations = [SPACE.params(point) for point in points]
    return past_of(
        SPACE,
        {
            str(shift): [Evaluated(params, loss(params, shift)) for params in configurations]
            for shift in (-0.1, 0.0, 0.1)
        },
        direction="minimize",
    )


@pytest.mark.parametrize("name", NAMES)
def test_as_a_tuner(name, quick, past):
    """From nothing, with trials that run, failed, are infinite or equal: valid, new, and the same again."""
    method = quick(name)
    params = method.fit(past.search_space(), jax.random.key(0))
    surrogate = Surrogate(SPACE, name, method, params)

    def run():
        optimizer = Optimizer(SPACE, surrogate, seed=2)
        for value in (1.0, math.inf, math.nan, 1.0, None):
            trial = optimizer.ask()
            if value is not None:
                optimizer.tell(trial, value)
        return [trial.params for trial in (*optimizer.trials, *optimizer.ask(2))]

    found = run()
    assert all(SPACE.check(params) == params for params in found)
    assert len({tuple(params.items()) for params in found}) == 7
    assert run() == found
