"""The pruner in Optuna's studies. Optuna has no suite of cases for pruners; these hold what its interface promises."""

import pickle

import numpy as np
import optuna
import pytest

from dre_jax.errors import ConfigError
from dre_jax.tuning import Float, PastCurves, Space, Surrogate
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.optuna import DREPruner
from dre_jax.tuning.optuna.distributions import translation_of
from dre_jax.tuning.optuna.trials import POSTERIOR, TrialReader, read_trials, responses
from dre_jax.tuning.trials.objectives import objectives_of
from tests.known_methods import NEAREST

PRUNED, COMPLETE = optuna.trial.TrialState.PRUNED, optuna.trial.TrialState.COMPLETE


def objective(trial, sign=1):
    x = trial.suggest_float("x", -1.0, 1.0)
    for step in range(12):
        trial.report(sign * (abs(x) + np.exp(-step / 3)), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return sign * abs(x)


def run(pruner, sign=1, n_trials=25):
    direction = "minimize" if sign == 1 else "maximize"
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=pruner, direction=direction)
    study.optimize(lambda trial: objective(trial, sign), n_trials)
    return study


@pytest.fixture(scope="module")
def study():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return run(DREPruner())


def states(study):
    return [(trial.state, len(trial.intermediate_values)) for trial in study.trials]


def test_pruned_trials_have_posteriors(study):
    pruned = study.get_trials(states=[PRUNED])
    assert len(pruned) > 5
    for trial in pruned:
        mean, deviation = trial.system_attrs[POSTERIOR]
        assert mean == pytest.approx(abs(trial.params["x"]), abs=max(0.1, 3 * deviation))
    values = responses(study.trials, maximise=False)
    assert [-value for value in values if value is not None] == [
        trial.value if trial.state == COMPLETE else trial.system_attrs[POSTERIOR][0] for trial in study.trials
    ]


def test_standard_errors_of_posteriors_reach_methods_that_use_them_alone(study):
    space = Space({"x": Float(-1.0, 1.0)})
    trials = read_trials(study.trials, TrialReader(translation_of(space), study._storage), objectives_of())
    errors = [trial.system_attrs.get(POSTERIOR, (0.0, 0.0))[1] for trial in study.trials]
    assert [trial.stderr or 0.0 for trial in trials] == errors
    for surrogate in (None, Surrogate(space, "nearest", NEAREST, None)):
        engine = Engine(space, objectives_of(), surrogate)
        known_errors = engine._standard_errors(trials).tolist()
        assert known_errors == [[error if surrogate is None else 0.0] for error in errors]


def test_state_is_the_study_alone(study):
    """A direction turned, a pickled pruner and one used in another study before make no difference."""
    used = DREPruner()
    run(used, n_trials=12)
    for other in (run(DREPruner(), -1), run(pickle.loads(pickle.dumps(used))), run(used)):
        assert states(other) == states(study)


def test_past_studies_begin_earlier(study):
    complete = run(optuna.pruners.NopPruner())
    past = PastCurves.from_studies([complete, study])
    assert len(past) == 2
    assert [len(curves) for curves in past.tasks.values()] == [25, len(study.get_trials(states=[COMPLETE]))]
    assert next(n for n, (state, _) in enumerate(states(run(DREPruner(past)))) if state == PRUNED) < 6


def test_never_prunes_without_evidence():
    assert all(state == COMPLETE for state, _ in states(run(DREPruner(), n_trials=6)))
    study = optuna.create_study(pruner=DREPruner())
    trial = study.ask()
    assert not trial.should_prune()
    trial.report(float("nan"), 1)
    assert not trial.should_prune()
    with pytest.raises(ConfigError, match="error must be a share between 0 and 1, but got 1"):
        DREPruner(error=1)
