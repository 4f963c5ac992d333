"""What finished trials count as."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from dre_jax.tuning.optuna.distributions import translation_of
from dre_jax.tuning.optuna.trials import TrialReader, read_trials, responses
from dre_jax.tuning.trials.objectives import objectives_of


def trial(value=None, *, reports=None, broken=None):
    pruned = reports is not None
    frozen = create_trial(
        state=TrialState.PRUNED if pruned else TrialState.COMPLETE,
        value=value,
        params={"x": 0.5},
        distributions={"x": FloatDistribution(0.0, 1.0)},
        intermediate_values=reports or {},
    )
    if broken is not None:
        frozen.set_constraint("c", broken)
    return frozen


def test_pruned_trials_lie_between_the_median_and_the_worst():
    """By how far they came, then by what they reported there; one without reports comes last."""
    complete = [trial(1.0), trial(2.0), trial(3.0), trial(10.0)]
    reports = {1: 0.0}, {1: 0.1, 5: 9.9}, {5: 0.5}, {}, {1: math.nan}
    values = responses([*complete, *(trial(reports=one) for one in reports)], maximise=False)[4:]
    assert np.argsort(-np.array(values), kind="stable").tolist() == [2, 1, 0, 4, 3]
    np.testing.assert_allclose(max(values), -2.5)  # the median
    np.testing.assert_allclose(min(values), -10.0)
    assert responses([trial(5.0), trial(reports={1: 0.0})], maximise=False)[1] < -5.0
    result = responses([trial(1.0), trial(5.0), trial(5.0), trial(reports={1: 9.0})], maximise=True)
    assert 1.0 <= result[3] < 5.0
    alone = responses([trial(reports={1: 0.0}), trial(reports={2: 0.0})], maximise=True)
    assert alone[0] < alone[1]
    assert np.isfinite(alone).all()


def test_infeasible_trials_keep_their_value():
    """Pruned ones lie between the median and the worst of those that break none."""
    trials = [trial(-100.0, broken=0.5), trial(1.0), trial(3.0, broken=-1.0), trial(reports={1: 3.0}, broken=0.0)]
    result = responses(trials, maximise=False)
    assert result == [100.0, -1.0, -3.0, -2.0]
    reader = TrialReader(translation_of({"x": FloatDistribution(0.0, 1.0)}), None)
    observed = read_trials(trials, reader, objectives_of())
    assert [trial.value for trial in observed] == [-100.0, 1.0, 3.0, 2.0]
    assert [trial.constraints for trial in observed] == [{"c": 0.5}, {}, {"c": -1.0}, {"c": 0.0}]


kinds = st.one_of(
    st.builds(trial, st.floats(allow_nan=False), broken=st.none() | st.floats(allow_nan=False)),
    st.builds(trial, reports=st.dictionaries(st.integers(0, 9), st.floats(), max_size=3), broken=st.none()),
)


@given(st.lists(kinds, max_size=8), st.booleans())
def test_any_trials_have_responses(trials, maximise):
    result = responses(trials, maximise=maximise)
    assert not np.isnan(result).any()
