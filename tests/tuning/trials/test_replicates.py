"""Several measurements of one configuration, against loops and an analysis of variance by hand."""

import math
import statistics

import numpy as np
import pytest

from dre_jax import Trial
from dre_jax.errors import DataError
from dre_jax.tuning import EngineConfig, Float, Optimizer
from dre_jax.tuning.trials.replicates import mean_and_error, measurement_errors, measurements_of, merge_repeats
from tests.error_messages import raises_line

SPACE = {"x": Float(0.0, 1.0)}
RANDOM = EngineConfig(method="random")


def study(config=RANDOM, direction="minimize"):
    return Optimizer(SPACE, direction=direction, config=config)


class TestNumbers:
    @pytest.mark.parametrize("values", [[0.81, 0.79, 0.83], (1, 2), np.float32([0.5, 0.25, 4.0, 1.0])])
    def test_a_mean_and_its_error(self, values):
        numbers = measurements_of(values)
        mean, error = mean_and_error(numbers)
        assert mean == pytest.approx(statistics.fmean(map(float, values)))
        assert error == pytest.approx(statistics.stdev(map(float, values)) / math.sqrt(len(values)))

    def test_infinite_values_have_no_error(self):
        assert mean_and_error([math.inf, 1.0]) == (math.inf, None)
        assert math.isnan(mean_and_error([math.inf, -math.inf])[0])

    def test_the_error_is_estimated_from_all_replicates(self):
        random = np.random.default_rng(0)
        groups = [random.normal(center, 0.3, n).tolist() for center, n in ((0.0, 3), (5.0, 2), (-2.0, 4), (1.0, 1))]
        trials = [
            Trial(i, {"x": i / 4}, "complete", statistics.fmean(group), measurements=tuple(group) if i < 3 else ())
            for i, group in enumerate(groups)
        ]
        squares = sum((value - statistics.fmean(group)) ** 2 for group in groups for value in group)
        deviation = math.sqrt(squares / (10 - 4))
        expected = [deviation / math.sqrt(n) for n in (3, 2, 4, 1)]
        np.testing.assert_allclose(measurement_errors(trials), expected)

    def test_repeats_are_merged(self):
        values = [0.3, 0.7, 0.8]
        first = Trial(0, {"x": 0.5}, "complete", values[0])
        repeats = [Trial(n, {"x": 0.5}, "complete", value, repeats=0) for n, value in enumerate(values) if n]
        listed = Trial(0, {"x": 0.5}, "complete", statistics.fmean(values), measurements=tuple(values))
        (merged,) = merge_repeats([first, *repeats])
        assert (merged.value, merged.measurements) == (pytest.approx(listed.value), listed.measurements)
        assert merged.stderr == pytest.approx(statistics.stdev(values) / math.sqrt(3))

    def test_known_errors_stay(self):
        trials = [Trial(0, {}, "complete", 1.0, 0.5), Trial(1, {}, "complete", 2.0, measurements=(1.0, 3.0))]
        assert measurement_errors(trials).tolist() == [0.5, pytest.approx(1.0)]

    def test_without_replicates_nothing_is_estimated(self):
        trials = [Trial(0, {}, "complete", 1.0), Trial(1, {}, "complete", 1.0), Trial(2, {}, "complete", math.inf)]
        assert measurement_errors(trials).tolist() == [0.0] * 3


class TestStudy:
    @pytest.mark.parametrize("direction", ["minimize", "maximize"])
    def test_the_best_is_by_mean(self, direction):
        optimizer, sign = study(direction=direction), 1.0 if direction == "maximize" else -1.0
        lucky, good = optimizer.tell(optimizer.ask(), sign * 3.0), optimizer.tell(optimizer.ask(), sign * 2.0)
        assert optimizer.best.number == lucky.number
        optimizer.tell(optimizer.repeat(lucky), sign * 0.5)
        second = optimizer.tell(optimizer.repeat(good), sign * 2.4)
        third = optimizer.tell(optimizer.repeat(second), sign * 2.5)
        assert (second.params, second.repeats, third.repeats) == (good.params, good.number, good.number)
        best = optimizer.best
        assert (best.number, best.params, best.value) == (good.number, good.params, pytest.approx(sign * 2.3))
        assert best.n_measurements == 3
        assert "n_measurements=3" in repr(best)

    def test_a_list_is_one_trial(self):
        optimizer = study()
        trial = optimizer.tell(optimizer.ask(), [0.81, 0.79, 0.83])
        assert (trial.value, trial.measurements) == (pytest.approx(0.81), (0.81, 0.79, 0.83))
        assert trial.stderr == pytest.approx(0.02 / math.sqrt(3))
        assert optimizer.tell(optimizer.ask(), [0.5]).measurements == ()
        assert optimizer.tell(optimizer.ask(), [0.5, math.nan]).state == "failed"

    def test_a_repeat_may_fail(self):
        optimizer = study()
        first = optimizer.tell(optimizer.ask(), 1.0)
        optimizer.tell_failed(optimizer.repeat(first))
        assert optimizer.best.measurements == ()

    def test_constraints_are_averaged(self):
        optimizer = study()
        first = optimizer.tell(optimizer.ask(), 1.0, constraints={"memory": -1.0})
        optimizer.tell(optimizer.repeat(first), 1.0, constraints={"memory": 3.0})
        with raises_line(DataError, "none of the 2 complete trials does"):
            _ = optimizer.best

    def test_a_study_keeps_them_in_its_file(self, tmp_path):
        optimizer = study()
        first = optimizer.tell(optimizer.ask(), [0.81, 0.79, math.inf])
        optimizer.tell(optimizer.repeat(first), [0.5, 0.6])
        optimizer.repeat(first)
        optimizer.save(tmp_path / "study.json")
        assert Optimizer.load(tmp_path / "study.json").trials == optimizer.trials

    def test_studies_that_cannot(self):
        several = Optimizer(SPACE, directions={"near": "minimize", "far": "minimize"})
        trial = several.tell(several.ask(), [1.0, 2.0])
        with raises_line(DataError, "repeat needs a study of one objective"):
            several.repeat(trial)

    def test_repeats_are_a_list_to_the_engine(self):
        listed, repeated = Optimizer(SPACE, seed=0), Optimizer(SPACE, seed=0)
        for x, values in ((0.1, [0.3, 0.1]), (0.5, [0.2, 0.2]), (0.9, [0.6, 0.8])):
            listed.tell(listed.add_running({"x": x}), values)
            first = repeated.tell(repeated.add_running({"x": x}), values[0])
            repeated.tell(repeated.repeat(first), values[1])
        configurations = [{"x": 0.3}, {"x": 0.7}]
        for one, other in zip(listed.predict(configurations), repeated.predict(configurations), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_a_repeated_value_counts_more(self):
        """The lucky value at .9 loses its weight once measurements elsewhere show the noise."""

        def suggestion(measurements):
            optimizer = Optimizer(SPACE, seed=0)
            for x in np.linspace(0.0, 1.0, 11):
                value = -0.5 if x == 0.9 else (x - 0.3) ** 2
                optimizer.tell(optimizer.add_running({"x": x}), [value - 0.6, value + 0.6] if measurements else value)
            optimizer.tell(optimizer.add_running({"x": 0.3}), [0.0] * 40)
            return optimizer.best_by_prediction()["x"]

        assert suggestion(measurements=False) == 0.9
        assert suggestion(measurements=True) == pytest.approx(0.3, abs=0.15)
