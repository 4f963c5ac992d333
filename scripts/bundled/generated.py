"""Problems from scikit-learn's generators, and whole data sets, for the tables of `scripts/make_pretrained.py`."""

from typing import Any

import numpy as np
from sklearn import datasets

from .tasks import Problem, make, problems

ROWS = 240
_SEED = 11
CLASSES: dict[str, tuple[Any, dict[str, float]]] = {
    "classification-sparse": (datasets.make_classification, {"n_features": 20, "n_informative": 4, "flip_y": 0.1}),
    "classification-dense": (
        datasets.make_classification,
        {"n_features": 10, "n_informative": 8, "n_redundant": 0, "n_classes": 3},
    ),
    "classification-noisy": (datasets.make_classification, {"n_features": 8, "flip_y": 0.3}),
    "moons": (datasets.make_moons, {"noise": 0.3}),
    "moons-clear": (datasets.make_moons, {"noise": 0.15}),
    "quantiles": (datasets.make_gaussian_quantiles, {"n_features": 5, "n_classes": 3}),
    "hastie": (datasets.make_hastie_10_2, {}),
}
NUMBERS: dict[str, tuple[Any, dict[str, float]]] = {  # noise of the papers' signal-to-noise ratios, roughly
    "friedman1": (datasets.make_friedman1, {"noise": 1.0}),
    "friedman2": (datasets.make_friedman2, {"noise": 125.0}),
    "friedman3": (datasets.make_friedman3, {"noise": 0.1}),
    "regression-sparse": (datasets.make_regression, {"n_features": 40, "n_informative": 5, "noise": 30.0}),
    "regression-dense": (datasets.make_regression, {"n_features": 15, "n_informative": 15, "noise": 80.0}),
    "uncorrelated": (datasets.make_sparse_uncorrelated, {}),
}


def whole_problems() -> list[Problem]:
    """The data sets of scikit-learn as they are loaded, of at most `ROWS` rows drawn at random."""
    whole = [
        _whole(name, classes=name != "diabetes") for name in ("iris", "wine", "breast_cancer", "digits", "diabetes")
    ]
    sugar = datasets.load_diabetes()
    rows = np.random.default_rng(_SEED).choice(len(sugar.data), ROWS, replace=False)
    high = sugar.target[rows] > np.median(sugar.target)
    return [*whole, make("diabetes-whole-high", sugar.data[rows], high, classes=True)]


def _whole(source: str, *, classes: bool) -> Problem:
    bunch = getattr(datasets, f"load_{source}")()
    rows = np.random.default_rng(_SEED).permutation(len(bunch.data))[:ROWS]
    return make(f"{source.removeprefix('breast_')}-whole", bunch.data[rows], bunch.target[rows], classes=classes)


def generated_problems() -> list[Problem]:
    """Problems of generators, whose names start with that of their generator."""
    return [
        make(name, *generate(n_samples=ROWS, random_state=_SEED, **options), classes=generators is CLASSES)
        for generators in (CLASSES, NUMBERS)
        for name, (generate, options) in generators.items()
    ]


def source_of(name: str) -> str:
    """The data set or generator that a problem comes from: the part of its name before the first hyphen.

    >>> source_of("cancer-worst-symmetry"), source_of("friedman2")
    ('cancer', 'friedman')
    """
    return name.partition("-")[0].rstrip("0123456789")


def all_problems() -> list[Problem]:
    """All problems: those of the bundled data, whole data sets, and generated ones."""
    bundled_problems = [problem for split in problems().values() for problem in split]
    digits = [problem for problem in bundled_problems if problem.name.startswith("digits")]
    others = [*digits[::2], *(problem for problem in bundled_problems if not problem.name.startswith("digits"))]
    return [*others, *whole_problems(), *generated_problems()]
