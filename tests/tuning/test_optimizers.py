"""Ask and tell for many studies at once: each is the study that `Optimizer` runs."""

import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.methods import find
from dre_jax.tuning import EngineConfig, Float, Less, Optimizer, Optimizers, Space
from dre_jax.tuning.compiled.suggestions import suggest_points
from tests.error_messages import error_table, raises_line

SQUARE = Space({"x": Float(0.0, 1.0), "y": Float(1.0, 100.0, log=True)})


def bowl(params, centre=0.3):
    return (params["x"] - centre) ** 2 + 0.1 * (np.log10(params["y"]) - 1.2) ** 2


def points(trials):
    return np.array([[trial.params["x"], np.log10(trial.params["y"]) / 2.0] for trial in trials])


@pytest.mark.slow
def test_studies_begin_and_end_at_any_time_and_values_may_be_late():
    """Three studies of which one is asked late, one waits for a value, and one ends."""
    studies = Optimizers(SQUARE, 2)
    alone = [Optimizer(SQUARE, seed=seed) for seed in (0, 1, 7)]
    waiting = []
    for i in range(9):
        if i == 3:
            assert studies.begin(seed=7) == 2
        trials = studies.ask()
        expected = [alone[trial.study].ask() for trial in trials]
        np.testing.assert_allclose(points(trials), points(expected), rtol=0.0, atol=1e-7)
        values = [bowl(trial.params, 0.2 + 0.2 * trial.study) for trial in trials]
        told = [None if (i, trial.study) == (5, 1) else value for trial, value in zip(trials, values, strict=True)]
        waiting += [args for *args, one in zip(trials, expected, values, told, strict=True) if one is None]
        studies.tell(trials, told)
        for own, value in zip(expected, told, strict=True):
            if value is not None:
                alone[trials[expected.index(own)].study].tell(own, value)
        if i == 6:
            ((trial, own, value),) = waiting
            studies.tell([trial], [value])
            alone[1].tell(own, value)
        if i == 7:
            studies.end(0)
    assert studies.studies == [1, 2]
    assert abs(studies.best(1)[0] - alone[1].best.value) < 1e-9


DIRECTIONS = {"near": "minimize", "far": "maximize"}


def trade_off(params):
    """What `Optimizer.tell` takes: two objectives, one of which fails or diverges in places, a constraint, a cost."""
    near, far = (params["x"] - 0.2) ** 2 + 0.1 * np.log(params["y"]), -((params["x"] - 1.0) ** 2) - np.log(params["y"])
    far = np.nan if params["x"] > 0.8 else -np.inf if 10.0 < params["y"] < 16.0 else far
    return {"near": near, "far": far}, {"memory": 0.4 - params["x"]}, float(np.exp(2.0 * params["x"]))


@pytest.mark.thorough
def test_objectives_constraints_and_costs_are_those_of_an_optimizer():
    """With a budget and a trial that runs on; a study goes on as an `Optimizer`; later suggestions compile nothing."""
    config = EngineConfig(method="gp", budget=40.0, reference_point=(1.0, -9.0))
    studies = Optimizers(SQUARE, 2, method="gp", directions=DIRECTIONS, budget=40.0, reference_point=(1.0, -9.0))
    alone = [Optimizer(SQUARE, directions=DIRECTIONS, seed=seed, config=config) for seed in (0, 1)]
    sizes = []
    for i in range(13):
        trials, expected = studies.ask(), [optimizer.ask() for optimizer in alone]
        sizes.append(suggest_points._cache_size())
        np.testing.assert_allclose(points(trials), points(expected), rtol=0.0, atol=1e-6)
        values, constraints, costs = map(list, zip(*(trade_off(trial.params) for trial in trials), strict=True))
        values[0] = None if i == 9 else values[0]
        studies.tell(trials, values, constraints=constraints, costs=costs)
        for study, optimizer in enumerate(alone):
            if values[study] is not None:
                optimizer.tell(expected[study], values[study], constraints=constraints[study], cost=costs[study])
    assert sizes[-1] == sizes[-4]
    for study, optimizer in enumerate(alone):
        assert [trial.number for trial in studies.front(study)] == [trial.number for trial in optimizer.front]
        assert studies.hypervolume(study) == pytest.approx(optimizer.hypervolume, rel=1e-6)
        assert studies.optimizer(study).trials == studies.trials(study)
    assert {trial.state for trial in studies.trials(0)} == {"running", "failed", "complete"}
    with raises_line(DataError, "front has its best trade-offs"):
        studies.best(0)


@pytest.mark.slow
def test_the_best_trial_is_feasible():
    studies = random_studies(2)
    for excess in (1.0, -1.0, 1.0):
        trials = studies.ask()
        studies.tell(trials, [excess, -excess], constraints=[{"memory": -excess}, {"memory": 1.0}], costs=[2.0, None])
    assert studies.best(0)[0] == 1.0
    assert [trial.cost for trial in studies.trials(0)] == [2.0] * 3
    with raises_line(DataError, "none of the 3 complete trials does"):
        studies.best(1)
    trials = studies.ask()
    for bad in ({"constraints": [{"memory": 0.0}, {}]}, {"costs": [1.0, 0.0]}, {"costs": [1.0]}):
        with pytest.raises(DataError):
            studies.tell(trials, [0.0, 0.0], **bad)
    assert [studies.trials(study)[-1].state for study in (0, 1)] == ["running"] * 2


def random_studies(n=1):
    return Optimizers(SQUARE, n, method="random")


@pytest.mark.parametrize("n", [12, pytest.param(258, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_studies_of_ruled_spaces_are_those_of_an_optimizer(n):
    """Also beyond the trials that a method gets, and those of a Sobol sequence."""
    space = Space({"a": Float(0.0, 1.0, likely=(0.1, 0.3)), "b": Float(0.0, 1.0)}, rules=[Less("a", "b")])
    studies = Optimizers(space, 1, method="random")
    optimizer = Optimizer(space, config=EngineConfig(method="random"))
    for _ in range(n):
        (trial,), expected = studies.ask(), optimizer.ask()
        np.testing.assert_allclose(space.point(trial.params), space.point(expected.params), rtol=0.0, atol=1e-6)
        optimizer.tell(expected, trial.params["a"])
        studies.tell([trial], [trial.params["a"]])
    assert len({tuple(trial.params.values()) for trial in studies.trials(0)}) == n


def gp_studies(n):
    """Each test that compiles them with a model of failures shares these programs."""
    return Optimizers(SQUARE, n, method="gp", direction="maximize", pending_strategy="max")


@pytest.mark.slow
def test_failures_are_not_repeated_nearby():
    studies = gp_studies(1)
    for _ in range(12):
        trials = studies.ask()
        studies.tell(trials, [float("nan")] * len(trials))
    last = studies.ask()[0]
    failed = np.array([SQUARE.point(trial.params) for trial in studies.trials(0) if trial.state == "failed"])
    assert len(failed) == 12
    assert np.abs(failed - SQUARE.point(last.params)).max(axis=1).min() > 0.02


@pytest.mark.slow
def test_a_study_goes_on_as_an_optimizer(tmp_path):
    """With a failed and a running trial; both suggest the same next."""
    studies = gp_studies(2)
    told = {}
    for i in range(8):
        trials = studies.ask()
        values = [float("nan") if i == 3 else -bowl(trial.params) for trial in trials]
        told |= {
            (trial.study, trial.number): (trial.params, value) for trial, value in zip(trials, values, strict=True)
        }
        studies.tell(trials, values if i < 7 else [None, values[1]])
    optimizer = studies.optimizer(0)
    studies.save(0, tmp_path / "study.json")
    loaded = Optimizer.load(tmp_path / "study.json")
    states = ["complete"] * 3 + ["failed"] + ["complete"] * 3 + ["running"]
    for trials in (studies.trials(0), optimizer.trials, loaded.trials):
        assert [trial.state for trial in trials] == states
        assert [trial.params for trial in trials] == [told[0, n][0] for n in range(8)]
        assert all(trial.value == told[0, trial.number][1] for trial in trials if trial.state == "complete")
    assert (optimizer.direction, optimizer.seed) == ("maximize", 0)
    (expected,) = studies.ask([0])
    for one in (optimizer, loaded):
        np.testing.assert_allclose(points([one.ask()]), points([expected]), rtol=0.0, atol=1e-7)
    assert len(studies.optimizer(1).trials) == 8
    assert studies.optimizer(0).trials == studies.trials(0)


def test_methods_of_optimizers_that_go_on():
    for method in ("random", find("random").make(), find("gp-mixture").make()):
        assert Optimizers(SQUARE, 1, method=method).optimizer(0).trials == ()
    with raises_line(ConfigError, "takes its method by name, but this gp-mixture has settings"):
        Optimizers(SQUARE, 1, method=find("gp-mixture").make({"degrees_of_freedom": 9.0})).optimizer(0)
    with raises_line(DataError, "there must be a study 3"):
        random_studies().trials(3)


def tell_twice():
    studies = random_studies()
    trials = studies.ask()
    studies.tell(trials, [1.0])
    studies.tell(trials, [1.0])


def tell_too_few():
    studies = random_studies(2)
    studies.tell(studies.ask(), [1.0])


def test_a_bad_value_leaves_all_trials_running():
    studies = random_studies(2)
    trials = studies.ask()
    with raises_line(DataError, "must be a number, but got 'none'"):
        studies.tell(trials, [1.0, "none"])
    studies.tell(trials, [1.0, 2.0])
    assert [studies.best(study)[0] for study in studies.studies] == [1.0, 2.0]


test_errors = error_table(
    DataError,
    (lambda: random_studies().tell([], 0.5), "each trial needs a value or None, but got 0 trials and 0.5"),
    (tell_twice, "must be running, but is not"),
    (tell_too_few, "each trial needs a value or None"),
    (lambda: random_studies().ask([3]), "there must be a study 3"),
    (lambda: random_studies().best(0), "has no trial with a value yet"),
)
test_settings = error_table(
    ConfigError,
    (lambda: Optimizers(SQUARE, direction="up"), "direction"),
    (lambda: Optimizers(SQUARE, -1), "n must be a whole number from 0, but got -1"),
    (lambda: Optimizers(SQUARE, 1.5), "n must be a whole number from 0, but got 1.5"),
    (lambda: random_studies().ask(1), r"needs a list of studies, but got 1: ask([1]) asks one study"),
    (lambda: Optimizers(SQUARE, method="gcp"), "pass surrogate=Surrogate.fit"),
)
