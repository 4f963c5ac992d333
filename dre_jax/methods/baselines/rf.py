"""Random forest with expected improvement: SMAC's surrogate (Hutter, Hoos and Leyton-Brown 2011) by scikit-learn.

Each tree t, grown on a bootstrap sample of the history, gives a row the mean m_t and the variance v_t of the responses
in its leaf. Over T trees, by the law of total variance,

    mean = sum_t m_t / T,     variance = sum_t (v_t + m_t^2) / T - mean^2,

and the row with the largest expected improvement is evaluated next.

The values are those of SMAC's facade for hyperparameter optimisation: ten trees that grow until every trial has its own
leaf, random thresholds between the trials (scikit-learn's extra trees), and the improvement on the best response that
the forest predicts for a trial. The textbook's choices, thresholds half way between trials and the best observed
response, did worse on validation tasks. On smooth functions, such thresholds did worse than random search, because all
trees agree around the best trial. `smac` also has logarithms of costs and random interleaving.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dre_jax.errors import import_extra
from dre_jax.methods.baselines.host_tables import best_row, seed
from dre_jax.methods.entries.entry import Entry
from dre_jax.search.acquisition import log_expected_improvement


@dataclass(frozen=True, kw_only=True)
class RandomForest:
    """A host method. Raises `MissingExtraError` without scikit-learn."""

    trees: int = 10
    """T."""
    columns: float = 1.0
    """Share of the columns that a split may choose from."""
    split: int = 2
    """Trials that a node needs to be split."""
    leaf: int = 1
    """Trials that a leaf holds at least."""

    def __post_init__(self) -> None:
        import_extra("sklearn", "scikit-learn", "baselines")

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any) -> int:
        """Returns the index of the pending row with the largest expected improvement."""
        x = np.asarray(X_obs)
        forest = self.grow(x, np.asarray(y_obs, np.float64).reshape(-1))
        target = float(predict(forest, x)[0].max())
        mean, variance = predict(forest, np.asarray(X_pen))
        # In thousandths: deviations count as at least 1e-9, and those of a forest may be smaller.
        cost, deviation = 1e3 * (target - mean), 1e3 * np.sqrt(variance)
        return best_row(log_expected_improvement(cost, deviation, 0.0))

    def grow(self, x: np.ndarray, y: np.ndarray) -> Any:
        """Fits scikit-learn's forest to f64[n, D] and f64[n]."""
        from sklearn.ensemble import ExtraTreesRegressor

        forest = ExtraTreesRegressor(
            n_estimators=self.trees,
            max_features=self.columns,
            min_samples_split=self.split,
            min_samples_leaf=self.leaf,
            bootstrap=True,
            random_state=seed(),
        )
        return forest.fit(x, y)


def predict(forest: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean and variance of the response over trees and leaves of a forest; f64[m, D] -> two f64[m]."""
    leaves = forest.apply(x)  # i64[m, T]
    trees = [tree.tree_ for tree in forest.estimators_]
    mean = np.stack([tree.value[leaves[:, t], 0, 0] for t, tree in enumerate(trees)])
    within = np.stack([tree.impurity[leaves[:, t]] for t, tree in enumerate(trees)])
    # Scikit-learn takes the difference of two sums, which falls below zero by a rounding where responses are equal.
    return mean.mean(axis=0), np.maximum(within, 0.0).mean(axis=0) + mean.var(axis=0)


ENTRIES = (
    Entry(
        name="rf",
        summary="random forest with the variance over trees and within leaves, expected improvement",
        paper="Hutter, Hoos and Leyton-Brown 2011",
        host=RandomForest,
        library="scikit-learn",
        extra="baselines",
    ),
)
