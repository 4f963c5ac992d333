"""SMAC over the rows of a table, put together from SMAC's own parts (Lindauer et al. 2022, version 2).

The parts are those of SMAC's facade for hyperparameter optimisation, with its values: costs scaled to the range of the
trials and taken the logarithm of; a random forest of ten trees that averages within leaves before the logarithm; the
expected improvement on the best cost that the forest predicts for a trial; and, with a chance of a fifth, a random
configuration instead. In a table only the pending rows can be evaluated, so the improvement of all of them is computed;
SMAC itself searches locally among 10,000 draws.

Two settings differ from the facade's: the forest is grown anew before every trial, not every eighth, and on one thread.
The initial design is the run's.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dre_jax.errors import import_extra
from dre_jax.methods.baselines.host_tables import best_row, seed
from dre_jax.methods.entries.entry import Entry


@dataclass(kw_only=True)
class SMAC:
    """A host method that stores the trials of its run; one object serves one run.

    Raises `MissingExtraError` without SMAC.
    """

    trees: int = 10
    """Number of trees of the forest."""
    random: float = 0.2
    """Chance of a random configuration."""
    _parts: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        import_extra("smac", "smac", "baselines")

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any) -> int:
        """Returns the index of the pending row with the largest expected improvement, or of a random row."""
        x, y, pending = np.asarray(X_obs), np.asarray(y_obs, np.float64).reshape(-1), np.asarray(X_pen)
        if self._parts is None:
            self._parts = _Parts(self.trees, self.random, x.shape[1])
        if self._parts.random_design.check(len(x)):
            return best_row(np.zeros(len(pending)))
        return best_row(self._parts.improvement(x, y, pending))


class _Parts:
    """SMAC's objects for one run."""

    def __init__(self, trees: int, random: float, n_columns: int) -> None:
        from ConfigSpace import ConfigurationSpace, Float
        from smac import Scenario
        from smac.facade import HyperparameterOptimizationFacade as Facade
        from smac.runhistory import RunHistory

        self._space = ConfigurationSpace()
        self._space.add([Float(f"{i:05d}", (0.0, 1.0)) for i in range(n_columns)])
        self._scenario = Scenario(self._space, deterministic=True, seed=seed())
        self._history = RunHistory()
        self._trees = trees
        self._improvement = Facade.get_acquisition_function(self._scenario)
        self.random_design = Facade.get_random_design(self._scenario, probability=random)

    def improvement(self, x: np.ndarray, y: np.ndarray, pending: np.ndarray) -> np.ndarray:
        """Returns the expected improvement of the cost at the pending rows; f64[n, D], f64[n], f64[m, D] -> f64[m]."""
        from smac.facade import HyperparameterOptimizationFacade as Facade

        self._tell(x, y)
        encoder = Facade.get_runhistory_encoder(self._scenario)
        encoder.runhistory = self._history
        encoded_trials, costs = encoder.transform()
        forest = _forest(self._scenario, self._trees, len(encoded_trials))
        forest.train(encoded_trials, costs)
        predicted_mean, _ = forest.predict_marginalized(encoded_trials)
        self._improvement.update(model=forest, eta=float(predicted_mean.min()), num_data=len(encoded_trials))
        # The public call does the same, but needs an object for every row first.
        return np.asarray(self._improvement._compute(np.clip(pending, 0.0, 1.0)), np.float64).reshape(-1)

    def _tell(self, x: np.ndarray, y: np.ndarray) -> None:
        from ConfigSpace import Configuration

        for i in range(len(self._history), len(x)):
            row = Configuration(self._space, vector=np.clip(x[i], 0.0, 1.0))
            # Each trial has a number of its own, so that all trials of equal rows count.
            self._history.add(row, cost=float(1.0 - y[i]), seed=i)


def _forest(scenario: Any, trees: int, n_rows: int) -> Any:
    """Returns an unfitted forest of the facade, on one thread and with room for as many leaves as there are rows.

    The facade offers neither. It makes room for a million leaves in every tree, which takes a second a trial.
    """
    from smac.model.random_forest.random_forest import RandomForest

    return RandomForest(
        scenario.configspace,
        n_trees=trees,
        ratio_features=1.0,
        min_samples_split=2,
        min_samples_leaf=1,
        max_leaf_nodes=max(n_rows, 2),
        bootstrapping=True,
        log_y=True,
        n_jobs=1,
        seed=scenario.seed,
    )


ENTRIES = (
    Entry(
        name="smac",
        summary="SMAC's random forest, expected improvement and random interleaving",
        paper="Lindauer et al. 2022",
        host=SMAC,
        library="smac",
        extra="baselines",
    ),
)
