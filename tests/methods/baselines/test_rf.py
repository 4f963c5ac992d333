"""The random forest, against a loop over scikit-learn's own trees."""

import numpy as np
import pytest

from dre_jax.methods.baselines.rf import RandomForest, predict


@pytest.mark.parametrize("method", [RandomForest(), RandomForest(trees=7, columns=5 / 6, split=3, leaf=3)])
def test_mean_and_variance_are_those_of_the_leaves(method):
    rng = np.random.default_rng(1)
    x, y, new = rng.random((40, 5)), rng.random(40), rng.random((15, 5))
    np.random.seed(3)  # noqa: NPY002
    forest = method.grow(x, y)
    assert len(forest.estimators_) == method.trees
    mean, variance = predict(forest, new)
    np.testing.assert_allclose(mean, forest.predict(new), rtol=1e-12)
    for i, row in enumerate(new):
        # What a draw of a tree, then of a trial of its leaf, gives: its mean and variance.
        draws, weights = [], []
        for tree, sample in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            inside = tree.apply(x[sample].astype(np.float32)) == tree.apply(row[None].astype(np.float32))
            draws.append(y[sample][inside])
            weights.append(np.full(inside.sum(), 1 / inside.sum() / method.trees))
        drawn, weight = np.concatenate(draws), np.concatenate(weights)
        expected = np.sum(weight * drawn)
        assert mean[i] == pytest.approx(expected, rel=1e-9)
        assert variance[i] == pytest.approx(np.sum(weight * (drawn - expected) ** 2), rel=1e-6, abs=1e-12)
