"""Studies of several objectives: what is found, what a front is, what a file keeps, what is refused."""

import math
import pickle

import numpy as np
import pytest

from dre_jax import DataError, DreError, EngineConfig, Evaluated, Float, Optimizer, Space, Surrogate, past_of
from dre_jax.suggest.hypervolume import hypervolume
from dre_jax.tuning.objectives.front import order_by_front, region_above
from tests.error_messages import error_table

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
DIRECTIONS = {"near": "minimize", "far": "maximize"}


def schaffer(params, shift=0.0):
    """The front is the segment x in [0.3, 0.7], y = 0.4 (+ shift)."""
    x, y = params["x"] - shift, params["y"] - 0.4 - shift
    return {"near": (x - 0.3) ** 2 + y**2, "far": -((x - 0.7) ** 2) - y**2}


def volume(optimizer):
    values = np.array([[-trial.values["near"], trial.values["far"]] for trial in optimizer.front])
    return hypervolume(values, np.full(2, -0.2)) if len(values) else 0.0


BEST = volume(Optimizer(SPACE, directions=DIRECTIONS)) + hypervolume(
    np.array([[-((a / 200 * 0.4) ** 2), -((0.4 - a / 200 * 0.4) ** 2)] for a in range(201)]), np.full(2, -0.2)
)


@pytest.fixture(scope="module")
def study():
    """With failures, a constraint, an enqueued trial and one that runs."""
    optimizer = Optimizer(SPACE, directions=DIRECTIONS, seed=1)
    optimizer.enqueue({"x": 0.9})
    for trial in [optimizer.ask(), *optimizer.ask(3)]:
        optimizer.tell(trial, schaffer(trial), constraints={"x": trial["x"] - 0.6})
    optimizer.add({"x": 0.1, "y": 0.95}, None)  # before the first suggestion by a model, so that one program is enough
    running = optimizer.ask()
    for _ in range(10):
        trial = optimizer.ask()
        values = schaffer(trial) if trial["y"] < 0.9 else {"near": math.nan, "far": 1.0}
        optimizer.tell(trial, values, constraints={"x": trial["x"] - 0.6})
    return optimizer, running


@pytest.mark.slow
def test_the_front_under_a_constraint(study):
    optimizer, running = study
    assert (optimizer.trials[0]["x"], optimizer.trials[running.number].state) == (0.9, "running")
    complete = [trial for trial in optimizer.trials if trial.state == "complete" and trial["x"] <= 0.6]
    better = lambda a, b: a["near"] <= b["near"] and a["far"] >= b["far"] and a != b  # noqa: E731
    expected = [one for one in complete if not any(better(other.values, one.values) for other in complete)]
    assert list(optimizer.front) == expected
    limit = hypervolume(np.array([[-((a / 300) ** 2), -((0.4 - a / 300) ** 2)] for a in range(91)]), np.full(2, -0.2))
    assert volume(optimizer) > 0.8 * limit
    assert len({tuple(trial.params.values()) for trial in optimizer.trials}) == len(optimizer.trials)


def test_a_study_continues_from_its_file_and_a_copy(study, tmp_path):
    optimizer, _ = study
    optimizer.save(tmp_path / "study.json")
    again, copy = Optimizer.load(tmp_path / "study.json"), pickle.loads(pickle.dumps(optimizer))
    assert (again.directions, again.trials, again.front) == (DIRECTIONS, optimizer.trials, optimizer.front)
    assert again.ask().params == copy.ask().params
    assert len({(round(trial["x"], 4), round(trial["y"], 4)) for trial in copy.ask(3)}) == 3
    again.tell(len(again.trials) - 1, {"near": math.inf, "far": 0.0}, constraints={"x": 0.0})
    again.save(tmp_path / "study.json")
    assert Optimizer.load(tmp_path / "study.json").trials[-1].values == {"near": math.inf, "far": 0.0}
    assert [*again.to_frame().columns[:4]] == ["number", "state", "values_near", "values_far"]


def test_values_in_the_order_of_the_directions():
    optimizer = Optimizer(SPACE, directions=DIRECTIONS)
    for values in ((0.5, 2.0), [1, 1.5], np.array([0.25, 1.0]), {"far": 0.5, "near": 3.0}):
        optimizer.tell(optimizer.ask(), values)
    optimizer.optimize(lambda trial: tuple(schaffer(trial).values()), 1)
    assert [list(trial.values) for trial in optimizer.trials] == [["near", "far"]] * 5
    assert [trial.values["far"] for trial in optimizer.trials[:4]] == [2.0, 1.5, 1.0, 0.5]
    assert optimizer.trials[4].values == schaffer(optimizer.trials[4])
    assert optimizer.tell(optimizer.ask(), (0.1, math.nan)).state == "failed"


@pytest.mark.parametrize("point", [(0.05, -0.2), {"far": -0.2, "near": 0.05}])
def test_a_reference_point(point, tmp_path):
    """Only values that improve on it count: in the hypervolume, by counting points of a grid, and in suggestions."""
    optimizer = Optimizer(SPACE, directions=DIRECTIONS, seed=1, config=EngineConfig(reference_point=point))
    assert optimizer.hypervolume == 0.0
    optimizer.optimize(schaffer, 12)
    assert sum(t.values["near"] < 0.05 and t.values["far"] > -0.2 for t in optimizer.trials[4:]) >= 5
    near, far = (a.ravel() for a in np.meshgrid((np.arange(400) + 0.5) / 8000, -(np.arange(400) + 0.5) / 2000))
    dominated = [(near >= t.values["near"]) & (far <= t.values["far"]) for t in optimizer.trials]
    assert optimizer.hypervolume == pytest.approx(0.01 * np.any(dominated, axis=0).mean(), rel=0.01)
    optimizer.save(tmp_path / "study.json")
    again = Optimizer.load(tmp_path / "study.json")
    assert (again.hypervolume, again.ask()) == (optimizer.hypervolume, optimizer.ask())


def test_several_objectives_have_no_curves():
    optimizer = Optimizer(SPACE, directions=DIRECTIONS)
    with pytest.raises(DataError, match="report needs a study of one objective"):
        optimizer.report(optimizer.ask(), 1.0, step=1)


@pytest.mark.thorough
def test_parallel_trials_differ():
    optimizer = Optimizer(SPACE, directions=DIRECTIONS, config=EngineConfig(pending_strategy="max"))
    for trial in optimizer.ask(6):
        optimizer.tell(trial, schaffer(trial))
    assert len({(round(trial["x"], 4), round(trial["y"], 4)) for trial in optimizer.ask(3)}) == 3


@pytest.mark.thorough
def test_a_past_of_each_objective_is_used():
    """Past studies have their front nearby."""
    rng = np.random.default_rng(0)
    tasks = {}
    for name, shift in (("a", -0.05), ("b", 0.05), ("c", 0.02)):
        drawn = [{"x": x, "y": y} for x, y in rng.uniform(size=(40, 2)).tolist()]
        tasks[name] = [(params, schaffer(params, shift)) for params in drawn]
    surrogates = {}
    for objective, direction in DIRECTIONS.items():
        rows = {name: [Evaluated(params, values[objective]) for params, values in task] for name, task in tasks.items()}
        surrogates[objective] = Surrogate.fit(past_of(SPACE, rows, direction=direction), quiet=True)
    optimizer = Optimizer(None, surrogates, directions=DIRECTIONS)
    assert [trial.params for trial in optimizer.ask(2)] == [one.start[0] for one in surrogates.values()]
    for number in range(2):
        optimizer.tell(number, schaffer(optimizer.trials[number]))
    optimizer.optimize(schaffer, 6)
    assert volume(optimizer) > 0.9 * BEST
    with pytest.raises(DataError, match=r"must have one value: pass trial.with_objective"):
        surrogates["near"].sources(optimizer.trials)
    trials = [trial.with_objective("near") for trial in optimizer.trials]
    assert len(surrogates["near"].sources(trials).studies) == 3


def test_the_order_of_trials_is_by_fronts_then_by_distance():
    values = np.array([[0.0, 3.0], [1.0, 2.9], [2.9, 1.0], [3.0, 0.0], [1.6, 1.5], [1.0, 1.0], [0.5, 0.5]])
    order = np.argsort(-order_by_front(values / 3.0, np.ones(7, bool)), kind="stable").tolist()
    assert order[:5] == [0, 3, 4, 1, 2]
    assert order[5:] == [5, 6]


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_fronts_of_any_size_have_arrays_of_one_size(m):
    """So that only a longer history compiles."""
    shapes = set()
    for n in (1, 8, 32):
        values, where = np.random.default_rng(n).dirichlet(np.ones(m), 32), np.arange(32) < n  # all in the front
        region = region_above(values, order_by_front(values, where), where, where, 32)
        shapes.add(tuple(np.shape(part) for part in region))
    assert len(shapes) == 1


def test_a_front_of_many_objectives_keeps_its_points():
    """Without the dominated and the infeasible, on a scale from the reference point to the best."""
    values = np.array([[0.0, 1.0, 0.5, 0.5], [1.0, 0.0, 0.5, 0.4], [0.9, 0.0, 0.5, 0.4], [1.0, 1.0, 1.0, 1.0]])
    feasible, where = np.array([True, True, True, False]), np.ones(4, bool)
    front = region_above(values, order_by_front(values, where), feasible, where, 8)
    reference, top, *points = front.thresholds.T
    np.testing.assert_array_equal(reference, np.full(4, -0.1))
    np.testing.assert_allclose(top, [1.0, 1.0, 0.5, 0.5])
    assert sorted(np.array(points)[front.where].tolist()) == values[:2].tolist()


def of_both(surrogates=None, **options):
    return Optimizer(SPACE, surrogates, directions=DIRECTIONS, **options)


test_refused = error_table(
    DreError,
    (lambda: Optimizer(SPACE, directions={"a": "minimize"}), "two or more objectives"),
    (lambda: Optimizer(SPACE, directions={"a": "minimize", "b": "up"}), "direction of 'b' must be"),
    (lambda: of_both(direction="maximize"), "direction= or directions="),
    (lambda: Optimizer(SPACE, {"near": None}), "need directions="),
    (lambda: of_both({"c": None}), "mapping of them to surrogates"),
    (lambda: of_both({"far": Surrogate(SPACE, "dre", object(), None)}), "or gp, but that of 'far' is of dre"),
    (lambda: of_both({"far": Surrogate(SPACE, "gp", 0, 0, direction="minimize")}), "surrogate learned to minimize"),
    (lambda: of_both().best, "front has its best trade-offs"),
    (lambda: of_both().expected_improvement(), "one objective"),
    *(
        (lambda values=values: of_both().add({"x": 0, "y": 0}, values), "'near', 'far' to numbers, or be as many in")
        for values in (1.0, (1.0,), (1.0, 2.0, 3.0), {"near": 1.0}, "ab")
    ),
    *(
        (
            lambda point=point: of_both(config=EngineConfig(reference_point=point)),
            "must be finite numbers of 'near', 'far'",
        )
        for point in ((1.0,), (1.0, math.inf), {"near": 1.0}, 3.0)
    ),
    (lambda: Optimizer(SPACE, config=EngineConfig(reference_point=(1.0,))), "needs a study of several objectives"),
    (
        lambda: of_both().hypervolume,
        "EngineConfig.reference_point must be finite numbers of 'near', 'far', but is None",
    ),
    (lambda: of_both(config=EngineConfig(pending_strategy="draw")), "draws need a method"),
    (lambda: of_both(config=EngineConfig(method="random")), "needs gp-mixture or gp, but the method is random"),
)
