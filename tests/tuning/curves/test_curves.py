"""Forecasts of learning curves: distributions by brute force, calibration of the rule, studies that stop trials."""

import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import EngineConfig, Float, Optimizer, PastCurves, Space
from dre_jax.tuning.curves.forecast import CurveModel
from dre_jax.tuning.curves.gaussian_processes import CurvePrior, condition, log_density, predict_last
from dre_jax.tuning.curves.ranks import lags, rank_rises
from dre_jax.tuning.curves.warp import fit_warp

STEPS = np.arange(1.0, 21.0)


def exponential_curves(rng, n):
    """f64[n, 20]: asymptotes and rates at random, some of which cross."""
    asymptote, rise, rate = -rng.gamma(2.0, 0.2, (n, 1)), rng.uniform(0.2, 1.0, (n, 1)), rng.uniform(0.05, 0.5, (n, 1))
    return asymptote - rise * np.exp(-rate * STEPS) + rng.normal(0, 0.005, (n, 20))


def as_dicts(curves):
    return [dict(zip(STEPS.tolist(), curve.tolist(), strict=True)) for curve in curves]


def study(curves, past):
    """Whether the best curve was stopped, and the share of steps that ran, if trials run one after the other."""
    finished, stopped, steps = [], set(), 0
    for i, curve in enumerate(as_dicts(curves)):
        model = CurveModel(finished, past)
        for step in curve:
            steps += 1
            forecast = model.forecast({s: v for s, v in curve.items() if s <= step}, i + 1)
            if forecast is not None and forecast.probability_of_best < forecast.bound:
                stopped.add(i)
                break
        else:
            finished.append(curve)
    return int(np.argmax(curves[:, -1])) in stopped, steps / curves.size


class TestProcesses:
    rng = np.random.default_rng(0)
    curves = exponential_curves(rng, 7)[:, ::4]
    prior = CurvePrior(rng.normal(size=5), np.cov(rng.normal(size=(5, 30))), 2.0, 3.0)

    def test_posterior_and_conditional_student_distribution(self):
        """The density of a last value is the ratio of two predictive densities of scipy's multivariate Student-t."""
        posterior = condition(self.prior, self.curves[1:], np.ones(6))
        one_by_one = self.prior
        for curve in self.curves[1:]:
            one_by_one = condition(one_by_one, curve[None], np.ones(1))
        for a, b in zip(posterior, one_by_one, strict=True):
            np.testing.assert_allclose(a, b)
        # Murphy (2007), Conjugate Bayesian analysis of the Gaussian distribution, equation 258
        degrees = 3.0 + 6 + 2
        shape = posterior.covariance * (3.0 + 6) * (1 + 1 / (2.0 + 6)) / degrees
        predictions = predict_last(posterior, self.curves[0])
        location, scale, freedom = predictions
        densities = stats.t.logpdf(self.curves[0, 4], freedom, location, scale)
        np.testing.assert_allclose(log_density(predictions, self.curves[0, 4]), densities)
        for t in range(1, 5):
            keep = [*range(t), 4]
            joint = stats.multivariate_t(posterior.mean[keep], shape[np.ix_(keep, keep)], degrees)
            before = stats.multivariate_t(posterior.mean[:t], shape[:t, :t], degrees)
            y = self.curves[0]
            expected = joint.pdf(y[keep]) / before.pdf(y[:t])
            location, scale, freedom = (part[..., t - 1] for part in predictions)
            assert stats.t.pdf(y[4], freedom, location, scale) == pytest.approx(expected, rel=1e-3)


class TestModel:
    def test_warp(self):
        curves = exponential_curves(np.random.default_rng(0), 31)
        warp = fit_warp(curves)
        scores = warp.forward(curves)
        assert np.median(scores[:, -1]) == pytest.approx(0, abs=1e-9)
        np.testing.assert_allclose(warp.backward(scores), curves)
        assert np.isfinite(warp.forward(np.array([-1e300, 1e300]))).all()

    def test_forecast_is_calibrated(self):
        """Of new curves, two thirds end within a standard error, and half above the forecast."""
        rng = np.random.default_rng(1)
        model = CurveModel(as_dicts(exponential_curves(rng, 40)))
        new = exponential_curves(rng, 200)
        forecasts = [model.forecast(dict(zip(STEPS[:7], curve[:7], strict=True))) for curve in new]
        scores = [(curve[-1] - one.response) / one.stderr for curve, one in zip(new, forecasts, strict=True)]
        assert 0.55 < np.mean(np.abs(scores) < 1) < 0.95
        assert abs(np.median(scores)) < 0.3

    def test_bound_has_the_stated_error(self):
        """P(surprise > -log bound) is the error under the posterior of the rate, by numerical integration."""
        model = CurveModel(as_dicts(exponential_curves(np.random.default_rng(2), 12)), error=0.1)
        count, total = model.surprise_posterior
        rate = stats.gamma(2.0 * count, scale=1 / total)
        density = lambda r: stats.gamma.sf(-np.log(model.bound), 2.0, scale=1 / r) * rate.pdf(r)  # noqa: E731
        assert integrate.quad(density, 0, rate.ppf(1 - 1e-12), limit=200)[0] == pytest.approx(0.1, rel=1e-4)

    def test_bound_falls_with_the_steps_that_remain(self):
        rng = np.random.default_rng(2)
        model, (curve,) = CurveModel(as_dicts(exponential_curves(rng, 12))), as_dicts(exponential_curves(rng, 1))
        for step in (1.0, 10.0, 19.0):
            forecast = model.forecast({s: v for s, v in curve.items() if s <= step}, 30)
            assert forecast.bound == pytest.approx(model.bound * (1 - step / 20) ** 5 / 4)

    @pytest.mark.parametrize("past", ["none", "same", "reversed", "noise"])
    def test_best_curves_survive_any_past(self, past):
        rng = np.random.default_rng(3)
        tasks = [exponential_curves(rng, 20) for _ in range(3)]
        tasks = {"none": [], "same": tasks, "reversed": [-t for t in tasks], "noise": [rng.normal(size=(20, 20))] * 2}[
            past
        ]
        past_curves = PastCurves({str(i): as_dicts(task) for i, task in enumerate(tasks)})
        outcomes = np.array([study(exponential_curves(np.random.default_rng(s), 25), past_curves) for s in range(10)])
        assert outcomes[:, 0].mean() <= 0.1
        assert outcomes[:, 1].mean() < (0.7 if past in ("none", "same") else 1.0)

    def test_no_forecast(self):
        curves = as_dicts(exponential_curves(np.random.default_rng(4), 8))
        assert CurveModel(curves[:5]).forecast(curves[7]) is None
        assert CurveModel([curves[0]] * 8).forecast({1.0: -1.0}) is None  # equal values
        model = CurveModel(curves)
        assert model.forecast({}) is None
        assert model.forecast(curves[7]) is None  # at the horizon
        assert model.forecast({1.0: np.nan, 2.0: -np.inf}).probability_of_best < 0.5


class TestRanks:
    def test_rises_are_of_shares_ahead(self):
        curves = np.array([[0.0, 1.0, 4.0], [3.0, 0.0, 3.0], [2.0, 2.0, 2.0], [1.0, 3.0, 1.0]])
        np.testing.assert_allclose(rank_rises(curves), [1.0, 2 / 3, 0.0, 0.0])

    def test_a_trial_lags_behind_a_share_of_random_ones(self):
        others = [{1.0: v, 3.0: v} for v in (0.0, 3.0, 1.0, 2.0, 0.0, 3.0, 1.0, 2.0)]
        assert lags({1.0: 0.0, 2.0: 1.5}, others, 0.25, 0)  # four are ahead
        assert not lags({1.0: 0.0, 2.0: 1.5}, others, 0.25, 4)
        assert not lags({2.0: 2.5}, others, 0.25, 0)
        assert lags({2.0: np.nan}, others, 0.8, 0)
        assert not lags({1.0: 0.0, 5.0: 0.0}, others, 0.25, 0)  # others ended before

    def test_more_may_be_ahead_in_a_study_that_converges(self):
        """Every later trial is better: nothing is known of random ones."""
        others = [{1.0: float(v)} for v in range(8)]
        assert not lags({1.0: 0.5}, others, 0.25, 0)
        assert lags({1.0: 0.5}, others[::-1], 0.25, 0)

    def test_past_ranks_count_if_they_hold(self):
        """Curves that never cross let ranks decide, if they are of the same kind, and noise lets none."""
        rng = np.random.default_rng(5)
        parallel = [rng.normal(size=(20, 1)) + 0.1 * STEPS for _ in range(3)]
        own = as_dicts(rng.normal(size=(8, 1)) + 0.1 * STEPS)
        past = [
            PastCurves({str(i): as_dicts(t) for i, t in enumerate(tasks)}, same_kind)
            for tasks, same_kind in ((parallel, True), (rng.normal(size=(3, 20, 20)), True), (parallel, False))
        ]
        assert 0.0 < CurveModel(own, past[0]).share_ahead < 0.25
        assert [CurveModel(own, one).share_ahead for one in (*past[1:], None)] == [1.0] * 3


def test_past_curves_of_a_table(tmp_path):
    rows = [f"{task},{trial},{step},{trial + 1 / step}" for task in "ab" for trial in range(3) for step in (2, 1)]
    path = tmp_path / "curves.csv"
    path.write_text("\n".join(["task, trial, epoch, value", *rows]))
    past = PastCurves.from_csv(path, direction="minimize", step="epoch")
    assert past.tasks["b"] == [{1.0: -trial - 1.0, 2.0: -trial - 0.5} for trial in range(3)]
    with pytest.raises(DataError, match=r"task, trial, step, value, .*'step'"):
        PastCurves.from_csv(path, direction="minimize")
    path.write_text("task,trial,step,value\na,0,1,many")
    with pytest.raises(DataError, match="column 'value' must hold numbers, but has 'many'"):
        PastCurves.from_csv(path, direction="minimize")


@pytest.mark.usefixtures("even_points")
class TestOptimizer:
    def run(self, optimizer, n_trials=20):
        def objective(trial):
            for step in range(1, 21):
                value = abs(trial["x"]) + np.exp(-step / 4)
                trial.report(value, step)
                if trial.should_stop():
                    break
            return value

        optimizer.optimize(objective, n_trials)
        return optimizer

    def test_stops_and_learns(self, tmp_path):
        optimizer = self.run(Optimizer({"x": Float(-1.0, 1.0)}, direction="minimize"))
        stopped = [trial for trial in optimizer.trials if trial.state == "stopped"]
        assert stopped
        for trial in stopped:  # the curves differ in their level only
            assert trial.value == pytest.approx(abs(trial["x"]), abs=max(0.1, 3 * trial.stderr))
            assert len(trial.reports) < 20
        assert optimizer.best.state == "complete"
        assert optimizer.best == min(optimizer.trials, key=lambda trial: abs(trial["x"]))
        optimizer.save(tmp_path / "study.json")
        assert Optimizer.load(tmp_path / "study.json").trials == optimizer.trials
        trial = optimizer.ask()
        assert pickle.loads(pickle.dumps(trial)) == trial

    def test_a_trial_that_continues_is_complete(self):
        optimizer = self.run(Optimizer({"x": Float(-1.0, 1.0)}, direction="minimize"), 8)
        trial = optimizer.ask()
        for step in range(1, 21):
            trial.report(100.0, step)
        assert optimizer.tell(trial, 100.0).state == "complete"
        trial = optimizer.add_running({"x": 0.5})
        for step in (1, 2, 3, 1, 2):  # as a trial that was interrupted
            optimizer.report(trial, 0.0, step)
        assert list(optimizer.trials[trial.number].reports) == [1, 2]

    def test_past_curves_stop_a_fourth_trial(self):
        """Without them, the first six run to the end."""
        levels = np.linspace(0.0, 1.0, 12)[:, None]
        past_curves, stopped = PastCurves({"past": as_dicts(-levels - np.exp(-STEPS / 4))}), []
        for curves in (None, past_curves):
            optimizer = Optimizer({"x": Float(-1.0, 1.0)}, direction="minimize")
            optimizer.set_past_curves(curves)
            for x, end in ((0.0, 20), (0.1, 20), (0.2, 20), (1.0, 12)):
                trial = optimizer.add_running({"x": x})
                for step in range(1, end + 1):
                    optimizer.report(trial, x + np.exp(-step / 4), step)
                stopped.append(optimizer.should_stop(trial))
                optimizer.tell(trial, x)
        assert stopped == [False] * 7 + [True]

    def test_errors(self):
        optimizer = Optimizer({"x": Float(-1.0, 1.0)}, direction="minimize")
        trial = optimizer.ask()
        with pytest.raises(DataError, match=r"the step of a report .*-1"):
            trial.report(1.0, -1)
        with pytest.raises(DataError, match="must be as `ask` returned it"):
            optimizer.trials[0].report(1.0, 1)
        optimizer.tell(trial, 1.0)
        with pytest.raises(DataError, match="a trial is told once"):
            trial.report(1.0, 1)
        with pytest.raises(DataError, match="past_curves must be PastCurves or None"):
            Optimizer(Space({"x": Float(0.0, 1.0)}), past_curves=[])
        with pytest.raises(ConfigError, match=r"stopping_error .*got 0"):
            EngineConfig(stopping_error=0)
