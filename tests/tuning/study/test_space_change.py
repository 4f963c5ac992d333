"""Studies that continue in another search space."""

import json
import math
import pickle
import warnings

import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.tuning import (
    Categorical,
    EngineConfig,
    Evaluated,
    Fidelity,
    Float,
    Int,
    Less,
    Optimizer,
    Permutation,
    Space,
    Surrogate,
    past_of,
)
from dre_jax.tuning.fidelity import next_trial
from tests.error_messages import error_table, raises_line

SPACE = Space(
    {
        "x": Float(0.0, 1.0),
        "rate": Float(1e-3, 1.0, log=True),
        "kernel": Categorical(["rbf", "poly", "linear"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
    }
)
GP = EngineConfig(method="gp")
SLOW = pytest.mark.slow


def loss(params):
    """The best is at a small x and a rate of 0.1, whatever else there is."""
    return params["x"] + math.log10(params["rate"] / 0.1) ** 2 + (params.get("kernel") == "linear")


def filled(n=12, space=SPACE, seed=0, **options):
    """A study of random trials, of which every sixth failed."""
    optimizer, rng = Optimizer(space, seed=seed, **options), np.random.default_rng(seed)
    for i in range(n):
        params = space.params(rng.random(len(space)))
        optimizer.add(params, None if i % 6 == 5 else loss(params))
    return optimizer


def with_parameters(drop=(), **parameters):
    return Space({name: one for name, one in {**SPACE, **parameters}.items() if name not in drop})


CHANGES = {
    "wider bounds": (with_parameters(x=Float(-1.0, 2.0), rate=Float(1e-4, 1.0, log=True)), {}),
    "a choice more": (with_parameters(kernel=Categorical(["rbf", "poly", "linear", "sigmoid"])), {}),
    "a condition on more choices": (
        with_parameters(degree=Int(2, 5, when={"kernel": ["poly", "linear"]})),
        {"absent": {"degree": 3}},
    ),
    "a new one": (with_parameters(dropout=Float(0.0, 0.5)), {"absent": {"dropout": 0.1}}),
    "a new one with a default": (with_parameters(dropout=Float(0.0, 0.5, default=0.1)), {}),
    "one less": (with_parameters(drop=["kernel", "degree"]), {}),
    "a new name": (
        Space({"x": SPACE["x"], "eta": SPACE["rate"], "kernel": SPACE["kernel"], "degree": SPACE["degree"]}),
        {"renamed": {"rate": "eta"}},
    ),
    "another scale": (with_parameters(rate=Float(1e-3, 1.0)), {}),
}


MESSAGES = {
    "a new one with a default": ["12 of 12 trials have no 'dropout' and get its default, 0.1"],
    "one less": ["'kernel', 'degree' of the trials are not in the search space and are not used"],
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_names_are_told(name):
    """Those that the user did not write out."""
    space, options = CHANGES[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        filled(config=GP).with_space(space, **options)
    assert [str(one.message) for one in told] == (["; ".join(MESSAGES[name])] if name in MESSAGES else [])


def test_a_new_name_that_is_not_told_is_noticed():
    """Trials of an old name would all count as if they had the default of the new one."""
    space = Space({"x": Float(0.0, 1.0), "eta": Float(1e-3, 1.0, log=True, default=0.01)})
    with pytest.warns(DataWarning, match="'rate', .* are not used; 12 of 12 trials have no 'eta' and get"):
        filled().with_space(space)


QUICK = ("a new one", "a new name")
"""The others compile a program each."""


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=SLOW) for name in CHANGES])
@pytest.mark.slow
def test_suggestions_are_those_of_a_new_study_with_the_trials(name):
    """The values by hand, as the description of each change has them."""
    space, options = CHANGES[name]
    old = filled(config=GP)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* of the trials .* not used|.* and get its default")
        changed = old.with_space(space, **options)
    expected = Optimizer(space, seed=0, config=GP)
    for trial in old.trials:
        params = {"eta" if "eta" in space and one == "rate" else one: value for one, value in trial.params.items()}
        params = {one: value for one, value in params.items() if one in space}
        params |= {"dropout": 0.1} if "dropout" in space else {}
        params |= {"degree": 3} if "more choices" in name and params["kernel"] == "linear" else {}
        expected.add(params, trial.value)
    assert [(one.params, one.value, one.state) for one in changed.trials] == [
        (one.params, one.value, one.state) for one in expected.trials
    ]
    assert changed.ask().params == expected.ask().params
    assert len(old.trials) == 12, "the study itself stays as it is"
    assert old.space == SPACE


def narrowed(**parameters):
    """The changed study, and the trials that are outside of its space by an own rule."""
    old = filled(30, config=GP)
    with pytest.warns(DataWarning, match="outside of the space"):
        changed = old.with_space(with_parameters(**parameters))
    return old, changed


def test_trials_outside_of_the_space_stay_and_are_not_the_best():
    old, changed = narrowed(x=Float(0.5, 1.0), kernel=Categorical(["rbf", "poly"]))
    outside = {one.number for one in old.trials if one["x"] < 0.5 or one["kernel"] == "linear"}
    assert {one.number for one in changed.trials if not one.in_space} == outside
    assert [one.params for one in changed.trials] == [one.params for one in old.trials]
    best = min(
        (one for one in old.trials if one.number not in outside and one.value is not None), key=lambda one: one.value
    )
    assert old.best.number in outside, "otherwise nothing is shown"
    assert changed.best.number == best.number
    assert [one.number for one in changed.front] == [best.number]
    assert {one.number for one in changed.least_infeasible} == {
        one.number for one in old.trials if one.state == "complete" and one.number not in outside
    }
    assert changed.best_by_prediction().number not in outside
    frame = changed.to_frame()
    assert set(frame["number"][~frame["in_space"]]) == outside
    assert "in_space" not in old.to_frame()
    assert f"best={best.value!r}" in repr(changed)


@pytest.mark.slow
def test_a_study_without_a_trial_in_the_space_has_no_best():
    _, changed = narrowed(x=Float(5.0, 6.0))
    with raises_line(DataError, "once one in the space is complete"):
        _ = changed.best
    assert changed.ask()["x"] >= 5.0


@pytest.mark.parametrize("method", ["gp", pytest.param("gp-mixture", marks=SLOW)])
@pytest.mark.slow
def test_suggestions_learn_from_trials_outside_of_the_space(method):
    """All trials are outside, on both sides, and say that the least x is the best of the new ones."""
    optimizer = Optimizer({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, seed=0, config=EngineConfig(method=method))
    for x, y in np.random.default_rng(0).random((24, 2)):
        x = x / 2 if x < 0.5 else 0.5 + x / 2  # nothing from 0.25 to 0.75
        optimizer.add({"x": x, "y": y}, x)
    with pytest.warns(DataWarning, match="24 trials are outside"):
        changed = optimizer.with_space({"x": Float(0.25, 0.75), "y": Float(0.0, 1.0)})
    means = changed.predict([{"x": x, "y": 0.5} for x in (0.3, 0.5, 0.7)]).mean
    np.testing.assert_allclose(means, [0.3, 0.5, 0.7], atol=0.05)
    changed.add({"x": 0.5, "y": 0.5}, 0.5)
    changed.add({"x": 0.6, "y": 0.1}, 0.6)
    for _ in range(4):
        changed.tell(suggestion := changed.ask(), suggestion["x"])
        assert changed.space.check(suggestion.params) == suggestion.params
    assert suggestion["x"] < 0.3


@pytest.mark.slow
def test_a_removed_choice_is_no_other_choice():
    """Trials of a choice that is gone are bad: the choices that are left are not blamed for them."""
    optimizer = filled(40, config=GP)
    with pytest.warns(DataWarning, match="kernel must be one of"):
        changed = optimizer.with_space(with_parameters(kernel=Categorical(["rbf", "poly"])))
    poly = {"x": 0.4, "rate": 0.1, "kernel": "poly", "degree": 3}
    configurations = [poly, {"x": 0.4, "rate": 0.1, "kernel": "rbf"}]
    before, after = (study.predict(configurations).mean for study in (optimizer, changed))
    np.testing.assert_allclose(after, before, atol=0.05)


@pytest.mark.slow
def test_a_frozen_hyperparameter_keeps_what_is_known_of_the_others():
    optimizer = filled(24, config=GP)
    frozen = {"rate": Float(0.1, 0.1, log=True), "kernel": Categorical(["rbf"])}
    with pytest.warns(DataWarning, match="outside of the space|'degree' of the trials is"):
        changed = optimizer.with_space(with_parameters(["degree"], **frozen))
    assert not any(one.in_space for one in changed.trials)
    low, high = changed.predict([{"x": x, "rate": 0.1, "kernel": "rbf"} for x in (0.2, 0.8)]).mean
    assert low == pytest.approx(0.2, abs=0.1)
    assert high == pytest.approx(0.8, abs=0.1)
    for _ in range(3):
        changed.tell(trial := changed.ask(), loss(trial.params))
    assert trial["x"] < 0.2
    assert (trial["rate"], trial["kernel"]) == (0.1, "rbf")


@pytest.mark.slow
def test_a_space_that_returns_has_the_study_of_before():
    """Without a hyperparameter, with another one, within less, and back."""
    old = filled(20)
    with pytest.warns(DataWarning, match="outside|are not used"):
        within = old.with_space(Space({"x": Float(0.2, 0.8), "dropout": Float(0.0, 1.0)}), absent={"dropout": 0.5})
    for before, now in zip(old.trials, within.trials, strict=True):
        assert now.former == {name: value for name, value in before.params.items() if name != "x"}
    with pytest.warns(DataWarning, match="'dropout' of the trials is"):
        back = pickle.loads(pickle.dumps(within)).with_space(SPACE)
    assert [one.with_fields(former={}) for one in back.trials] == list(old.trials)
    assert all(one.former == {"dropout": 0.5} for one in back.trials)
    assert back.ask().params == old.ask().params


@SLOW
def test_new_rules_and_several_objectives_with_constraints_and_costs():
    space = Space({"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)})
    optimizer = Optimizer(space, directions={"near": "minimize", "far": "maximize"}, seed=0)
    rng = np.random.default_rng(0)
    for i, (a, b) in enumerate(rng.random((16, 2))):
        limits = {"memory": a + b - 1.5}
        optimizer.add({"a": a, "b": b}, None if i % 8 == 7 else (a, b * b), cost=1.0 + a, constraints=limits)
    with pytest.warns(DataWarning, match="'a < b'"):
        changed = optimizer.with_space(Space({"a": Float(0.0, 1.0), "b": Float(0.0, 0.75)}, rules=[Less("a", "b")]))
    in_space = {one.number for one in changed.trials if one["a"] < one["b"] <= 0.75}
    assert {one.number for one in changed.trials if one.in_space} == in_space
    assert {one.number for one in changed.front} <= in_space
    for _ in range(2):
        trial = changed.ask()
        assert trial["a"] < trial["b"] <= 0.75
        changed.tell(trial, (trial["a"], trial["b"] ** 2), cost=1.0, constraints={"memory": 0.0})


def test_running_trials_are_told_and_enqueued_values_wait():
    optimizer = Optimizer(SPACE, seed=0)
    running = optimizer.ask(2)
    optimizer.enqueue({"x": 0.25, "kernel": "linear"})
    optimizer.enqueue({"x": 0.75, "rate": 0.5})
    optimizer.enqueue({"rate": 0.5})
    kernel = Categorical(["rbf", "poly"])
    with pytest.warns(DataWarning) as warned:
        changed = optimizer.with_space({"x": SPACE["x"], "kernel": kernel, "dropout": Float(0.0, 1.0, default=0.1)})
    assert sum("enqueued values are dropped: kernel must be one of" in str(one.message) for one in warned) == 1
    assert changed.enqueued == ({"x": 0.75},)
    told = changed.tell(running[0], 1.0)
    assert (told.state, told["dropout"], told["x"]) == ("complete", 0.1, running[0]["x"])
    assert changed.tell(1, 2.0).state == "complete"
    assert [one.state for one in optimizer.trials] == ["running"] * 2
    assert changed.ask()["x"] == 0.75
    with raises_line(DataError, "must be of this study"):
        changed.report(replace_params(running[0]), 1.0, 1)


def replace_params(trial):
    return trial.with_fields(params=trial.params | {"x": trial["x"] / 2})


@pytest.mark.slow
def test_paused_trainings_go_on_in_the_space_and_wait_outside(monkeypatch):
    monkeypatch.setattr(next_trial, "_N_FIRST", 2)
    optimizer = Optimizer({"x": Float(0.0, 1.0)}, fidelity=Fidelity("epochs", 1, 4), seed=0)
    for x in np.linspace(0.0, 0.9, 10):
        optimizer.add({"x": x}, x, budget=1)
    resumed = optimizer.ask()
    assert optimizer.trials[resumed.resumes]["x"] == 0.0
    optimizer.tell(resumed, -1.0)
    with pytest.warns(DataWarning, match="outside of the space"):
        changed = optimizer.with_space({"x": Float(0.5, 1.0), "y": Float(0.0, 1.0)}, absent={"y": 0.5})
    trial = changed.ask()
    assert changed.trials[trial.resumes].params == trial.params == {"x": pytest.approx(0.5), "y": 0.5}
    assert changed.best_so_far["x"] == pytest.approx(0.5)
    assert changed.total_budget == optimizer.total_budget + 1
    changed.tell(trial, 0.4)
    for _ in range(8):
        changed.tell(trial := changed.ask(), trial["x"])
        assert trial["x"] >= 0.5


def test_a_training_keeps_what_returns_with_the_space(study, monkeypatch):
    """It began with a hyperparameter that is gone when it goes on."""
    monkeypatch.setattr(next_trial, "_N_FIRST", 2)
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    optimizer = Optimizer(space, fidelity=Fidelity("epochs", 1, 4), seed=0)
    for x in (0.25, 0.5, 0.75):
        optimizer.add({"x": x, "y": 0.5 * x}, x, budget=1)
    with pytest.warns(DataWarning, match="'y' of the trials is not"):
        changed = optimizer.with_space({"x": Float(0.0, 1.0)})
    resumed = changed.ask()
    changed.tell(resumed, 0.1)
    back = changed.with_space(space)
    assert back.trials[3].params == back.trials[resumed.resumes].params == {"x": 0.25, "y": 0.125}
    back.save(study)
    assert Optimizer.load(study).trials == back.trials


@pytest.mark.slow
def test_a_changed_study_is_saved_over_the_file_and_comes_back(study):
    optimizer = filled(8)
    optimizer.enqueue({"x": 0.5})
    optimizer.save(study)
    space = Space({"x": Float(0.3, 1.0), "rate": Float(1e-3, 1.0, log=True)})
    with raises_line(DataError, "must hold a study of the space given", "(--change-space)"):
        Optimizer.load(study, space=space)
    with pytest.warns(DataWarning, match="outside of the space|are not used"):
        changed = Optimizer.load(study, space=space, change_space=True)
    assert Optimizer.load(study).trials == optimizer.trials, "only saving changes the file"
    changed.save(study)
    again = Optimizer.load(study, space=space)
    assert again.trials == changed.trials
    assert (again.space, again.enqueued, again.seed) == (space, changed.enqueued, changed.seed)
    assert again.ask().params == changed.ask().params
    json.loads(study.read_text(), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    with raises_line(DataError, "must hold an earlier state of the study"):
        optimizer.save(study)
    again.save(study)


def test_a_kill_at_any_access_leaves_the_study_of_before_or_after(study, left_by_kills, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    optimizer = filled(6)
    optimizer.save(folder / study.name)
    with pytest.warns(DataWarning, match="outside"):
        changed = Optimizer.load(folder / study.name).with_space(with_parameters(x=Float(0.3, 1.0)))
    copies = left_by_kills(folder, lambda: changed.save(folder / study.name))
    states = [Optimizer.load(copy / study.name).trials for copy in copies]
    assert all(trials in (optimizer.trials, changed.trials) for trials in states)
    assert states[0] == optimizer.trials
    assert Optimizer.load(folder / study.name).trials == changed.trials


@SLOW
def test_a_surrogate_must_know_the_new_space():
    tasks = {
        name: [Evaluated({"x": i / 8, "y": (3 * i % 8) / 8}, abs(i / 8 - best)) for i in range(8)]
        for name, best in (("a", 0.2), ("b", 0.3), ("c", 0.4))
    }
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    surrogate = Surrogate.fit(past_of(space, tasks, direction="minimize"), method="gcp", quiet=True)
    optimizer = Optimizer(space, surrogate, seed=0)
    for x in (0.1, 0.3, 0.9):
        optimizer.add({"x": x, "y": 0.5}, x)
    with pytest.warns(DataWarning, match="1 trial is outside of the space, and cannot be the best: trial 0"):
        changed = optimizer.with_space({"x": Float(0.25, 1.0), "y": Float(0.0, 1.0)})
    assert changed.surrogate is surrogate
    assert changed.ask()["x"] >= 0.25, "in the columns of the surrogate's space"
    wider = Space({"x": Float(0.0, 2.0), "y": Float(0.0, 1.0), "z": Float(0.0, 1.0)})
    with raises_line(DataError, "the surrogate must know the space", "surrogate.for_space"):
        optimizer.with_space(wider, absent={"z": 0.5})
    adapted = surrogate.for_space(wider, absent={"z": 0.5}, quiet=True)
    assert optimizer.with_space(wider, adapted, absent={"z": 0.5}).surrogate is adapted
    assert optimizer.with_space(wider, None, absent={"z": 0.5}).surrogate is None


def test_trials_without_a_value_of_a_new_hyperparameter_are_left_out_if_that_is_said():
    optimizer = filled(6, config=GP)
    space = with_parameters(dropout=Float(0.0, 0.5))
    with pytest.warns(DataWarning, match="6 trials are outside .*; suggestions do not learn from trials 0, 1, 2"):
        changed = optimizer.with_space(space, absent={"dropout": None})
    assert not any(one.in_space for one in changed.trials)
    assert len(changed.trials) == 6
    assert changed.ask().keys() >= {"dropout"}


def test_nothing_is_stopped_for_being_worse_than_a_trial_outside():
    """All curves but those of the trials outside end alike, and these are far better."""
    optimizer = Optimizer({"x": Float(0.0, 1.0)}, seed=0)
    for i in range(14):
        trial = optimizer.add_running({"x": (i + 0.5) / 14})
        for step in range(1, 10):
            optimizer.report(trial, (10.0 if i >= 7 else 0.0) + i / 14 + 1.0 / step, step)
        optimizer.tell(trial, (10.0 if i >= 7 else 0.0) + i / 14)
    with pytest.warns(DataWarning, match="7 trials are outside"):
        changed = optimizer.with_space({"x": Float(0.5, 1.0)})
    stops = []
    for study in (optimizer, changed):
        trial = study.add_running({"x": 0.51})
        for step in range(1, 6):
            study.report(trial, 10.4 + 1.0 / step, step)
        stops.append(study.should_stop(trial))
    assert stops == [True, False]


test_errors = error_table(
    DataError,
    (
        lambda: filled(3).with_space(with_parameters(dropout=Float(0.0, 0.5))),
        "trial 0 has no 'dropout': pass absent={'dropout': ...}",
    ),
    (lambda: filled(3).with_space(SPACE, absent={"dropout": 0.1}), "got 'dropout'"),
    (lambda: filled(3).with_space(SPACE, absent={"x": 7.0}), "x must be a number in [0.0, 1.0]"),
    (lambda: filled(3).with_space(SPACE, renamed={"eta": "dropout"}), "got 'dropout'"),
    (lambda: filled(3).with_space(SPACE, renamed={"degree": "x"}), "by one name"),
)
test_settings = error_table(
    ConfigError,
    (lambda: filled(3).with_space(SPACE, renamed={"a": "x", "b": "x"}), "one old name"),
    (lambda: filled(3).with_space({}), "a space must map at least one name"),
)


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("params", {"x": [[1]]}, "texts and numbers by name"),
        ("params", {"w": 1.0}, "hyperparameters are x, but got 'w'"),
        ("params", None, "texts and numbers by name"),
        ("former", {"w": {}}, "texts and numbers by name"),
    ],
)
def test_a_file_with_other_values_is_refused(study, field, value, rule):
    optimizer = Optimizer({"x": Float(0.0, 1.0)})
    optimizer.add({"x": 0.25}, 1.0)
    with pytest.warns(DataWarning, match="outside"):
        optimizer.with_space({"x": Float(0.5, 1.0)}).save(study)
    content = json.loads(study.read_text())
    content["trials"][0][field] = value
    study.write_text(json.dumps(content))
    with raises_line(DataError, "must hold a whole study", rule):
        Optimizer.load(study)


def test_permutations_of_other_items_are_kept_and_not_read(tmp_path):
    optimizer = Optimizer({"order": Permutation(["a", "b"]), "x": Float(0.0, 1.0)})
    for order in (("a", "b"), ("b", "a")):
        optimizer.add({"order": order, "x": 0.5}, 1.0)
    with pytest.warns(DataWarning, match="suggestions do not learn from trials 0, 1"):
        changed = optimizer.with_space(Space({"order": Permutation(["a", "b", "c"]), "x": Float(0.0, 1.0)}))
    assert [trial["order"] for trial in changed.trials] == [("a", "b"), ("b", "a")]
    changed.save(tmp_path / "study.json")
    assert Optimizer.load(tmp_path / "study.json").trials == changed.trials
    assert changed.with_space(optimizer.space).best.number == 0
