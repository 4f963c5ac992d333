"""Search spaces that do not ship: models are what configurations say, and what diverges has the lowest score."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed; it comes with the extra `test`")


@pytest.fixture
def script(part):
    return part("bundled.unseen")


@pytest.fixture
def problem(part):
    return next(one for one in part("bundled.tasks").problems()["test"] if not one.classes)


def test_a_response_by_hand(script, problem, part):
    unseen = script.SPACES["decision-tree"]
    stump = unseen.space.encode(
        {"max_depth": 1, "min_samples_split": 0.01, "min_samples_leaf": 0.01, "max_features": 1.0, "ccp_alpha": 1e-5}
        | {"splitter": "best"}
    )
    scoring, x, y = part("bundled.scoring"), problem.features, problem.target[:, 0]
    fold = np.empty(len(y), int)
    for i, (_, held) in enumerate(scoring.KFold(3, shuffle=True, random_state=0).split(x)):
        fold[held] = i
    error = baseline = 0.0
    for i in range(3):
        fit, held = fold != i, fold == i
        error += min_split_error(x[fit], y[fit], x[held], y[held])
        baseline += ((y[held] - y[fit].mean()) ** 2).sum()
    skill = 1.0 - error / baseline
    assert script.response(unseen, stump, problem) == pytest.approx(scoring.bend(skill), abs=1e-6)


def min_split_error(x, y, new, truth):
    """Squared error of the best stump, found by trying every threshold of every column."""
    best = np.inf, None
    for column in range(x.shape[1]):
        values = np.unique(x[:, column])
        for low, high in pairwise(values):
            threshold = low + (high - low) / 2
            left = x[:, column] <= threshold
            if min(left.sum(), (~left).sum()) < max(2, np.ceil(0.01 * len(y))):
                continue
            cost = ((y[left] - y[left].mean()) ** 2).sum() + ((y[~left] - y[~left].mean()) ** 2).sum()
            if cost < best[0] - 1e-9:
                best = cost, (column, threshold, y[left].mean(), y[~left].mean())
    column, threshold, left, right = best[1]
    return ((truth - np.where(new[:, column] <= threshold, left, right)) ** 2).sum()


def test_the_share_of_right_answers_by_hand(script, part):
    problem = next(one for one in part("bundled.tasks").problems()["validation"] if one.classes)
    unseen, scoring = script.SPACES["margins"], part("bundled.scoring")
    row = unseen.space.encode(part("bundled.spaces").sample(unseen.space, np.random.default_rng(3)))
    x, y, right = problem.features, problem.target[:, 0], 0
    for fit, held in scoring.StratifiedKFold(3, shuffle=True, random_state=0).split(x, y):
        model = unseen.make(unseen.space.decode(row), problem).fit(x[fit], y[fit])
        right += int((model.predict(x[held]) == y[held]).sum())
    assert script.response(unseen, row, problem) == pytest.approx(right / len(y), abs=1e-9)


def test_every_space_has_models_for_classes_and_for_numbers(script, part):
    problems = {one.classes > 0: one for one in part("bundled.tasks").problems()["validation"]}
    for unseen in script.SPACES.values():
        rng = np.random.default_rng(0)
        rows = [unseen.space.encode(part("bundled.spaces").sample(unseen.space, rng)) for _ in range(3)]
        found = np.array([[script.response(unseen, row, problem) for row in rows] for problem in problems.values()])
        assert np.all((found >= -0.25) & (found <= 1.0))
        assert len(np.unique(found)) > 2


def test_what_diverges_has_the_lowest_score(script, problem):
    unseen = script.SPACES["linear"]
    wild = {"scaler": "standard", "alpha": 1e-6, "l1_ratio": 0.0, "learning_rate": "constant", "eta0": 1.0}
    row = unseen.space.encode(wild | {"power_t": 0.1, "max_iter": 100, "average": "false"})
    assert script.response(unseen, row, problem) == pytest.approx(-0.25, abs=1e-6)
