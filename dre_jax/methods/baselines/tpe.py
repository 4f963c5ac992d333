"""Tree-structured Parzen estimator over the rows of a table, by Optuna's own sampler (Bergstra et al. 2011).

The better trials, a tenth of them, make a density l, all others a density g; both are mixtures of normals at the
trials, and of a broad one. Optuna draws 24 points from l and evaluates that with the largest log l(x) - log g(x). In a
table only the pending rows can be evaluated, so they replace the 24 points. The sampler splits the trials and builds
its estimators as usual, and its own acquisition function values every row.

By default each column has densities of its own, and Optuna takes the best point of each column. A row's value is then
the sum over columns, which is highest where every column's is. With `multivariate` the densities are joint.
"""

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dre_jax.errors import import_extra
from dre_jax.methods.baselines.host_tables import best_row, seed
from dre_jax.methods.entries.entry import Entry
from dre_jax.runtime.optuna_logs import optuna_logs_at

_BLOCK = 4096  # rows at once: an estimator makes arrays of rows times trials


@dataclass(kw_only=True)
class TPE:
    """A host method that stores the trials of its run; one object serves one run.

    Raises `MissingExtraError` without Optuna.
    """

    multivariate: bool = False
    """Makes the densities joint over columns."""
    startup: int = 10
    """Number of trials, including the design, up to which rows are drawn at random; Optuna's default."""
    _study: Any = field(default=None, repr=False)
    _n_shown: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        import_extra("optuna", "optuna", "optuna")

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any) -> int:
        """Returns the index of the pending row with the largest log l(x) - log g(x)."""
        return best_row(self.values(np.asarray(X_obs), np.asarray(y_obs, np.float64).reshape(-1), np.asarray(X_pen)))

    def values(self, x: np.ndarray, y: np.ndarray, pending: np.ndarray) -> np.ndarray:
        """Returns the acquisition function at the pending rows; 0 throughout while there are too few trials.

        All trials so far, f64[n, D] and f64[n], higher is better, and f64[m, D] -> f64[m].
        """
        import optuna

        with _quiet():
            if self._study is None:
                sampler = _row_sampler()(multivariate=self.multivariate, n_startup_trials=self.startup, seed=seed())
                self._study = optuna.create_study(direction="maximize", sampler=sampler)
            columns: dict[str, Any] = {
                f"{i:05d}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(x.shape[1])
            }
            for row, response in zip(x[self._n_shown :], y[self._n_shown :], strict=True):
                self._study.add_trial(
                    optuna.trial.create_trial(params=_params(columns, row), distributions=columns, value=response)
                )
            self._n_shown = len(x)
            sampler = self._study.sampler
            sampler.rows = dict(zip(columns, np.clip(pending, 0.0, 1.0).T, strict=True))
            sampler.values = np.zeros(len(pending))
            trial = self._study.ask()
            for name in columns:
                trial.suggest_float(name, 0.0, 1.0)
            # The suggested point is not the one that will be evaluated; failed trials have no effect.
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        return sampler.values


@dataclass(kw_only=True)
class MultivariateTPE(TPE):
    """The tree-structured Parzen estimator with densities that are joint over columns."""

    multivariate: bool = True


def _params(columns: dict[str, Any], row: np.ndarray) -> dict[str, float]:
    return {name: float(value) for name, value in zip(columns, np.clip(row, 0.0, 1.0), strict=True)}


def _row_sampler() -> Any:
    """Returns the class of Optuna's sampler that also stores its acquisition values of rows."""
    from optuna.samplers import TPESampler

    class RowSampler(TPESampler):
        rows: dict[str, np.ndarray]
        values: np.ndarray

        def _compute_acquisition_func(self, samples: dict[str, np.ndarray], *estimators: Any) -> np.ndarray:
            for start in range(0, len(self.values), _BLOCK):
                block = slice(start, start + _BLOCK)
                rows = {name: self.rows[name][block] for name in samples}
                self.values[block] += super()._compute_acquisition_func(rows, *estimators)
            return super()._compute_acquisition_func(samples, *estimators)

    return RowSampler


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences Optuna, which logs every study and warns of its experimental features."""
    with optuna_logs_at("ERROR"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


ENTRIES = (
    Entry(
        name="tpe",
        summary="tree-structured Parzen estimator, each column apart",
        paper="Bergstra, Bardenet, Bengio and Kegl 2011",
        host=TPE,
        library="optuna",
        extra="optuna",
    ),
    Entry(
        name="tpe-multivariate",
        summary="tree-structured Parzen estimator, columns together",
        paper="Falkner, Klein and Hutter 2018",
        host=MultivariateTPE,
        library="optuna",
        extra="optuna",
    ),
)
