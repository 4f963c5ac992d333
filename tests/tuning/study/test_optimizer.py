"""Ask and tell."""

import math
import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.tuning import (
    Bool,
    Categorical,
    EngineConfig,
    Float,
    Int,
    Optimizer,
    PastCurves,
    Space,
    Surrogate,
    from_frame,
)
from dre_jax.tuning.engine.engine import Suggestion
from dre_jax.tuning.study import trial_loop
from tests.known_methods import NEAREST

SPACE = Space(
    {
        "x": Float(-1.0, 1.0),
        "lr": Float(1e-4, 1.0, log=True),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
    }
)
LINE = Space({"x": Float(0.0, 1.0)})
FINITE = Space({"a": Bool(), "b": Categorical(["x", "y", "z"], when={"a": True})})


def near(space, **options):
    """An optimizer that knows nothing and stays near the best; quick to compile."""
    return Optimizer(space, Surrogate(space, "near", NEAREST, None), **options)


def loss(params):
    return (params["x"] - 0.3) ** 2 + abs(math.log10(params["lr"]) + 2) + 0.1 * params.get("degree", 0)


def run(optimizer, n, f=loss):
    """Asks and tells, the suggestions."""
    for _ in range(n):
        trial = optimizer.ask()
        optimizer.tell(trial, f(trial.params))
    return [trial.params for trial in optimizer.trials]


def distinct(configurations):
    return len({tuple(params.items()) for params in configurations}) == len(configurations)


class TestTrials:
    def test_a_trial_from_asking_to_telling(self):
        optimizer = Optimizer(SPACE)
        first, second, third = optimizer.ask(), optimizer.ask(), optimizer.ask()
        assert [first.number, second.number, third.number] == [0, 1, 2]
        assert optimizer.trials == (first, second, third)
        assert {trial.state for trial in optimizer.trials} == {"running"}
        assert optimizer.tell(second, 2) == second.with_fields(state="complete", value=2.0)
        assert optimizer.tell(0, jnp.float32(0.5)) == first.with_fields(state="complete", value=0.5)
        assert optimizer.tell_failed(third) == third.with_fields(state="failed")
        assert [trial.state for trial in optimizer.trials] == ["complete", "complete", "failed"]

    def test_changes_to_the_parameters_change_no_study(self):
        optimizer = Optimizer(SPACE)
        trial = optimizer.ask()
        params, x = trial.params, trial["x"]
        params.pop("x")
        trial.params["lr"] = 99.0
        assert dict(**optimizer.tell(trial, 1.0)) == SPACE.check(optimizer.best.params)
        optimizer.best.params["x"] = 0.0
        assert optimizer.best["x"] == x

    def test_a_frame(self):
        space = Space({"value": Float(0.0, 1.0), **SPACE})
        optimizer = Optimizer(space)
        for value in (1.0, None):
            optimizer.add({"value": 0.5, "x": 0.0, "lr": 0.1, "kernel": "rbf"}, value)
        optimizer.add_running({"value": 0.25, "x": 0.0, "lr": 0.1, "kernel": "poly", "degree": 3})
        frame = optimizer.to_frame()
        assert list(frame) == ["number", "state", "value", "params_value", "x", "lr", "kernel", "degree"]
        assert frame["state"].tolist() == ["complete", "failed", "running"]
        assert frame["value"].tolist()[0] == 1.0
        assert frame["degree"].isna().tolist() == [True, True, False]
        assert len(from_frame(Optimizer(SPACE).to_frame().assign(task=[]), SPACE, direction="minimize")) == 0

    def test_a_frame_has_all_that_was_told(self):
        optimizer = Optimizer({"cost": Float(0.0, 1.0), "x": Float(0.0, 1.0)})
        told = [(0.0, 1.0, 0.5, 3.0), (0.25, 2.0, None, 4.0), (0.5, 4.0, 0.25, None), (0.75, None, None, 5.0)]
        for x, value, stderr, cost in told:
            optimizer.add({"cost": x, "x": 1.0 - x}, value, stderr=stderr, cost=cost)
        frame = optimizer.to_frame()
        assert list(frame) == ["number", "state", "value", "stderr", "cost", "params_cost", "x"]
        assert [
            tuple(row)
            for row in frame[["params_cost", "value", "stderr", "cost"]]
            .astype(object)
            .replace(math.nan, None)
            .to_numpy()
        ] == told
        task = from_frame(frame, optimizer.space, direction="minimize", task=None).tasks["study"]
        np.testing.assert_allclose(task.X, [[0.0, 1.0], [0.25, 0.75], [0.5, 0.5]])
        np.testing.assert_array_equal(task.costs, [3.0, 4.0, math.nan])

    def test_the_best(self):
        for direction, best in (("minimize", 1), ("maximize", 3)):
            optimizer = Optimizer(LINE, direction=direction)
            for x, value in enumerate((2.0, 1.0, 1.0, 3.0, math.nan, 3.0)):
                optimizer.tell(optimizer.add_running({"x": x / 6}), value)
            optimizer.add_running({"x": 1.0})
            assert optimizer.best == optimizer.trials[best]
            assert optimizer.trials[4].state == "failed"

    def test_the_best_satisfies_all_constraints(self):
        optimizer = Optimizer(LINE)
        for x, (value, constraints) in enumerate([(1.0, (1, -1)), (2.0, (0, jnp.float32(-0.5))), (3.0, (-1, -1))]):
            imported = optimizer.add({"x": x / 3}, value, constraints=dict(zip("ab", constraints, strict=True)))
            assert imported.is_feasible == (x > 0)
        assert optimizer.best.number == 1
        assert repr(optimizer.best).endswith("value=2.0, constraints={'a': 0.0, 'b': -0.5})")
        assert optimizer.to_frame()["constraints_b"].tolist() == [-1.0, -0.5, -1.0]
        none = Optimizer(LINE)
        none.add({"x": 0.5}, 1.0, constraints={"a": 1e-9})
        with pytest.raises(DataError, match=r"constraints, .* 1 complete"):
            _ = none.best
        none.add({"x": 0.2}, 0.0, constraints={"a": 1e-10})
        assert [trial.number for trial in none.least_infeasible] == [1, 0]
        assert [trial.number for trial in optimizer.least_infeasible] == [1, 2, 0]

    def test_a_trial_with_an_unknown_constraint_is_not_feasible(self):
        optimizer = Optimizer(LINE)
        for x, limit in ((0.2, None), (0.4, -1.0), (0.6, math.nan), (0.8, 1.0)):
            optimizer.add({"x": x}, x, constraints={"a": limit})
        assert [trial.is_feasible for trial in optimizer.trials] == [False, True, False, False]
        assert [trial.number for trial in optimizer.least_infeasible] == [1, 0, 2, 3]
        assert optimizer.best.number == 1
        assert np.isnan(optimizer.trials[2].constraints["a"])

    @pytest.mark.parametrize("direction", ["minimize", "maximize"])
    def test_the_best_by_prediction_is_not_the_luckiest(self, direction):
        """One lucky trial is far from the optimum, and its neighbours are bad; the best trial is not feasible."""
        optimizer, sign = Optimizer(LINE, direction=direction), 1.0 if direction == "minimize" else -1.0
        noise = np.random.default_rng(0).normal(0.0, 0.1, 31)
        for i, error in zip(range(31), noise, strict=True):
            x = i / 30
            value = -0.4 if i == 27 else (x - 0.3) ** 2 + error
            optimizer.add({"x": x}, sign * value, constraints={"c": 1.0 if abs(x - 0.3) < 0.02 else -1.0})
        assert optimizer.best["x"] == pytest.approx(0.9)
        assert optimizer.best_by_prediction()["x"] == pytest.approx(0.3, abs=0.15)


class TestSuggestions:
    def test_the_seed_and_the_answers_decide(self):
        first = run(near(SPACE, seed=1), 8)
        assert run(near(SPACE, seed=1), 8) == first
        assert run(near(SPACE, seed=2), 8)[0] != first[0]
        assert run(near(SPACE, seed=1), 8, lambda params: -loss(params))[1:] != first[1:]
        assert run(near(SPACE, seed=1, direction="maximize"), 8, lambda params: -loss(params)) == first

    def test_a_batch_has_no_equal_configurations(self):
        optimizer = near(FINITE)
        with pytest.raises(ConfigError, match=r"ask\(5\) needs 5 .* the space has 4: ask for 4, or"):
            optimizer.ask(5)
        assert optimizer.trials == ()
        assert distinct([trial.params for trial in optimizer.ask(4)])
        with pytest.raises(ConfigError, match="the space has 0: tell a running trial first"):
            optimizer.ask(1)
        optimizer.tell(2, 1.0)
        assert optimizer.ask(1)[0].params == optimizer.trials[2].params

    @pytest.mark.slow
    def test_the_last_configurations_of_a_space_come_before_repeats(self):
        optimizer = near(Space({"n": Int(1, 2000, log=True), "kernel": Categorical(["rbf", "poly"])}), seed=0)
        last = [(3, "poly"), (1700, "rbf")]
        for n in range(1, 2001):
            for kernel in ("rbf", "poly"):
                if (n, kernel) not in last:
                    optimizer.add({"n": n, "kernel": kernel}, float(n))
        assert sorted(tuple(optimizer.ask().params.values()) for _ in last) == last

    def test_enqueued_values_come_first(self):
        optimizer = near(SPACE)
        optimizer.enqueue({"degree": 3, "lr": 0.1, "x": 0.5, "kernel": "poly"})
        optimizer.enqueue({"lr": 0.003})
        optimizer.enqueue({"degree": 2})
        assert optimizer.ask().params == {"x": 0.5, "lr": 0.1, "kernel": "poly", "degree": 3}
        second, third, fourth = optimizer.ask(3)
        assert second["lr"] == 0.003
        assert (third["kernel"], third["degree"]) == ("poly", 2)
        assert fourth["lr"] != 0.003

    def test_failed_trials_and_their_neighbours_are_not_suggested_again(self):
        """Everything near the best fails."""
        optimizer = near(LINE, config=EngineConfig(failure_model=False))
        optimizer.add({"x": 0.5}, 0.0)
        optimizer.optimize(lambda trial: math.nan, 12)
        failed = [trial["x"] for trial in optimizer.trials[1:]]
        assert np.diff(np.sort(failed)).min() > 0.02
        # It works its way outwards, since nothing was learned but where not to go.
        assert max(abs(x - 0.5) for x in failed) < 0.5
        assert optimizer.best.number == 0


GP = Space({"x": Float(0.0, 1.0), "kernel": Categorical(["rbf", "poly"])})


class TestHistoriesWithoutSurrogate:
    """The default, a Gaussian process, on what may come."""

    @pytest.mark.parametrize(
        "values",
        [
            *([], [0.5], range(6)),
            *([value] * 6 for value in (0.5, math.inf, -math.inf, math.nan)),
            [math.inf, -math.inf, 1.0, 1.7e308, -1e300, 0.0],
            [1e12, 1.0, 1.0 + 1e-12, 0.0, 5e-324, -0.0],
        ],
    )
    @pytest.mark.slow
    def test_suggestions_are_valid_and_new(self, values):
        optimizer = Optimizer(GP, seed=1)
        for value in values:
            optimizer.tell(optimizer.ask(), value)
        optimizer.ask(3)
        configurations = [trial.params for trial in optimizer.trials]
        assert distinct(configurations)
        assert all(GP.check(params) == params for params in configurations)

    @pytest.mark.slow
    def test_a_value_with_a_large_error_counts_less(self):
        def suggestion(stderr):
            optimizer = Optimizer(LINE, seed=0)
            for x in np.linspace(0.0, 1.0, 11):
                is_outlier = x == 0.9
                trial = optimizer.add_running({"x": x})
                optimizer.tell(trial, -1.0 if is_outlier else (x - 0.3) ** 2, stderr=stderr if is_outlier else None)
            return optimizer.ask()["x"]

        assert suggestion(None) == pytest.approx(0.9, abs=0.1)
        assert suggestion(10.0) == pytest.approx(0.3, abs=0.1)


@pytest.mark.usefixtures("even_points")
class TestOptimize:
    """A loop that asks, evaluates and tells."""

    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_the_loop_asks_and_tells(self, n_jobs):
        optimizer, ended = Optimizer(LINE, seed=1), []
        callbacks = [lambda study, trial: ended.append((trial.number, study, trial))]
        objective = lambda trial: math.nan if trial.number == 1 else trial["x"]  # noqa: E731
        optimizer.optimize(objective, 4, callbacks=callbacks, n_jobs=n_jobs)
        assert sorted(ended) == [(trial.number, optimizer, trial) for trial in optimizer.trials]
        assert [trial.state for trial in optimizer.trials] == ["complete", "failed", "complete", "complete"]
        assert all(trial.value == trial["x"] for trial in optimizer.trials if trial.number != 1)
        optimizer.optimize(loss, timeout=1e-9)
        assert len(optimizer.trials) == 4

    def test_no_trial_starts_after_the_time(self, monkeypatch):
        """A suggestion that takes long, as one that compiles, starts no trial."""
        optimizer = Optimizer(LINE)
        optimizer.enqueue({"x": 0.5})
        clock = iter([0.0, 1.0, 3.0])  # at the start, before the suggestion and after it
        monkeypatch.setattr(trial_loop.time, "monotonic", lambda: next(clock))
        optimizer.optimize(loss, timeout=2.0)
        monkeypatch.undo()
        assert optimizer.trials == ()
        assert optimizer.ask()["x"] == 0.5  # nothing is lost

    def test_as_many_threads_as_cores(self, monkeypatch):
        monkeypatch.setattr(trial_loop.os, "cpu_count", lambda: 3)
        barrier, optimizer = threading.Barrier(3, timeout=60), Optimizer(LINE)

        def objective(trial):
            barrier.wait()
            return trial["x"]

        optimizer.optimize(objective, 3, n_jobs=-1)
        assert [trial.state for trial in optimizer.trials] == ["complete"] * 3

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_an_error_ends_the_loop(self, n_jobs):
        def objective(trial):
            if trial.number == 2:
                raise KeyboardInterrupt
            time.sleep(0.01)
            return 1.0

        optimizer = Optimizer(LINE)
        with pytest.raises(KeyboardInterrupt):
            optimizer.optimize(objective, 4, n_jobs=n_jobs)
        assert optimizer.trials[2].state == "failed"
        assert {trial.state for trial in optimizer.trials} == {"complete", "failed"}
        with pytest.raises(DataError, match="must be a number, but got None"):
            optimizer.optimize(lambda trial: None, 1)
        assert optimizer.trials[-1].state == "failed"

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_caught_error_does_not(self, n_jobs):
        def objective(trial):
            if trial.number in (1, 3):
                raise ArithmeticError("diverged")
            return "text" if trial.number == 2 else 1.0

        optimizer, ended = Optimizer(LINE), []
        options = {"catch": (ArithmeticError, DataError), "callbacks": lambda _, trial: ended.append(trial.number)}
        with pytest.warns(DataWarning) as caught:
            optimizer.optimize(objective, 5, n_jobs=n_jobs, **options)
        assert [trial.state for trial in optimizer.trials] == ["complete", "failed", "failed", "failed", "complete"]
        assert sorted(ended) == [0, 1, 2, 3, 4]
        messages = sorted(str(one.message) for one in caught)
        assert messages[0] == "trial 1 failed: ArithmeticError: diverged"
        assert len(messages) == 3
        with pytest.raises(ZeroDivisionError):
            optimizer.optimize(lambda trial: 1 / 0, 1, catch=DataError)


class TestThreads:
    def test_many_ask_and_tell(self):
        optimizer = near(SPACE)
        optimizer.optimize(lambda trial: loss(trial.params), 20, n_jobs=4)
        assert [trial.number for trial in optimizer.trials] == list(range(20))
        assert distinct([trial.params for trial in optimizer.trials])
        assert all(trial.value == loss(trial.params) for trial in optimizer.trials)

    def test_telling_does_not_wait_for_asking(self, monkeypatch):
        optimizer, inside, facts = Optimizer(LINE), threading.Event(), threading.Event()
        first = optimizer.ask()

        def slow(*arguments, **more):
            inside.set()
            assert facts.wait(60)
            return Suggestion({"x": 0.125})

        monkeypatch.setattr(optimizer._engine, "propose", slow)
        thread = threading.Thread(target=optimizer.ask)
        thread.start()
        assert inside.wait(60)
        optimizer.tell(first, 1.0)
        assert optimizer.best.number == 0
        facts.set()
        thread.join()
        assert [trial.state for trial in optimizer.trials] == ["complete", "running"]


def test_texts_of_large_objects_are_short():
    surrogate, curves = (
        Surrogate.pretrained("svc", "accuracy"),
        PastCurves({"a": [{i: -0.1 * i for i in range(50)}, {0: 1, 1: 2}, {0: 1, 1: 3}]}),
    )
    assert repr(surrogate).startswith("Surrogate(name='hedged-prior', hyperparameters=['kernel', 'C', ")
    assert "direction='maximize', metric='accuracy'" in repr(surrogate)
    assert repr(curves) == "PastCurves(n_tasks=1, n_curves={'a': 3})"
    assert max(len(repr(surrogate)), len(str(curves))) < 400
