"""What a method gets of the errors of values."""

import jax
import numpy as np
import pytest

from dre_jax.tuning import EngineConfig, Float, Optimizer
from dre_jax.tuning.engine.study_arrays import encode_study
from dre_jax.tuning.suggestion.ranking import method_params, rank_trials
from dre_jax.tuning.suggestion.record import excess_errors, study_record
from dre_jax.tuning.trials.encoding import encode_trials
from dre_jax.tuning.trials.trial import Trial


def test_the_least_variance_is_taken_off():
    errors, where = np.array([0.5, 1.3, 0.5, 0.1]), np.array([True, True, True, False])
    np.testing.assert_allclose(excess_errors(errors, where), [0.0, np.sqrt(1.3**2 - 0.5**2), 0.0, 0.0])
    np.testing.assert_array_equal(excess_errors(np.array([2.0]), np.array([False])), [2.0])


def test_each_of_several_objectives_has_errors_in_units_of_its_range():
    """The method of each objective reads them."""
    values, stderrs = np.random.default_rng(0).random((2, 5, 2)) * [1.0, 50.0]
    stderrs[3] = 0.0, 4.0
    engine = Optimizer({"x": Float(0.0, 1.0)}, directions={"a": "minimize", "b": "maximize"})._engine
    trials = [
        Trial(
            i,
            {"x": i / 4},
            "stopped",
            values=dict(zip("ab", value, strict=True)),
            stderrs=dict(zip("ab", error, strict=True)),
        )
        for i, (value, error) in enumerate(zip(values.tolist(), stderrs.tolist(), strict=True))
    ]
    study, config = encode_trials(engine._encoder, trials, ()), engine.study_config
    errors = engine._standard_errors(study.observations)
    np.testing.assert_array_equal(errors, stderrs)
    state = rank_trials(config, encode_study(study, engine.objectives, engine.config, errors, 0.0))
    record = study_record(config, state, 32)
    params = method_params(config, state, record, None)
    expected = (stderrs**2 - np.min(stderrs**2, axis=0)) / np.ptp(values, axis=0) ** 2
    np.testing.assert_allclose(params.noise_var[:, :5], expected.T, rtol=1e-9)
    assert not params.noise_var[:, 5:].any()
    key, history = jax.random.key(0), record.trials.history
    objectives, _ = jax.eval_shape(config.method.fit_history, params, history, key)
    assert [objective.history.noise_var.shape for objective in objectives] == [(32,), (32,)]
    objectives, _ = jax.eval_shape(config.method.fit_history, params._replace(noise_var=None), history, key)
    assert [objective.history.noise_var for objective in objectives] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gp-mixture", "gp"])
def test_errors_that_are_alike_change_no_suggestion(method):
    def suggestion(stderr):
        optimizer = Optimizer({"x": Float(0.0, 1.0)}, seed=0, config=EngineConfig(method=method))
        for x in np.linspace(0.0, 1.0, 9):
            optimizer.add({"x": x}, np.sin(9.0 * x), stderr=stderr)
        return optimizer.ask()["x"]

    assert suggestion(0.2) == pytest.approx(suggestion(None), abs=1e-4)
