"""A trial and its changes: what `Optimizer` and the readers of other studies create it by."""

import inspect
import pickle
from pathlib import Path

from dre_jax import Trial

MAPPINGS = {"constraints": {"memory": -1.0}, "reports": {1.0: 3.0}, "values": {"near": 1.0, "far": 2.0}}
MAPPINGS |= {"stderrs": {"near": 0.1, "far": 0.0}, "former": {"momentum": 0.9}}


def test_every_argument_is_public_and_read_back():
    arguments = list(inspect.signature(Trial).parameters)
    assert not any(name.startswith("_") for name in arguments)
    fields = {"number": 3, "params": {"x": 0.5}, "state": "complete", "value": 2.0, "stderr": 0.1, "cost": 4.0}
    fields |= {"measurements": (1.0, 3.0), "repeats": 2, "in_space": False}
    fields |= {"budget": 3.0, "resumes": 1, "restarts": True, "checkpoint": Path("checkpoints")}
    trial = Trial(**fields, **MAPPINGS)
    assert {name: getattr(trial, name) for name in arguments if name != "study"} == {**fields, **MAPPINGS}


def test_a_changed_trial_keeps_the_rest():
    params = {"x": 0.5}
    trial = Trial(3, params, **MAPPINGS)
    changed = trial.with_fields(state="complete", cost=4.0, reports={})
    assert (changed.state, changed.cost, changed.reports, changed.values) == ("complete", 4.0, {}, MAPPINGS["values"])
    assert (trial.state, trial.cost, trial.reports) == ("running", None, MAPPINGS["reports"])
    assert changed._params is params  # whose encoding is kept by its identity
    assert changed == Trial(3, {"x": 0.5}, "complete", cost=4.0, **{**MAPPINGS, "reports": {}})


def test_a_trial_is_pickled_and_compared_without_its_study():
    trial = Trial(0, {"x": 0.5}, study=object())
    assert pickle.loads(pickle.dumps(trial)) == trial == Trial(0, {"x": 0.5})


def test_the_value_of_a_single_objective_is_called_value():
    single, several = Trial(0, {}, "complete", 2.0), Trial(0, {}, "complete", values={"value": 3.0, "far": 4.0})
    assert single.with_objective("value") is single
    assert several.with_objective("value") == Trial(0, {}, "complete", 3.0)
    assert Trial(0, {}, "failed", values={}).with_objective("far") == Trial(0, {}, "failed")
