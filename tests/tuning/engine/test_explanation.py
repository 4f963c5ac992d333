"""Why trials have their configurations, compared with what the study did."""

import pytest

from dre_jax import Float, Optimizer, Space, Surrogate, past_of
from dre_jax.errors import DataError
from dre_jax.tuning import Fidelity
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.engine.explanation import ExpectedValue, Explanation
from dre_jax.tuning.trials.trial import Trial
from tests.error_messages import raises_line

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0, default=0.5)})


@pytest.fixture(scope="module")
def study():
    """A study that records its suggestions."""
    suggestions = []
    propose = Engine.propose

    def record(self, trials, **options):
        suggestions.append(propose(self, trials, **options))
        return suggestions[-1]

    optimizer = Optimizer(SPACE, seed=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "propose", record)
        optimizer.optimize(lambda trial: (trial["x"] - 0.3) ** 2 + trial["y"], 9)
    return optimizer, suggestions


@pytest.mark.slow
def test_explanations_repeat_what_the_study_suggested(study):
    optimizer, suggestions = study
    explanations = [optimizer.explain(trial) for trial in optimizer.trials]
    assert [one.origin for one in explanations] == ["initial"] * 4 + ["method"] * 5
    for explanation, suggestion in zip(explanations, suggestions, strict=True):
        assert explanation.trial.params == suggestion.params
        assert explanation.improvement == suggestion.improvement


def test_the_expected_value_is_predicted_by_earlier_trials_alone(study):
    optimizer, _ = study
    earlier = Optimizer(SPACE, seed=3)
    for trial in optimizer.trials[:-1]:
        earlier.add(trial.params, trial.value)
    prediction = earlier.predict([optimizer.trials[-1].params])
    expected = optimizer.explain(8).expected_values["value"]
    assert expected == pytest.approx(prediction.quantiles[:, 0].tolist(), rel=1e-3)
    assert "value" not in optimizer.explain(1).expected_values  # two trials are needed


def test_a_configuration_of_the_caller_is_given(study):
    optimizer, _ = study
    longer = Optimizer(SPACE, seed=3)
    for trial in optimizer.trials:
        longer.add(trial.params, trial.value)
    longer.add({"x": 0.75, "y": 0.125}, 1.0)
    explanation = longer.explain(9)
    assert (explanation.origin, explanation.improvement, explanation.past_weight) == ("given", None, None)
    assert str(explanation).startswith("trial 9 was given by the caller")


def test_equal_values_fill_the_space():
    optimizer = Optimizer({"x": Float(0.0, 1.0)}, seed=0)
    optimizer.optimize(lambda trial: 1.0, 8)
    assert optimizer.explain(7).origin == "space-filling"
    assert optimizer.explain(7).expected_values == {}


@pytest.mark.slow
def test_past_studies_are_compared_with_earlier_trials():
    def search(sign):
        rows = [{"x": i / 11, "y": (7 * i % 12) / 11} for i in range(12)]
        trials = Optimizer(SPACE)
        for row in rows:
            trials.add(row, sign * (row["x"] - 0.3) ** 2)
        return trials

    past = past_of(SPACE, {"same": search(1), "reversed": search(-1)}, direction="minimize")
    optimizer = Optimizer(SPACE, Surrogate.fit(past, method="gcp", settings={"prior.steps": 5}))
    optimizer.optimize(lambda trial: (trial["x"] - 0.3) ** 2, 8)
    (sources,) = optimizer.explain(7).sources.values()
    assert {one.name: one.helped for one in sources.studies} == {"same": True, "reversed": False}
    assert optimizer.explain(0).origin == "initial"
    assert "same        " in str(optimizer.explain(7))


def test_a_resumed_trial_is_explained_by_its_rank():
    """A new one as without a fidelity, and expected values are final ones."""

    def search(n):
        optimizer = Optimizer(SPACE, fidelity=Fidelity("epochs", 1, 4), seed=3)
        for _ in range(n):
            trial = optimizer.ask()
            optimizer.tell(trial, (trial["x"] - 0.3) ** 2 + trial["y"] - 0.1 * trial.budget)
        return optimizer

    optimizer = search(14)
    resumed = [trial for trial in optimizer.trials if trial.resumes is not None]
    assert len(resumed) > 1
    for trial in resumed:
        explanation, before = optimizer.explain(trial), optimizer.trials[trial.resumes]
        rivals = [other.value for other in optimizer.trials[: trial.number] if other.budget == before.budget]
        rank = 1 + sum(value < before.value for value in rivals)
        assert (explanation.origin, explanation.improvement) == ("resumed", None)
        assert explanation.standing == (before.number, before.budget, rank, len(rivals))
        first_line = str(explanation).splitlines()[0]
        ranked = f"whose value at budget {before.budget} ranked {rank} of {len(rivals)}"
        assert first_line == f"trial {trial.number} resumes trial {before.number}, {ranked}"
    new = [optimizer.explain(trial).origin for trial in optimizer.trials if trial.resumes is None]
    assert new == ["initial"] * 4 + ["method"] * (len(new) - 4)
    prediction = search(resumed[-1].number).predict([resumed[-1].params])  # of the final value
    expected = optimizer.explain(resumed[-1]).expected_values["value"]
    assert expected == pytest.approx(prediction.quantiles[:, 0].tolist(), rel=1e-3)


def test_what_has_no_explanation():
    with raises_line(DataError, "one of the 0 of this study"):
        Optimizer(SPACE).explain(0)


def test_an_explanation_of_several_objectives_names_them():
    values = {"error": ExpectedValue(0.1, 0.2, 0.3), "latency": ExpectedValue(1.0, 2.0, 3.0)}
    lines = str(Explanation(Trial(4, {"x": 0.5}), "method", expected_values=values)).splitlines()
    assert lines[1:] == [
        "expected value of error: 0.2, and with 90 % probability between 0.1 and 0.3",
        "expected value of latency: 2, and with 90 % probability between 1 and 3",
    ]
