"""The text of PROVENANCE.md."""

from __future__ import annotations

import platform

import numpy as np
import scipy
import sklearn

from .checks import summary
from .evaluate import SEED, Sizes, shared_rows
from .files import Results
from .scoring import FOLDS
from .spaces import Space
from .tasks import Problem

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


def space_table(results: Results, spaces: list[Space], sizes: Sizes) -> list[str]:
    lines = [
        "| space | columns | tasks train / validation / test | rows | largest share of the best value"
        " | fewest distinct values | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for space in spaces:
        figures = summary(results[space.name], shared_rows(space, sizes))
        counts = " / ".join(str(len(results[space.name][split])) for split in ("train", "validation", "test"))
        lines.append(
            f"| `{space.name}` | {len(space.columns())} | {counts} | {sizes.shared + sizes.fresh} "
            f"| {figures['best share']:.1%} | {figures['fewest distinct']:.0f} | {figures['seconds']:.0f} |"
        )
    return lines


def regret_table(results: Results, spaces: list[Space], sizes: Sizes) -> list[str]:
    keys = ("random 5", "random 10", "random 25", "one trial", "best average", "best shared")
    lines = ["| space | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|"]
    for space in spaces:
        figures = summary(results[space.name], shared_rows(space, sizes))
        lines.append(f"| `{space.name}` | " + " | ".join(f"{figures[key]:.3f}" for key in keys) + " |")
    return lines


def task_table(problems: dict[str, list[Problem]]) -> list[str]:
    lines = ["| split | task | rows | features | predicts |", "|---|---|---|---|---|"]
    for split, members in problems.items():
        for p in members:
            kind = f"{p.classes} classes" if p.classes else "a number"
            lines.append(f"| {split} | `{p.name}` | {p.features.shape[0]} | {p.features.shape[1]} | {kind} |")
    return lines


def provenance(results: Results, spaces: list[Space], problems: dict[str, list[Problem]], sizes: Sizes) -> str:
    count = sizes.shared + sizes.fresh
    text = INTRODUCTION.format(folds=FOLDS, rows=count, shared=sizes.shared, fresh=sizes.fresh, seed=SEED)
    seconds = sum(r.seconds for splits in results.values() for split in splits.values() for r in split.values())
    versions = (
        f"Made with scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}, in {seconds / 60:.0f} minutes of one {platform.machine()} core."
    )
    parts = [
        [text.rstrip(), "", versions],
        ["## Spaces", "", *space_table(results, spaces, sizes)],
        ["## How hard it is", "", MEANING.strip(), "", *regret_table(results, spaces, sizes)],
        ["## Tasks, the same in every space", "", *task_table(problems)],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"
