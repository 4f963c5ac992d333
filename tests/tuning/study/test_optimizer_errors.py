"""What ask and tell refuse, in one line that says what to do."""

import math

import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.methods import find
from dre_jax.tuning import EngineConfig, Float, Optimizer, Space, Surrogate, Trial, from_frame, past_of
from tests.error_messages import error_table, raises_line
from tests.known_methods import NEAREST

LINE = Space({"x": Float(0.0, 1.0)})
NEAR = Surrogate(LINE, "near", NEAREST, None)


def test_a_data_frame_is_no_configuration():
    optimizer, frame = Optimizer(LINE), Optimizer(LINE).to_frame()
    with raises_line(DataError, "configurations must be mappings in a list, but got a data frame: pass frame.to_dict("):
        optimizer.predict(frame)
    with raises_line(DataError, "a configuration must map names to values, but got Empty DataFrame"):
        optimizer.add(frame, 1.0)


test_configurations = error_table(
    ConfigError,
    (lambda: Optimizer({}), "at least one name"),
    (Optimizer, "a search space must be a Space, a mapping, or a surrogate's by surrogate=, but got None"),
    (lambda: Optimizer(NEAR), "or a surrogate's by surrogate=, but got Surrogate("),
    (lambda: Optimizer(LINE, "past.npz"), "a surrogate must be a Surrogate, as Surrogate.load and"),
    (lambda: Optimizer(LINE, {"a": "past"}, directions={"a": "minimize", "b": "minimize"}), "but got 'past'"),
    (lambda: EngineConfig(method="hedged-prior"), "learns from past tasks: pass surrogate=Surrogate.fit"),
    (lambda: EngineConfig(method="tpe"), "must be one in JAX, as gp and random, but got 'tpe'"),
    (lambda: Optimizer(LINE, config={}), "config must be an EngineConfig, but got {}"),
    (lambda: Optimizer(LINE).optimize(None, 1), "the objective must be a function of a trial, but got None"),
    (
        lambda: Optimizer(LINE, NEAR).tell(0, 0.5, stderr=1),
        "as hedged-prior and gp-mixture, but near does not: tell the value",
    ),
    (lambda: Optimizer(LINE).optimize(len), "optimize needs n_trials, timeout or total_budget"),
    (lambda: Optimizer(LINE).optimize(len, 1, n_jobs=0), "n_jobs must be a whole number from 1, but got 0"),
    (lambda: Optimizer(LINE, direction="up"), "direction must be one of minimize, maximize, but got 'up'"),
    (lambda: Optimizer(LINE, seed=-1), "seed must be a whole number"),
    (lambda: Optimizer(LINE).ask(True), "n must be a whole number from 1, but got True"),
    (lambda: Optimizer(LINE).optimize(len, 1, callbacks=3), "functions of the optimizer and a trial, but got 3"),
    (lambda: Optimizer(LINE).optimize(len, 1, catch=["ValueError"]), "such as ValueError, but got 'ValueError'"),
    (lambda: Optimizer(LINE).optimize(len, 1, catch=KeyboardInterrupt), "but got <class 'KeyboardInterrupt'"),
    (lambda: Optimizer(LINE).optimize(len, "a"), "n_trials must be a whole number from 1, but got 'a'"),
    (lambda: Optimizer(LINE).optimize(len, 1.5), "n_trials must be a whole number from 1, but got 1.5"),
    (lambda: Optimizer(LINE).optimize(len, 1, n_jobs=1.5), "n_jobs must be a whole number from 1, but got 1.5"),
    (lambda: Optimizer(LINE).optimize(len, 1, n_jobs=-2), "n_jobs must be a whole number from 1, but got -2"),
    (
        lambda: past_of(LINE, {}, direction="minimize", absent="z"),
        "absent must map names of hyperparameters, but got 'z'",
    ),
    (lambda: past_of(LINE, {}, direction="minimize", renamed="z"), "renamed must map names of hyperparameters, but"),
    (lambda: from_frame({}, LINE, direction="minimize", renamed="z"), "renamed must map names of hyperparameters, but"),
    (lambda: Optimizer(LINE).gain_is_below("a"), "threshold of the expected gain must be positive, but got 'a'"),
    (lambda: EngineConfig(failed_radius=-0.1), "failed_radius >= 0 must hold, but got failed_radius=-0.1"),
    (lambda: EngineConfig(budget="a"), "budget > 0 must hold, but got budget=a"),
    (lambda: EngineConfig(max_history="a"), "max_history >= 2 must hold, but got max_history=a"),
    (lambda: EngineConfig(stopping_error="a"), "stopping_error must be a share between 0 and 1, but got 'a'"),
    (lambda: Surrogate.pretrained(["svc"]), "but got ['svc']"),
    (
        lambda: Surrogate.pretrained("svc", ["r2"]),
        "of svc know the metrics error, log_loss, auc, but got",
    ),
    (lambda: find("gp").make(["steps=1"]), "gp: settings must map fields to values, but got ['steps=1']"),
)


class TestRefused:
    @pytest.mark.parametrize(
        ("act", "rule"),
        [
            (lambda o: o.best, "once one is complete"),
            (lambda o: o.tell(1, 0.5), "one of the 1 of this study, but got number 1"),
            (lambda o: o.tell("0", 0.5), "as `ask` returned it"),
            (lambda o: o.tell(True, 0.5), "as `ask` returned it"),
            (lambda o: o.tell(Trial(0, {"x": 0.123}), 0.5), "must be of this study, but trial 0 is"),
            (lambda o: o.tell(0, "good"), "must be a number, but got 'good'"),
            (lambda o: o.tell(0, np.zeros((2, 2))), "must be a number"),
            (lambda o: o.tell(0, []), "a trial needs one measurement or more"),
            (lambda o: o.tell(0, [0.5, 0.6], stderr=0.1), "tell it without stderr"),
            (lambda o: o.repeat(0), "needs a complete trial, but trial 0 is running"),
            (lambda o: o.tell(0, 0.5, stderr=-1), "must be finite and at least 0, but got -1.0"),
            (lambda o: o.tell(0, 0.5, stderr="a"), "the standard error of a value must be a number, but got 'a'"),
            (lambda o: o.tell(0, 0.5, constraints={"a": math.inf}), "'a' must be a finite number, but got inf"),
            (lambda o: o.tell(0, 0.5, constraints=[1.0]), "must map names to numbers, but got [1.0]"),
            (lambda o: o.add({"x": 1.5}, 0.5), "x must be a number in [0.0, 1.0], but got 1.5"),
            (lambda o: o.enqueue({"y": 1}), "but got 'y'"),
            (lambda o: o.predict(None), "configurations must be mappings in a list, but got None"),
        ],
    )
    def test_trials(self, act, rule):
        optimizer = Optimizer(LINE)
        optimizer.ask()
        before = optimizer.trials
        with raises_line(DataError, rule):
            act(optimizer)
        assert optimizer.trials == before

    def test_constraints_of_other_names(self):
        optimizer = Optimizer(LINE)
        optimizer.add({"x": 0.5}, 1.0, constraints={"a": 0.0, "b": 1.0})
        for constraints, names in (({"a": 1.0}, "'a'"), ({}, "none")):
            with raises_line(DataError, f"must have the same constraints, which are 'a', 'b', but got {names}"):
                optimizer.tell(optimizer.ask(), 1.0, constraints=constraints)
        assert optimizer.tell(1, math.nan).constraints == {}

    def test_telling_twice(self):
        optimizer = Optimizer(LINE)
        optimizer.tell(optimizer.ask(), 0.5)
        optimizer.tell_failed(optimizer.ask())
        for number, rule in enumerate(("trial 0 gave 0.5 already", "trial 1 failed already")):
            for act in (lambda number: optimizer.tell(number, 1.0), optimizer.tell_failed):
                with raises_line(DataError, rule):
                    act(number)
        assert [trial.value for trial in optimizer.trials] == [0.5, None]
