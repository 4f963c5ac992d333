"""Whatever is called in whatever order: a study against a list of dictionaries that is kept beside it."""

import copy
import math
import tempfile
from itertools import product
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import Categorical, EngineConfig, Float, Forbidden, Int, Optimizer, Space
from tests.tuning.conftest import examples

PARAMETERS = {"x": Int(0, 3), "kernel": Categorical(["a", "b"]), "degree": Int(1, 2, when={"kernel": "b"})}
RULES = [Forbidden({"kernel": "b", "x": 0})]
FINITE = Space(PARAMETERS, rules=RULES)
MIXED = Space({**PARAMETERS, "rate": Float(1e-4, 1.0, log=True)}, rules=RULES)
"""The same with one real number, so that there is always another configuration."""
CONFIGURATIONS = [
    {"x": x, "kernel": kernel} | ({"degree": degree} if degree else {})
    for x, (kernel, degree) in product(range(4), [("a", 0), ("b", 1), ("b", 2)])
    if kernel == "a" or x > 0
]
"""All configurations of the finite space, by hand."""
PARTS = [{"x": 2}, {"degree": 1}, {"kernel": "a"}, {"x": 3, "kernel": "b"}, *CONFIGURATIONS]
INVALID_PARTS = [{"x": 4}, {"x": 0, "kernel": "b"}, {"x": 0, "degree": 1}, {"kernel": "a", "degree": 1}, {"y": 1}]
VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1.0, 1e300, 5e-324, math.inf, -math.inf, math.nan])
COSTS = st.sampled_from([None, None, 0.5, 3.0])
EXCESS = st.sampled_from([-1.0, 0.0, 2.0, None])
RATES = st.sampled_from([1e-4, 0.003, 1.0])


def is_valid(params, space):
    finite = {name: value for name, value in params.items() if name != "rate"}
    rate = params.get("rate", 0.5)
    return finite in CONFIGURATIONS and ("rate" in params) == ("rate" in space) and 1e-4 <= rate <= 1.0


class Study(RuleBasedStateMachine):
    """An optimizer, and what it must hold."""

    @initialize(
        space=st.sampled_from([FINITE, MIXED]),
        direction=st.sampled_from(["minimize", "maximize"]),
        constrained=st.booleans(),
        failure_model=st.booleans(),
        seed=st.integers(0, 2),
    )
    def start(self, space, direction, constrained, failure_model, seed):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "study.json"
        self.space, self.direction, self.constrained = space, direction, constrained
        config = EngineConfig(method="random", failure_model=failure_model)
        self.optimizer = Optimizer(space, direction=direction, seed=seed, config=config)
        self.handles, self.expected, self.queue = [], [], []

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()

    # What is known of configurations.

    def configurations(self, *states):
        return [trial["params"] for trial in self.expected if not states or trial["state"] in states]

    def complete_configuration(self, params, rate):
        return params | ({"rate": rate} if "rate" in self.space else {})

    def n_left(self, taken):
        """Number of configurations that are none of those taken."""
        return math.inf if "rate" in self.space else sum(params not in taken for params in CONFIGURATIONS)

    def keep(self, handle, params, state="running", value=None, cost=None, constraints=None):
        assert handle.number == len(self.expected)
        self.handles.append(handle)
        fields = {"params": params, "state": state, "value": value, "cost": cost}
        self.expected.append(fields | {"constraints": constraints or {}, "reports": {}})

    def trial_of(self, data, *states):
        numbers = [number for number, trial in enumerate(self.expected) if trial["state"] in states]
        number = data.draw(st.sampled_from(numbers))
        return number, data.draw(st.sampled_from([number, self.handles[number], self.optimizer.trials[number]]))

    # What a user does.

    @rule()
    def ask(self):
        known, running = self.configurations(), self.configurations("running")
        trial = self.optimizer.ask()
        if self.queue:
            assert self.queue.pop(0).items() <= trial.params.items()
        else:
            assert trial.params not in known or not self.n_left(known)
            assert trial.params not in running or not self.n_left(running)
        self.keep(trial, trial.params)

    @rule(n=st.integers(1, 4))
    def ask_for_several(self, n):
        running, n_queued = self.configurations("running"), min(n, len(self.queue))
        n_free = self.n_left(running)
        try:
            trials = self.optimizer.ask(n)
        except ConfigError:
            assert n_free - n_queued < n - n_queued
            return
        fresh = [trial.params for trial in trials[n_queued:]]
        assert len(trials) == n
        assert n_queued or n_free >= n
        for trial, part in zip(trials, self.queue, strict=False):
            assert part.items() <= trial.params.items()
        taken = [*running, *(trial.params for trial in trials[:n_queued])]
        assert all(params not in [*taken, *fresh[:i]] for i, params in enumerate(fresh))
        del self.queue[:n_queued]
        for trial in trials:
            self.keep(trial, trial.params)

    @rule(part=st.sampled_from(PARTS), rate=RATES | st.none())
    def enqueue(self, part, rate):
        values = part if rate is None else self.complete_configuration(part, rate)
        self.optimizer.enqueue(values)
        # A degree needs the kernel that has it.
        self.queue.append({"kernel": "b", **values} if "degree" in values else values)

    @rule(part=st.sampled_from(INVALID_PARTS))
    def enqueue_what_no_configuration_has(self, part):
        with pytest.raises(DataError):
            self.optimizer.enqueue(part)

    @rule(params=st.sampled_from(CONFIGURATIONS), rate=RATES, value=VALUES | st.none(), cost=COSTS, excess=EXCESS)
    def add(self, params, rate, value, cost, excess):
        params = self.complete_configuration(params, rate)
        constraints = {"memory": excess} if self.constrained else {}
        trial = self.optimizer.add(params, value, cost=cost, constraints=constraints)
        if value is None or math.isnan(value):
            self.keep(trial, params, "failed", None, cost)
        else:
            self.keep(trial, params, "complete", value, cost, constraints)

    @rule(params=st.sampled_from(CONFIGURATIONS), rate=RATES)
    def add_a_running_trial(self, params, rate):
        params = self.complete_configuration(params, rate)
        self.keep(self.optimizer.add_running(params), params)

    @rule(part=st.sampled_from(INVALID_PARTS))
    def add_what_is_no_configuration(self, part):
        with pytest.raises(DataError):
            self.optimizer.add(part, 1.0)

    @precondition(lambda self: self.configurations("running"))
    @rule(data=st.data(), value=VALUES, cost=COSTS, excess=EXCESS)
    def tell(self, data, value, cost, excess):
        number, trial = self.trial_of(data, "running")
        constraints = {"memory": excess} if self.constrained else {}
        self.optimizer.tell(trial, value, cost=cost, constraints=constraints)
        if math.isnan(value):
            self.expected[number] |= {"state": "failed", "cost": cost}
        else:
            fields = {"state": "complete", "value": value, "cost": cost, "constraints": constraints}
            self.expected[number] |= fields

    @precondition(lambda self: self.configurations("running"))
    @rule(data=st.data(), cost=COSTS)
    def fail(self, data, cost):
        number, trial = self.trial_of(data, "running")
        self.optimizer.tell_failed(trial, cost=cost)
        self.expected[number] |= {"state": "failed", "cost": cost}

    @precondition(lambda self: self.configurations("running"))
    @rule(data=st.data(), value=st.sampled_from([0.5, math.inf, math.nan]), step=st.integers(0, 2))
    def report(self, data, value, step):
        number, trial = self.trial_of(data, "running")
        self.optimizer.report(trial, value, step)
        reports = self.expected[number]["reports"]
        if step in reports:  # the trial runs again
            reports = {earlier: reported for earlier, reported in reports.items() if earlier < step}
        self.expected[number]["reports"] = {**reports, step: value}

    @precondition(lambda self: self.configurations("running"))
    @rule(data=st.data(), cost=st.sampled_from([0.0, -1.0, math.inf, math.nan]))
    def tell_an_invalid_cost_or_constraint(self, data, cost):
        _, trial = self.trial_of(data, "running")
        constraints = {"memory": 1.0} if self.constrained else {}
        with pytest.raises(DataError):
            self.optimizer.tell(trial, 1.0, cost=cost, constraints=constraints)
        with pytest.raises(DataError):
            self.optimizer.tell(trial, 1.0, constraints={"memory": math.inf})

    @precondition(lambda self: self.configurations("complete", "failed"))
    @rule(data=st.data())
    def tell_what_has_ended(self, data):
        _, trial = self.trial_of(data, "complete", "failed")
        for call in (self.optimizer.tell, lambda trial, value: self.optimizer.report(trial, value, 1)):
            with pytest.raises(DataError):
                call(trial, 1.0)
        with pytest.raises(DataError):
            self.optimizer.tell_failed(trial)

    @rule()
    def save(self):
        self.optimizer.save(self.path)

    @rule()
    def continue_from_the_file(self):
        """Another session reads and writes the file in between, and changes nothing."""
        self.optimizer.save(self.path)
        loaded = Optimizer.load(self.path, space=self.space)
        loaded.save(self.path)
        self.optimizer.save(self.path)
        assert loaded.ask().params == copy.deepcopy(self.optimizer).ask().params
        self.optimizer = Optimizer.load(self.path, space=self.space)

    # What holds at any time.

    @invariant()
    def every_trial_is_as_it_was_told(self):
        if not hasattr(self, "optimizer"):
            return
        trials = self.optimizer.trials
        assert [trial.number for trial in trials] == list(range(len(self.expected)))
        for trial, expected in zip(trials, self.expected, strict=True):
            assert is_valid(trial.params, self.space)
            # Texts of numbers, as NaN equals nothing.
            assert repr({name: getattr(trial, name) for name in expected}) == repr(as_trials_have_it(expected))

    @invariant()
    def what_waits_is_kept(self):
        if hasattr(self, "optimizer"):
            assert list(self.optimizer.enqueued) == self.queue

    @invariant()
    def the_best_is_the_first_of_the_best(self):
        if not hasattr(self, "optimizer"):
            return
        excesses = [trial["constraints"].get("memory", 0.0) for trial in self.expected]
        feasible = [
            (number, trial["value"])
            for number, (trial, excess) in enumerate(zip(self.expected, excesses, strict=True))
            if trial["state"] == "complete" and excess is not None and excess <= 0
        ]
        if not feasible:
            with pytest.raises(DataError):
                _ = self.optimizer.best
            return
        values = [value for _, value in feasible]
        best = min(values) if self.direction == "minimize" else max(values)
        assert self.optimizer.best.number == feasible[values.index(best)][0]


def as_trials_have_it(expected):
    constraints = {name: math.nan if value is None else value for name, value in expected["constraints"].items()}
    reports = {float(step): value for step, value in expected["reports"].items()}
    return {**expected, "constraints": constraints, "reports": reports}


def test_any_order_of_calls():
    run_state_machine_as_test(Study, settings=settings(examples(36), stateful_step_count=30))
