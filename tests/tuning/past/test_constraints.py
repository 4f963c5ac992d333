"""Constraints of past trials: one order in every reader, and the same one for the trials of a study beside them."""

import itertools

import jax
import numpy as np
import optuna
import pandas as pd
import pytest

from dre_jax import Evaluated, Float, Optimizer, Space, Surrogate, from_csv, from_frame, from_studies, past_of
from dre_jax.methods import find
from dre_jax.tuning.optuna.export import to_study
from dre_jax.tuning.past.studies import keep_studies
from dre_jax.tuning.suggestion import feasibility
from dre_jax.tuning.trials.responses import rank_infeasible_last
from tests.known_methods import NEAREST

SPACE = Space({"x": Float(0.0, 1.0)})
# Value, and how far the memory and the time are above their limits; the best first, by hand.
ROWS = [(3.0, -1.0, 0.0), (9.0, -1.0, -1.0), (1.0, 0.5, -9.0), (0.0, 0.5, 1.0), (-5.0, 4.0, 1.0)]
pytestmark = pytest.mark.usefixtures("quiet_optuna")


def by_optimizer(_):
    optimizer = Optimizer(SPACE)
    for i, (value, memory, time) in enumerate(ROWS):
        optimizer.add({"x": i / 8}, value, constraints={"memory": memory, "time": time})
    return optimizer


def by_optuna(_):
    study = optuna.create_study(study_name="a")
    for i, (value, memory, time) in enumerate(ROWS):
        trial = study.ask({"x": optuna.distributions.FloatDistribution(i / 8, i / 8)})
        trial.set_constraint("memory", memory)
        trial.set_constraint("time", time)
        study.tell(trial, value)
    return study


def written(frame, folder):
    frame.to_csv(folder / "past.csv", index=False)
    return folder / "past.csv"


ONE = {"direction": "minimize", "task": None}
READERS = {
    "past_of": lambda folder: past_of(SPACE, {"a": by_optimizer(folder).trials}, direction="minimize"),
    "evaluations": lambda folder: past_of(
        SPACE,
        {"a": [Evaluated({"x": i / 8}, v, None, {"memory": m, "time": t}) for i, (v, m, t) in enumerate(ROWS)]},
        direction="minimize",
    ),
    "trials of Optuna": lambda folder: past_of(SPACE, {"a": by_optuna(folder).trials}, direction="minimize"),
    "from_studies": lambda folder: from_studies(by_optuna(folder), SPACE),
    "to_study": lambda folder: from_studies(to_study(by_optimizer(folder)), SPACE),
    "to_frame": lambda folder: from_frame(by_optimizer(folder).to_frame(), SPACE, **ONE),
    "to_frame in a file": lambda folder: from_csv(written(by_optimizer(folder).to_frame(), folder), SPACE, **ONE),
    "trials_dataframe": lambda folder: from_frame(by_optuna(folder).trials_dataframe(), SPACE, **ONE),
    "its levels": lambda folder: from_frame(by_optuna(folder).trials_dataframe(multi_index=True), SPACE, **ONE),
    "its file": lambda folder: from_csv(written(by_optuna(folder).trials_dataframe(), folder), SPACE, **ONE),
    "lists": lambda folder: from_frame(
        pd.DataFrame(
            [{"params_x": i / 8, "value": v, "system_attrs_constraints": [m, t]} for i, (v, m, t) in enumerate(ROWS)]
        ),
        SPACE,
        **ONE,
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_ranks_infeasible_trials_last(reader, tmp_path):
    past = READERS[reader](tmp_path)
    ((_, task),) = past.tasks.items()
    assert past.constrained
    assert np.argsort(-task.y).tolist() == list(range(len(ROWS)))
    np.testing.assert_allclose(task.y[:2], [-3.0, -9.0])


def test_satisfied_constraints_change_nothing():
    rows = [Evaluated({"x": i / 8}, float(i), None, {"memory": -1.0}) for i in range(5)]
    past = past_of(SPACE, {"a": rows}, direction="maximize")
    assert not past.constrained
    np.testing.assert_array_equal(past.tasks["a"].y, range(5))


@pytest.mark.parametrize("reader", ["past_of", "to_frame in a file"])
def test_a_trial_with_an_unknown_constraint_is_left_out(reader, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROWS", [*ROWS, (-9.0, np.nan, 0.0)])
    past = READERS[reader](tmp_path)
    ((_, task),) = past.tasks.items()
    assert len(task.y) == len(ROWS) - 1
    assert [one.reason for one in past.exclusions] == ["a constraint of a trial must be known, but 'memory' is not"]


def test_the_order_by_a_loop():
    random = np.random.default_rng(0)
    for _ in range(20):
        responses, violations = random.normal(size=12), random.integers(0, 3, 12) / 2.0
        order = sorted(range(12), key=lambda i: (violations[i], -responses[i] if violations[i] == 0 else 0))
        result = rank_infeasible_last(responses, violations)
        assert [(a, b) for a, b in itertools.pairwise(order) if result[a] < result[b]] == []
        assert max(result[violations > 0], default=-np.inf) < min(result[violations == 0], default=np.inf)
    assert rank_infeasible_last(np.full(3, np.inf), np.array([2.0, 1.0, 1.0])).tolist() == sorted(
        rank_infeasible_last(np.full(3, np.inf), np.array([1.0, 1.0, 2.0]))
    )


def surrogate_of(past, **fields):
    """Without a method that learns, which neither the comparison of studies nor the history needs."""
    studies = keep_studies(past.search_space(), jax.random.key(0))
    arguments = {"direction": "minimize", "studies": studies, "constrained": past.constrained} | fields
    return Surrogate(past.space, "gp", find("gp").make(), {"learned": np.zeros(1)}, **arguments)


def constrained_trials(optimum, xs):
    """The nearer to the optimum the better, but what is near violates the constraint."""
    optimizer = Optimizer(SPACE)
    for x in xs:
        optimizer.add({"x": float(x)}, abs(x - optimum), constraints={"memory": x - 0.5})
    return optimizer.trials


def test_a_past_of_the_same_constrained_task_agrees():
    random = np.random.default_rng(0)
    past = past_of(
        SPACE, {str(i): constrained_trials(0.9 + i / 100, random.random(20)) for i in range(3)}, direction="minimize"
    )
    here = constrained_trials(0.92, random.random(12))
    alike, apart = (surrogate_of(past, constrained=one).sources(here) for one in (True, False))
    assert all(one.agreement > 0.6 for one in alike.studies)
    assert alike.gain > 3.0
    assert apart.gain < alike.gain - 3.0  # as it was: feasibility counts in the past alone


@pytest.mark.parametrize("constrained", [True, False])
def test_the_method_gets_trials_ranked_as_its_past(constrained, monkeypatch):
    def stop(method, layout, candidates, inputs, n):
        raise InterruptedError(inputs.trials.history)

    monkeypatch.setattr(feasibility, "propose", stop)
    surrogate = Surrogate(SPACE, "near", NEAREST, None, direction="minimize", constrained=constrained)
    with pytest.raises(InterruptedError) as caught:
        Optimizer(surrogate=surrogate).ask()
    optimizer = Optimizer(surrogate=surrogate)
    for trial in constrained_trials(0.9, [0.1, 0.4, 0.6, 0.9]):
        optimizer.add(trial.params, trial.value, constraints=trial.constraints)
    with pytest.raises(InterruptedError) as caught:
        optimizer.ask()
    (history,) = caught.value.args
    order = np.argsort(np.asarray(history.level)[:4], kind="stable").tolist()
    # Values 0.8, 0.5, 0.3 and 0.0; the last two violate, by 0.1 and 0.4. Else what violates is level with the best.
    assert order == ([1, 0, 2, 3] if constrained else [1, 2, 3, 0])


@pytest.mark.parametrize("constrained", [True, False])
def test_predictions_are_of_values_ranked_as_the_past(constrained):
    surrogate = Surrogate(SPACE, "gp", find("gp").make(), None, direction="minimize", constrained=constrained)
    optimizer = Optimizer(surrogate=surrogate)
    for trial in constrained_trials(0.9, np.linspace(0.0, 1.0, 11)):
        optimizer.add(trial.params, trial.value, constraints=trial.constraints)
    allowed, forbidden = optimizer.predict([{"x": 0.4}, {"x": 0.9}]).mean
    assert (forbidden > allowed) == constrained
