"""Studies as files."""

import json
import math
import pickle
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import DataError, DataWarning
from dre_jax.methods import find
from dre_jax.methods.storage.provenance import versions
from dre_jax.space.json_format import to_json
from dre_jax.tuning import Bool, Categorical, EngineConfig, Float, Int, Optimizer, Space, Surrogate
from tests.error_messages import raises_line
from tests.known_methods import zero_params

SPACE = Space(
    {
        "x": Float(-1.0, 1.0),
        "n": Int(1, 2**40, log=True),
        "c": Categorical([None, 1, 2.5, True, "1", "é\n"]),
        "d": Float(0.0, 1.0, step=0.25, when={"c": [None, 1]}),
        "b": Bool(),
    }
)


def filled():
    """A study with all that may be in one."""
    optimizer = Optimizer(SPACE, direction="maximize", seed=7)
    rows = [(c, value) for c in SPACE["c"].choices for value in (0.1, math.inf, -math.inf, None)]
    for i, (choice, value) in enumerate(rows):
        params = {"x": -0.1 * (i % 7), "n": 3**i, "c": choice, "b": i % 2 == 0}
        optimizer.add(params | ({"d": 0.25 * (i % 5)} if choice is None or choice is rows[4][0] else {}), value)
    optimizer.add_running({"x": 1 / 3, "n": 2**40, "c": "1", "b": True})
    return optimizer


def test_unknown_constraints_come_back(study):
    optimizer = Optimizer({"x": Float(0.0, 1.0)})
    for x, limit in ((0.25, None), (0.5, -1.0)):
        optimizer.add({"x": x}, 1.0, constraints={"memory": limit})
    optimizer.save(study)
    assert Optimizer.load(study).trials == optimizer.trials
    json.loads(study.read_text(), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))


def test_undefined_reports_come_back(study):
    """A study is saved once more after another session read and wrote the file."""
    optimizer = Optimizer({"x": Float(0.0, 1.0)})
    trial = optimizer.ask()
    optimizer.report(trial, math.nan, 1)
    optimizer.tell(trial, 1.0)
    optimizer.save(study)
    other = Optimizer.load(study)
    assert other.trials == optimizer.trials
    other.save(study)
    pickle.loads(pickle.dumps(optimizer)).save(study)


def test_round_trip(study):
    optimizer = filled()
    optimizer.save(study)
    result = Optimizer.load(study, space=SPACE)
    assert result.trials == optimizer.trials
    assert (result.direction, result.seed, result.space) == ("maximize", 7, SPACE)
    kinds = [[type(value) for value in trial.params.values()] for trial in optimizer.trials]
    assert [[type(value) for value in trial.params.values()] for trial in result.trials] == kinds
    before = study.read_bytes()
    result.save(study)
    assert study.read_bytes() == before
    json.loads(before, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))


def assert_refused(path, rule=""):
    before = path.read_bytes()
    with raises_line(DataError, rule, str(path)):
        Optimizer.load(path)
    assert path.read_bytes() == before


def content(**changes):
    optimizer = Optimizer(Space({"x": Float(0.0, 1.0)}))
    optimizer.add({"x": 0.5}, 1.0)
    space = to_json(optimizer.space)
    trials = [{"params": {"x": 0.5}, "state": "complete", "value": 1.0}]
    result = {"dre_jax_study": 1, "direction": "minimize", "seed": 0, "space": space, "trials": trials}
    result |= {"surrogate": None, **changes}
    return {name: value for name, value in result.items() if value is not ...}


def trial(**changes):
    result = {"params": {"x": 0.5}, "state": "complete", "value": 1.0, **changes}
    return {"trials": [{name: value for name, value in result.items() if value is not ...}]}


@pytest.mark.parametrize(
    ("saved", "rule"),
    [
        ([], "must hold a study"),
        (content(dre_jax_study=2), "must hold a study of format 1, but is of 2"),
        (content(direction="up"), "direction"),
        (content(seed=-1), "seed"),
        (content(space=3), "a space must be a JSON object"),
        (content(trials=...), "trials"),
        (content(**trial(params={"y": 0.5})), "but got 'y'"),
        (content(**trial(params=...)), "params"),
        (content(**trial(state="done")), "trial 0"),
        (content(**trial(value=...)), "trial 0"),
        (content(**trial(value=math.nan)), "trial 0"),
        (content(**trial(value=10**400)), "whole study"),
        (content(**trial(cost=-1.0)), "a cost is positive and finite, of a trial that ended"),
        (content(**trial(stderr=-1.0)), "a standard error is a finite number from 0"),
        (content(**trial(constraints={"a": math.inf})), "constraint 'a'"),
        (content(**trial(state="failed", value=..., constraints={"a": 1.0})), "a trial with constraints is complete"),
        (content(enqueued=[{"y": 0.5}]), "but got 'y'"),
        (content(config={"max_history": 1}), "max_history >= 2"),
        (content(surrogate={"path": "a"}), "whole study"),
        (content(surrogate=...), "surrogate"),
    ],
)
def test_no_study_of_this_version(study, saved, rule):
    study.write_text(json.dumps(content()))
    assert Optimizer.load(study).best.value == 1.0
    study.write_text(json.dumps(saved))
    assert_refused(study, rule)


def test_settings_and_waiting_values_come_back(study):
    optimizer = Optimizer(SPACE, config=EngineConfig(pending_strategy="max", failed_radius=0.1))
    optimizer.enqueue({"x": np.float32(0.5), "b": True})
    trial = optimizer.add_running({"x": 0.0, "n": 1, "c": True, "b": True})
    optimizer.tell(trial, 1, stderr=jnp.float32(0.5))
    optimizer.save(study)
    result = Optimizer.load(study)
    assert result.trials[0].stderr == 0.5
    assert result._engine.config == optimizer._engine.config
    assert {"x": 0.5, "b": True}.items() <= result.ask().params.items()


def test_hyperparameters_in_another_order(study):
    Optimizer(SPACE).save(study)
    assert list(Optimizer.load(study, space=Space(dict(reversed([*SPACE.items()])))).space) == list(SPACE)
    with pytest.raises(DataError, match="must hold a study of the space given"):
        Optimizer.load(study, space=Space({**SPACE, "x": Float(-1.0, 2.0)}))


def test_a_study_keeps_the_surrogate(study, tmp_path):
    method, facts = find("gcp").make({"prior.steps": 7}), {"versions": versions()}
    params = zero_params(method, len(SPACE.columns))
    surrogate = Surrogate(SPACE, "gcp", method, params, facts=facts, direction="maximize")
    other = replace(surrogate, params=jax.tree.map(np.ones_like, params))
    optimizer = Optimizer(surrogate=surrogate, direction="maximize")
    optimizer.save(study)
    assert_refused(study, "pass surrogate=the one that it had, or surrogate=None to continue without")
    saved = surrogate.save(tmp_path / "surrogate")
    assert (surrogate.path, saved.path, saved.fingerprint) == (None, str(tmp_path / "surrogate"), surrogate.fingerprint)
    Optimizer.load(study, saved).save(study)
    assert json.loads(study.read_text())["surrogate"]["configuration"]["prior.steps"] == "7"
    assert_refused(study, f"pass surrogate=Surrogate.load('{tmp_path / 'surrogate'}'), or surrogate=None")
    loaded = Surrogate.load(tmp_path / "surrogate")
    assert Optimizer.load(study, loaded).surrogate is loaded
    with pytest.warns(DataWarning, match=f"{surrogate.fingerprint} .*another one"):
        Optimizer.load(study, other)
    without = Optimizer.load(study, surrogate=None)
    without.save(study)
    assert Optimizer.load(study).surrogate is None


@pytest.mark.usefixtures("even_points")
def test_no_session_overwrites_trials_of_another(study):
    """What is saved may replace an earlier state of the same study alone."""
    first = filled()
    first.save(study)
    second = Optimizer.load(study)
    for optimizer in (first, first, second):
        optimizer.tell_failed(optimizer.ask())
        if optimizer is first:
            optimizer.save(study)
    before = study.read_bytes()
    others = second, Optimizer(SPACE), Optimizer(Space({"x": Float(0.0, 1.0)}))
    for other, rule in zip(others, (", but has another trial 26", "", ""), strict=True):
        with raises_line(DataError, f"must hold an earlier state of the study{rule}"):
            other.save(study)
    assert study.read_bytes() == before
    study.write_text('{"a": 1}')
    with pytest.raises(DataError, match="must hold a study, but does not"):
        first.save(study)
    study.write_bytes(b"")  # as `tempfile` makes it
    first.save(study)
    assert study.read_bytes() == before


def test_a_link_stays_a_link(study, tmp_path):
    target = tmp_path / "disk" / "studies.json"
    target.parent.mkdir()
    study.symlink_to(target)
    for _ in range(2):
        filled().save(study)
    assert study.is_symlink()
    assert Optimizer.load(study).trials == Optimizer.load(target).trials == filled().trials
