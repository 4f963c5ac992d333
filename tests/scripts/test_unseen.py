"""Search spaces that do not ship: models are what configurations say, and what diverges has the lowest score."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed; it comes with the extra `test`")


@pytest.fixture
def script(part):
    return part("bundled.unseen")


@pytest.mark.parametrize("name", ["margins", "decision-tree"])
def test_a_response_by_hand(name, script, part):
    """The share of right answers; of numbers, the share of the squared error of the mean that the model explains."""
    has_classes = name == "margins"
    problem = next(one for one in part("bundled.tasks").problems()["validation"] if (one.classes > 0) == has_classes)
    unseen, scoring = script.SPACES[name], part("bundled.scoring")
    row = unseen.space.encode(part("bundled.spaces").sample(unseen.space, np.random.default_rng(3)))
    x, y = problem.features, problem.target[:, 0]
    predicted, mean = np.empty((2, len(y)))
    folds = (scoring.StratifiedKFold if has_classes else scoring.KFold)(3, shuffle=True, random_state=0)
    for fit, held in folds.split(x, y):
        predicted[held] = unseen.make(unseen.space.decode(row), problem).fit(x[fit], y[fit]).predict(x[held])
        mean[held] = y[fit].mean()
    explained = scoring.bend(1.0 - ((y - predicted) ** 2).sum() / ((y - mean) ** 2).sum())
    expected = np.mean(predicted == y) if has_classes else explained
    assert script.response(unseen, row, problem) == pytest.approx(expected, abs=1e-6)


def test_every_space_has_models_for_classes_and_for_numbers(script, part):
    problems = {one.classes > 0: one for one in part("bundled.tasks").problems()["validation"]}
    for unseen in script.SPACES.values():
        rng = np.random.default_rng(0)
        rows = [unseen.space.encode(part("bundled.spaces").sample(unseen.space, rng)) for _ in range(3)]
        result = np.array([[script.response(unseen, row, problem) for row in rows] for problem in problems.values()])
        assert np.all((result >= -0.25) & (result <= 1.0))
        assert len(np.unique(result)) > 2


def test_what_diverges_has_the_lowest_score(script, part):
    problem = next(one for one in part("bundled.tasks").problems()["test"] if not one.classes)
    unseen = script.SPACES["linear"]
    wild = {"scaler": "standard", "alpha": 1e-6, "l1_ratio": 0.0, "learning_rate": "constant", "eta0": 1.0}
    row = unseen.space.encode(wild | {"power_t": 0.1, "max_iter": 100, "average": "false"})
    assert script.response(unseen, row, problem) == pytest.approx(-0.25, abs=1e-6)
