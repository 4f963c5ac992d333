"""Surrogates that ship: evaluations of models, and first suggestions."""

import numpy as np
import pytest

from dre_jax.tuning.pretrained import FAMILIES

pytest.importorskip("sklearn", reason="scikit-learn is not installed; it comes with the extra `test`")


@pytest.fixture
def parts(part):
    return part("bundled.pretrained")


def problem(parts, *, classes):
    return next(one for one in parts.all_problems() if bool(one.classes) == classes)


def test_metrics_of_numbers_by_hand(parts, part):
    one = problem(parts, classes=False)
    model = parts.model(FAMILIES["ridge"], {"alpha": 3.0, "fit_intercept": False}, one)
    x, y = one.features, one.target[:, 0]
    predicted = np.empty(len(y))
    for fit, held in part("bundled.scoring").parts_of(one):
        weights = np.linalg.solve(x[fit].T @ x[fit] + 3.0 * np.eye(x.shape[1]), x[fit].T @ y[fit])
        predicted[held] = x[held] @ weights
    result = parts.metrics_of(model, one)
    assert result["r2"] == pytest.approx(1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))
    assert result["mae"] == pytest.approx(np.mean(np.abs(y - predicted)))


def test_metrics_of_classes_by_hand(parts, part):
    one = problem(parts, classes=True)
    model = parts.model(FAMILIES["kneighbors"], {"n_neighbors": 7}, one)
    x, y = one.features, one.target[:, 0]
    share = np.empty(len(y))  # of the second class among the neighbours
    for fit, held in part("bundled.scoring").parts_of(one):
        distances = ((x[held][:, None] - x[fit][None]) ** 2).sum(axis=2)
        share[held] = y[fit][np.argsort(distances, axis=1, kind="stable")[:, :7]].mean(axis=1)
    result = parts.metrics_of(model, one)
    assert result["error"] == pytest.approx(np.mean((share > 0.5) != y))
    pairs = share[y == 1][:, None] - share[y == 0][None]
    assert result["auc"] == pytest.approx(np.mean((pairs > 0) + 0.5 * (pairs == 0)))
    right = np.clip(np.where(y == 1, share, 1 - share), np.finfo(float).eps, 1)
    assert result["log_loss"] == pytest.approx(-np.mean(np.log(right)))


def test_the_first_suggestion_beats_the_defaults_most_often(parts):
    gain = {"wine-a": np.array([0.9, 0.1, -1.0]), "iris-a": np.array([-1.0, 0.1, -1.0])}
    gain |= {f"wine-{i}": np.array([0.9, -1.0, -1.0]) for i in range(9)}
    assert parts.most_often_better(gain) == 1  # wine counts once: -0.4 + 0.5 against 0.5 - 0.5
    assert parts.most_often_better({name: one for name, one in gain.items() if name != "iris-a"}) == 0
