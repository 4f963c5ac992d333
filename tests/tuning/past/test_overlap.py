"""Past tasks of overlapping search spaces."""

from dataclasses import replace

import numpy as np
import pytest

from dre_jax import Categorical, Evaluated, Float, Int, Optimizer, Space, Surrogate, from_frame, from_studies, past_of
from dre_jax.data.scale import Scale
from dre_jax.errors import DataError, DataWarning, DreError
from dre_jax.space.encoding import LevelCode, NumberCode
from dre_jax.tuning import Interval
from dre_jax.tuning.past.overlap import SpaceChanges, absent_names, with_absence
from tests.error_messages import error_table
from tests.known_methods import SIMPLE, TaskMeans

SPACE = Space(
    {
        "x": Float(0.0, 1.0),
        "rate": Float(1e-4, 1.0, log=True),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "size": Categorical(["s", "m", "l"], ordered=True),
    }
)
FULL = {"x": 0.25, "rate": 1e-2, "kernel": "poly", "degree": 5, "size": "m"}


def trials(*missing, n=6, **others):
    """Returns trials whose values are those of x, without some hyperparameters and with others."""
    params = {name: value for name, value in FULL.items() if name not in missing} | others
    return [Evaluated(params | {"x": i / n}, i / n) for i in range(n)]


def columns(past, task):
    """Returns the columns of the first trial of a task by name."""
    names = [column.name for column in past.space.columns]
    return dict(zip(names, past.tasks[task].X[0].tolist(), strict=True))


def test_an_absent_hyperparameter_is_encoded_as_an_inactive_one():
    tasks = {"old": trials("rate", "kernel", "degree", "size"), "new": trials()}
    past = past_of(SPACE, tasks, direction="maximize")
    assert past.exclusions == ()
    assert past.absent == {"rate": ["old"], "kernel": ["old"], "size": ["old"]}
    names = ["x", "rate", "rate.na", "degree", "degree.na", *(f"kernel.ohe._{level}" for level in ("rbf", "poly"))]
    names += ["kernel.ohe._INVALID", *(f"size.ohe._{level}" for level in ("s", "m", "l", "INVALID"))]
    zeros = dict.fromkeys(names, 0.0)
    flags = {"rate.na": 1.0, "kernel.ohe._INVALID": 1.0, "degree.na": 1.0, "size.ohe._INVALID": 1.0}
    assert columns(past, "old") == zeros | flags
    values = {"rate": 0.5, "kernel.ohe._poly": 1.0, "degree": 1.0, "size.ohe._m": 1.0}
    assert columns(past, "new") == pytest.approx(zeros | values, abs=1e-6)


def test_a_child_of_an_absent_parent_keeps_its_value():
    """Models that were always polynomial had a degree, and no choice of kernels."""
    past = past_of(SPACE, {"old": trials("kernel")}, direction="maximize")
    old = columns(past, "old")
    assert (old["degree"], old["degree.na"], old["kernel.ohe._INVALID"]) == (1.0, 0.0, 1.0)
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0, when={"x": Interval(above=0.5)})})
    past = past_of(space, {"old": [Evaluated({"y": i / 6}, i) for i in range(6)]}, direction="maximize")
    assert (past.exclusions, past.absent) == ((), {"x": ["old"]})
    np.testing.assert_allclose(past.tasks["old"].X, [[0.0, i / 6, 0.0, 1.0] for i in range(6)], atol=1e-7)


def test_unknown_hyperparameters_default_values_and_new_names():
    past = past_of(SPACE, {"a": trials(momentum=0.9), "b": trials()}, direction="maximize")
    assert (past.exclusions, past.absent, past.unknown) == ((), {}, {"momentum": ["a"]})
    np.testing.assert_array_equal(past.tasks["a"].X, past.tasks["b"].X)
    past = past_of(SPACE, {"old": trials("rate"), "new": trials()}, direction="maximize", absent={"rate": 1e-2})
    assert past.absent == {}
    np.testing.assert_array_equal(past.tasks["old"].X, past.tasks["new"].X)
    rbf = {"kernel": "rbf"}
    tasks = {"old": trials("kernel", "degree"), "new": trials("degree", **rbf)}
    past = past_of(SPACE, tasks, direction="maximize", absent=rbf)
    np.testing.assert_array_equal(past.tasks["old"].X, past.tasks["new"].X)
    old = [Evaluated({"eta" if k == "rate" else k: v for k, v in t.params.items()}, t.value) for t in trials()]
    past = past_of(SPACE, {"old": old, "new": trials()}, direction="maximize", renamed={"eta": "rate"})
    assert (past.exclusions, past.absent, past.unknown) == ((), {}, {})
    np.testing.assert_array_equal(past.tasks["old"].X, past.tasks["new"].X)


def test_excluded_trials_and_tasks():
    """Trials that lack a hyperparameter which others have, those with two names of one, and tasks without any."""
    past = past_of(SPACE, {"a": [*trials(n=4), *trials("rate", n=3)]}, direction="maximize")
    (exclusion,) = past.exclusions
    assert str(exclusion).startswith("a: a configuration must give every active hyperparameter")
    assert str(exclusion).endswith("but 'rate' is missing (3 trials)")
    assert (len(past.tasks["a"].y), past.absent) == (4, {})
    past = past_of(SPACE, {"a": [Evaluated({"y": 0.1 * i}, i) for i in range(5)]}, direction="maximize")
    assert [one.reason.split(",")[0] for one in past.exclusions] == ["a task must have a hyperparameter of the space"]
    assert len(past) == 0
    past = past_of(SPACE, {"a": trials(eta=0.1)}, direction="maximize", renamed={"eta": "rate"})
    assert "must have 'rate' by one name, but got x, rate" in past.exclusions[0].reason


def with_changes(**changes):
    return lambda: past_of(SPACE, {}, direction="maximize", **changes)


test_invalid_changes = error_table(
    DreError,
    (with_changes(absent={"rat": 0.1}), "but got 'rat'"),
    (with_changes(absent={"rate": 2.0}), "rate must be a number in"),
    (with_changes(renamed={"eta": "rat"}), "but got 'rat'"),
    (with_changes(renamed={"eta": "rate", "lr": "rate"}), "must have one old name"),
    (lambda: past_of({"x": SPACE["x"]}, {}, direction="minimize"), "the search space must be a Space, but got {'x'"),
    (lambda: past_of(SPACE, [trials()], direction="minimize"), "past tasks must map names to trials, but got [["),
    (lambda: past_of(SPACE, {"a": [(FULL, 0.1)]}, direction="minimize"), "task 'a' must be an Evaluated, but is ({"),
    (lambda: Surrogate.fit({"a": trials()}), "learns from past tasks as past_of returns them, but got {'a'"),
    (lambda: Surrogate.fit(past_of(SPACE, {}, direction="minimize"), seed=-1), "the seed must be a whole number"),
)


def test_tables():
    frame = {"task": ["a"] * 4, "value": [1.0, 2.0, 3.0, 4.0], "u": [0.1, 0.2, 0.3, 0.4]}
    space = Space({"x": Float(0.0, 1.0), "dropout": Float(0.0, 0.5)})
    with pytest.raises(DataError, match=r"no 'dropout'; absent=\{'dropout': None\} says that"):
        from_frame(frame, space, direction="maximize", renamed={"u": "x"})
    past = from_frame(frame, space, direction="maximize", renamed={"u": "x"}, absent={"dropout": None})
    assert past.absent == {"dropout": ["a"]}
    past = from_frame(frame, space, direction="maximize", renamed={"u": "x"}, absent={"dropout": 0.25})
    np.testing.assert_allclose(past.tasks["a"].X, [[x, 0.5] for x in frame["u"]], atol=1e-7)
    both = {"task": ["a"] * 4 + ["b"] * 4, "value": [1.0, 2.0, 3.0, 4.0] * 2, "x": [0.1, 0.2, 0.3, 0.4] * 2}
    past = from_frame(both | {"dropout": [None] * 4 + [0.0, 0.1, 0.2, 0.5]}, space, direction="maximize")
    assert (past.absent, past.exclusions) == ({"dropout": ["a"]}, ())
    np.testing.assert_allclose(past.tasks["b"].X[:, 1:], [[0.0, 0.0], [0.2, 0.0], [0.4, 0.0], [1.0, 0.0]], atol=1e-7)


def test_optuna_studies():
    optuna = pytest.importorskip("optuna")
    study = optuna.create_study(study_name="old", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("eta", 1e-4, 1.0) + trial.suggest_int("degree", 2, 5), n_trials=6)
    past = from_studies(study, SPACE, renamed={"eta": "rate"})
    assert past.exclusions == ()
    assert set(past.absent) == {"x", "kernel", "size"}
    assert columns(past, "old")["degree.na"] == 0.0


def test_encodings_of_meta_datasets_with_absent_hyperparameters():
    codes = {
        "x": NumberCode(Scale(0.0, 2.0), missing=True, unset=0.0),
        "kernel": LevelCode(("rbf", "INVALID"), ("rbf", "INVALID")),
    }
    space = Space({"x": Float(0.0, 1.0), "kernel": Categorical(["rbf", "poly"]), "y": Float(0.0, 1.0)}, codes=codes)
    extended = with_absence(space, ["x", "kernel", "y"])
    assert [c.name for c in extended.columns][: len(space.columns)] == [c.name for c in space.columns]
    assert [c.name for c in extended.columns][len(space.columns) :] == ["y.na"]
    part = extended.check({"y": 0.5}, absent=["x", "kernel"], rules=False)
    assert extended.encode_rows([part]).tolist() == [[0.0, 1.0, 0.0, 1.0, 0.5, 0.0]]


def test_names_that_no_configuration_needs_are_not_absent():
    assert absent_names(SPACE, [{"x": 0.1, "rate": 0.1, "kernel": "rbf", "size": "s"}]) == []
    assert absent_names(SPACE, [{"x": 0.1, "rate": 0.1, "kernel": "poly", "size": "s"}]) == ["degree"]
    assert SpaceChanges(SPACE).update_params({"x": 0.1, "z": 1}) == {"x": 0.1}


@pytest.mark.slow
def test_a_surrogate_of_old_tasks_suggests_all_hyperparameters(tmp_path, registries):
    """The network ignores what no past task varies; the configurations to start with leave it open."""
    space = Space({"x": Float(0.0, 1.0), "new": Float(0.0, 1.0)})
    tasks = {str(t): [Evaluated({"x": i / 8}, -abs(i / 8 - t / 4)) for i in range(9)] for t in range(1, 4)}
    past = past_of(space, tasks, direction="maximize")
    settings = {"training.steps": 5, "prior.members": 1, "prior.trend": (8,), "prior.layers": (4,)} | SIMPLE
    with pytest.warns(DataWarning, match="^3 of 3 past tasks have no 'new'$"):
        surrogate, other = Surrogate.fit(past, space, settings=settings), Surrogate.fit(past, space, method=TaskMeans())
    assert all(set(params) == {"x"} for params in surrogate.start)
    kernel = surrogate.params.priors.trend["hidden_0_kernel"]
    assert (kernel[:, 0] != 0).any()
    assert (kernel[:, 1:] == 0).all()
    surrogate.save(tmp_path)
    both = surrogate, Surrogate.load(tmp_path)
    first, again = (Optimizer(space, one, direction="maximize", seed=3) for one in both)
    assert [trial.params for trial in first.ask(2)] == [trial.params for trial in again.ask(2)]
    optimizer = Optimizer(space, other, direction="maximize", seed=3)  # its method compiles little
    optimizer.optimize(lambda trial: -abs(trial["new"] - 0.4), 4)
    assert len({trial["new"] for trial in optimizer.trials}) == 4


def test_a_surrogate_learns_anew_for_another_space(tmp_path, registries):
    random = np.random.default_rng(0)
    old = Space({"eta": Float(1e-4, 1e-1, log=True), "depth": Int(1, 8)})
    new = Space({"rate": Float(1e-4, 1.0, log=True), "dropout": Float(0.0, 0.5)})
    points = [old.params(point) for point in random.random((12, 2))]
    tasks = {
        str(t): [Evaluated(one, (np.log10(one["eta"]) + 2.0 + 0.1 * t) ** 2 + one["depth"]) for one in points]
        for t in range(3)
    }
    past = past_of(old, tasks, direction="minimize", metric="loss")
    Surrogate.fit(past, method=TaskMeans(), quiet=True).save(tmp_path)
    saved = Surrogate.load(tmp_path)
    changes = {"renamed": {"eta": "rate"}, "absent": {"dropout": 0.1}}
    directly = past_of(new, tasks, direction="minimize", metric="loss", **changes)
    selected = saved.past_in(new, **changes)
    assert (selected.direction, selected.metric, selected.unknown) == ("minimize", "loss", directly.unknown)
    for name, task in directly.tasks.items():
        rows = np.lexsort(task.X.T), np.lexsort(selected.tasks[name].X.T)
        np.testing.assert_allclose(selected.tasks[name].X[rows[1]], task.X[rows[0]], atol=1e-6)
        responses = (task.y - task.y.mean()) / task.y.std()
        np.testing.assert_allclose(selected.tasks[name].y[rows[1]], responses[rows[0]], atol=1e-4)
    with pytest.warns(DataWarning, match="'depth' of 3 past tasks is not in the search space"):
        again = saved.for_space(new, quiet=True, **changes)
    assert (again.space, again.direction, again.method) == (directly.space, "minimize", saved.method)
    assert all(set(params) == {"rate", "dropout"} for params in again.start)
    assert new.check(Optimizer(new, again, direction="minimize").ask().params)


def test_a_surrogate_without_past_studies_cannot_learn_anew(registries):
    past = past_of(SPACE, {"old": trials()}, direction="maximize")
    surrogate = Surrogate.fit(past, method=TaskMeans(), quiet=True)
    with pytest.raises(DataError, match="keeps no past studies"):
        replace(surrogate, studies=None).past_in(SPACE)
