"""A surrogate reads the spaces that it knows; what differs is named."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from dre_jax.errors import DataError
from dre_jax.search.candidates import sobol_points
from dre_jax.tuning import (
    Categorical,
    EngineConfig,
    Evaluated,
    Float,
    Int,
    Optimizer,
    Space,
    Surrogate,
    past_of,
)
from dre_jax.tuning.engine import Engine, Observation

KNOWN = Space(
    {
        "C": Float(1e-3, 1e3, log=True),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
    }
)
EXTRA = {"width": Int(1, 64), "mode": Categorical(["fast", "slow"])}


@pytest.fixture(scope="module")
def surrogate():
    """Of tasks on which a large C is best."""
    points = np.random.default_rng(0).random((12, len(KNOWN)))
    tasks = {}
    for task in range(3):
        trials = [KNOWN.params(point) for point in points]
        tasks[str(task)] = [Evaluated(params, -np.log(params["C"]) - 0.1 * task) for params in trials]
    return Surrogate.fit(past_of(KNOWN, tasks, direction="minimize"), method="gcp", settings={"prior.steps": 5})


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"C": KNOWN["C"], "kernel": KNOWN["kernel"]}, "degree (only in the surrogate)"),
        ({**KNOWN, "C": Float(1e-4, 1e3, log=True)}, "C ([0.0001, 1000.0] here, [0.001, 1000.0] in the surrogate)"),
        ({**KNOWN, "C": Categorical([1, 2])}, "C (a categorical here, a number in the surrogate)"),
        (
            {**KNOWN, "kernel": Categorical(["rbf", "poly", "linear"])},
            "kernel (choices ['rbf', 'poly', 'linear'] here, ['rbf', 'poly'] in the surrogate)",
        ),
        (
            {**KNOWN, **EXTRA},
            "width (only here), mode (only here); ignore_extra=True (--ignore-extra on the command line) draws",
        ),
        (
            {"c": Float(0, 1)},
            "C (only in the surrogate), kernel (only in the surrogate), degree (only in the surrogate)",
        ),
    ],
)
def test_other_spaces_are_refused_by_name(surrogate, space, message):
    for make in (Engine, Optimizer):
        with pytest.raises(DataError) as caught:
            make(Space(space), surrogate)
        assert "the surrogate must know the space, but they differ: " in str(caught.value)
        assert message in str(caught.value)


def test_the_surrogate_has_the_space(surrogate):
    assert Optimizer(surrogate=surrogate).space is surrogate.space


def test_a_study_of_the_other_direction_is_refused(surrogate):
    import optuna

    from dre_jax.tuning.optuna import DRESampler, to_optuna
    from dre_jax.tuning.sklearn import DRESearchCV

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def study(surrogate):
        return optuna.create_study(direction="maximize", sampler=DRESampler(surrogate=surrogate, seed=0))

    losses = replace(surrogate, metric="loss")
    for use in (
        lambda surrogate: Optimizer(KNOWN, surrogate, direction="maximize"),
        lambda surrogate: study(surrogate).ask(to_optuna(KNOWN)),
        lambda surrogate: DRESearchCV(DummyClassifier(), surrogate=surrogate).fit([[0.0]] * 10, [0, 1] * 5),
    ):
        with pytest.raises(DataError, match=r"learned to minimize loss, but is to maximize: pass direction='minimize'"):
            use(losses)
    turned = losses.with_direction("maximize")
    assert (turned.direction, turned.metric) == ("maximize", None)
    first = Optimizer(KNOWN, turned, direction="maximize").ask()
    assert first.params == study(turned).ask(to_optuna(KNOWN)).params == surrogate.start[0]


def test_only_extra_ones_are_ignored(surrogate):
    config = EngineConfig(ignore_extra=True)
    with pytest.raises(DataError, match=r"they differ: degree \(only in the surrogate\)$"):
        Engine(Space({"C": KNOWN["C"], "kernel": KNOWN["kernel"], **EXTRA}), surrogate, config=config)
    with pytest.raises(DataError, match="no hyperparameter in common"):
        Engine(Space(EXTRA), surrogate, config=config)


def test_ignored_ones_are_drawn_at_random(surrogate):
    space = Space({**KNOWN, **EXTRA})
    engine, told = Engine(space, surrogate, config=EngineConfig(ignore_extra=True)), []
    for number in range(8):
        params = engine.suggest(told, number=number)
        assert space.check(params) == params
        assert params not in [one.params for one in told]
        told.append(Observation(params, np.log(params["C"])))
    found = [one.params for one in told]
    # First what would have been best before, with something for what was not known then.
    known = [{name: value for name, value in params.items() if name not in EXTRA} for params in found]
    assert known[: len(surrogate.start)] == list(surrogate.start)
    assert len({params["width"] for params in found}) > 4
    assert {params["mode"] for params in found} == {"fast", "slow"}
    # The others are the surrogate's: what was best before.
    assert np.median([params["C"] for params in found]) > 10


def test_a_narrower_space_is_read(surrogate):
    """Fewer choices, tighter bounds, another order: encoded as the surrogate knows them."""
    space = Space({"kernel": Categorical(["poly"]), "degree": Int(3, 3), "C": Float(0.1, 1.0, log=True)})
    assert Engine(space, surrogate).space == space
    for point in sobol_points(16, len(space), 0):
        params = space.params(point)
        columns = space.layout_in(KNOWN).columns(space.point(params))
        np.testing.assert_allclose(columns, KNOWN.encode(params), rtol=0, atol=1e-12)
