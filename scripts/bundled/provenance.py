"""The text of PROVENANCE.md."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence

import numpy as np
import scipy
import sklearn

from .results import SEED, Result, Results, Sizes, shared_rows
from .scoring import FOLDS
from .spaces import SPACES
from .tasks import Array, Problem

SPLITS = ("train", "validation", "test")

INTRODUCTION = """# Where the bundled data come from

Made by `scripts/make_bundled_data.py`: scikit-learn models, cross-validated on data sets that scikit-learn carries
(iris, wine, breast cancer, digits, diabetes; its `sklearn/datasets/descr` gives their origin). Nothing was downloaded,
no label and no feature was generated. Linnerud is left out: 20 rows are too few to cross-validate.

**Tasks.** Sub-tasks of those data sets: some classes, some columns, some rows, or one column predicted from others.
Rows were split first, so no row serves two splits; iris serves only validation and wine only test. Tasks of one split
may share rows. Tasks are related, as past tasks are in practice, and no test task repeats a training task: digits of
other classes, other target columns, or (the diagnosis of breast cancer) other patients and other measurements.

**Response**, maximised: `s = 1 - S / S0` over the pooled out-of-fold predictions of {folds}-fold cross-validation. S is
the sum of squared errors of the predicted number (so s is R^2) or of the class probabilities (Brier skill score), S0
the same for the training folds' mean or class shares. Below 0 it is bent to `s / (1 - 4 s)`. A classifying SVM has no
probabilities: its out-of-fold decision values go through a logistic curve fitted on the other folds.

**Configurations.** {rows} a task: {shared} that all tasks of a space share and {fresh} drawn for it alone, uniform on
the encoded (log where flagged) scale, in random order. Columns are encoded as in HPO-B v3, and
`meta-dataset-descriptors.json` decodes them: `x = min + column * (max - min)`, then `exp(x) - 1e-4` where the name is
in `variables_to_apply_log`, rounded to a whole number for kind `integer`, else clipped to `min_before_tf` and
`max_before_tf`, because floating point may step over a bound. A variable with a `condition` is passed on only where
the named categorical has one of the levels; elsewhere its column is 0 and `<name>.na` is 1. Rows were rounded to 4
decimals *before* they were evaluated, so a stored row is exactly the configuration that gave its response.
A row that went through float32 wants rounding to 4 decimals first: sub-sample sizes are steps.
Names and levels are scikit-learn's arguments except:

- `scaler` in `svm` and `nearest-neighbours`, fitted in each fold: `minmax` MinMaxScaler, `standard` StandardScaler,
  `rank` QuantileTransformer(n_quantiles=30, output_distribution="normal");
- `projection`: `pca` adds PCA after the scaler, `n_components` is a share of the task's columns (rounded, at least 1);
- `splitter`: `best` RandomForest, `random` ExtraTrees; `early_stopping`: `off` means n_iter_no_change=None;
  `init`: `prior` means None.

Seeds: configurations {seed}, folds and models 0. `max_iter=20000` in `svm`. Predicted numbers are standardised first.
"""

MEANING = """
Mean normalised regret (0 = the task's best row, 1 = its worst) over the test tasks. *random t*: random search after t
trials, exact. *one trial*: a random shared configuration; *best average*: the shared configuration with the best mean
over the training tasks; *best shared*: the best shared configuration of each task.
"""


def provenance(results: Results, problems: dict[str, list[Problem]], sizes: Sizes) -> str:
    count = sizes.shared + sizes.fresh
    text = INTRODUCTION.format(folds=FOLDS, rows=count, shared=sizes.shared, fresh=sizes.fresh, seed=SEED)
    every = {name: [r for split in splits.values() for r in split.values()] for name, splits in results.items()}
    seconds = {name: sum(result.seconds for result in found) for name, found in every.items()}
    versions = (
        f"Made with scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}, in {sum(seconds.values()) / 60:.0f} minutes of one "
        f"{platform.machine()} core."
    )
    spaces = [
        [
            f"`{name}`",
            str(len(SPACES[name].columns)),
            " / ".join(str(len(splits[split])) for split in SPLITS),
            str(count),
            f"{max(result.best_share() for result in every[name]):.1%}",
            str(min(len(set(result.responses)) for result in every[name])),
            f"{seconds[name]:.0f}",
        ]
        for name, splits in results.items()
    ]
    counts = ("rows", "largest share of the best value", "fewest distinct values", "seconds")
    regrets = {name: hardness(splits, shared_rows(name, sizes)) for name, splits in results.items()}
    tasks = [
        [split, f"`{p.name}`", *map(str, p.features.shape), f"{p.classes} classes" if p.classes else "a number"]
        for split, members in problems.items()
        for p in members
    ]
    parts = [
        f"{text.rstrip()}\n\n{versions}",
        "## Spaces",
        _table(["space", "columns", f"tasks {' / '.join(SPLITS)}", *counts], spaces),
        "## How hard it is",
        MEANING.strip(),
        _table(
            ["space", *next(iter(regrets.values()))],
            [[f"`{name}`", *(f"{value:.3f}" for value in found.values())] for name, found in regrets.items()],
        ),
        "## Tasks, the same in every space",
        _table(["split", "task", "rows", "features", "predicts"], tasks),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [heads, *rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def hardness(splits: dict[str, dict[str, Result]], shared: list[list[float]]) -> dict[str, float]:
    """Regrets of one space over its test tasks; `shared` are the configurations that all tasks have."""
    test, train = (_shared_regrets(splits[split], shared) for split in ("test", "train"))
    found = splits["test"].values()
    return {
        **{
            f"random {t}": float(np.mean([random_search(result.responses, t) for result in found])) for t in (5, 10, 25)
        },
        "one trial": float(test.mean()),
        "best average": float(test[:, train.mean(axis=0).argmin()].mean()),
        "best shared": float(test.min(axis=1).mean()),
    }


def regret(responses: list[float]) -> Array:
    """(n,): 0 for the best row of the task, 1 for the worst."""
    y = np.asarray(responses)
    return np.asarray((y.max() - y) / (y.max() - y.min()))


def random_search(responses: list[float], trials: int) -> float:
    """Mean regret of random search without replacement, exact: the best of `trials` rows by rank."""
    alive, expected, values = 1.0, 0.0, np.sort(regret(responses))
    for position, value in enumerate(values):
        # the chance that no row before this one was drawn, times that this one is
        hit = min(1.0, trials / (len(values) - position))
        expected += alive * hit * value
        alive *= 1.0 - hit
    return float(expected)


def _shared_regrets(results: dict[str, Result], shared: list[list[float]]) -> Array:
    """(tasks, shared): the regret of every shared configuration on every task."""
    return np.array([regret(r.responses)[[r.rows.index(row) for row in shared]] for r in results.values()])
