"""The sub-tasks: real rows, columns and labels of data sets that scikit-learn carries, nothing generated.

Rows are split before tasks are made, so that no row of a data set serves two splits:

- train: digits of classes 0, 1, 2, 3, 5; part A of breast cancer (256 rows) and of diabetes (199 rows);
- validation: iris; digits of classes 4, 7; part C of breast cancer (125 rows) and of diabetes (97 rows);
- test: wine; digits of classes 6, 8, 9; part B of breast cancer (188 rows) and of diabetes (146 rows).

Iris and wine are data sets that no training task has seen. Where a data set serves several splits, the column to be
predicted differs too; only the diagnosis in breast cancer returns, from other rows and other measurements.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

Array = NDArray[np.float64]
PARTS = {"train": (0.0, 0.45), "test": (0.45, 0.78), "validation": (0.78, 1.0)}
PART_SEED = 20240607


@dataclass(frozen=True)
class Problem:
    """One supervised task. `target` is (n, 1): class numbers from 0 when `classes` > 0, else a standardised number."""

    name: str
    features: Array
    target: Array
    classes: int


def make(name: str, features: Array, target: Array, *, classes: bool) -> Problem:
    if classes:
        values, codes = np.unique(target, return_inverse=True)
        return Problem(name, features, codes.reshape(-1, 1).astype(float), len(values))
    return Problem(name, features, ((target - target.mean()) / target.std()).reshape(-1, 1), 0)


def part_rows(count: int, split: str) -> NDArray[np.int64]:
    """The rows of one split: a fixed shuffle of all rows, cut in three."""
    low, high = PARTS[split]
    order = np.random.default_rng(PART_SEED).permutation(count)
    return np.sort(order[round(low * count) : round(high * count)])


@cache
def table(source: str, split: str | None) -> tuple[Array, Array, tuple[str, ...]]:
    """(columns, target, column names) of a data set, all of it or the rows of one split."""
    bunch = getattr(datasets, f"load_{source}")()
    rows = slice(None) if split is None else part_rows(len(bunch.data), split)
    return (
        np.asarray(bunch.data, float)[rows],
        np.asarray(bunch.target, float)[rows],
        tuple(map(str, bunch.feature_names)),
    )


def column_task(
    name: str, source: str, split: str | None, target: str, inputs: str, *, classes: bool = False
) -> Problem:
    """Predict one column (or `target`, the data set's own) from others.

    `inputs` is a comma list of substrings of column names; `!` in front drops what earlier ones chose. The predicted
    column is never an input.
    """
    columns, own_target, names = table(source, split)
    selected_columns: list[int] = []
    for term in inputs.split(","):
        hits = [i for i, column in enumerate(names) if term.lstrip("!") in column and column != target]
        selected_columns = [i for i in selected_columns if i not in hits] + ([] if term.startswith("!") else hits)
    y = own_target if target == "target" else columns[:, names.index(target)]
    return make(name, columns[:, selected_columns], y, classes=classes)


def class_rows(name: str, source: str, classes: tuple[int, ...], inputs: tuple[str, ...]) -> Problem:
    """Tell some classes of a whole data set apart by some of its columns."""
    columns, labels, names = table(source, None)
    rows = np.isin(labels, classes)
    return make(name, columns[rows][:, [names.index(i) for i in inputs]], labels[rows], classes=True)


def digit_rows(classes: tuple[int, ...], per_class: int) -> tuple[Array, Array]:
    """8 x 8 images and labels: the first images of each class."""
    bunch = datasets.load_digits()
    rows = np.sort(np.concatenate([np.flatnonzero(bunch.target == c)[:per_class] for c in classes]))
    return np.asarray(bunch.images, float)[rows], np.asarray(bunch.target, float)[rows]


def digits(classes: tuple[int, ...], rows: slice, columns: slice, per_class: int) -> Problem:
    """Tell digits apart by part of the image: the pixels of these rows and columns."""
    images, labels = digit_rows(classes, per_class)
    name = f"digits-{'v'.join(map(str, classes))}-r{_range(rows)}-c{_range(columns)}"
    return make(name, images[:, rows, columns].reshape(len(images), -1), labels, classes=True)


def ink(digit: int, rows: slice, pixels: tuple[slice, slice]) -> Problem:
    """Predict how much ink one part of a digit's image has from the pixels of some of its rows."""
    images, _ = digit_rows((digit,), 150)
    name = f"digits-{digit}-ink-r{_range(pixels[0])}-c{_range(pixels[1])}-from-r{_range(rows)}"
    return make(name, images[:, rows].reshape(len(images), -1), images[:, *pixels].sum(axis=(1, 2)), classes=False)


def _range(part: slice) -> str:
    step = "" if part.step is None else f"by{part.step}"
    return f"{part.start or 0}{(part.stop or 8) - 1}{step}"


def train_problems() -> list[Problem]:
    cancer, sugar, every = "breast_cancer", "diabetes", slice(None)
    return [
        digits((1, 2), slice(0, 2), every, 60),
        digits((3, 5), slice(4, 8), every, 70),
        digits((2, 3), every, slice(0, 3), 60),
        digits((1, 5), slice(3, 5), slice(2, 6), 60),
        digits((0, 1, 2, 3, 5), slice(0, 8, 2), slice(1, 8, 3), 40),
        digits((1, 2, 3), slice(6, 8), every, 50),
        ink(3, slice(0, 4), (slice(4, 8), slice(0, 8))),
        ink(0, slice(0, 3), (slice(5, 8), slice(0, 4))),
        ink(2, slice(4, 8), (slice(2, 4), slice(0, 4))),
        column_task("cancer-diagnosis-by-shape", cancer, "train", "target",
                    "mean smoothness,mean symmetry,mean fractal,mean texture", classes=True),
        column_task("cancer-diagnosis-by-error", cancer, "train", "target",
                    "error,!area,!perimeter,!radius", classes=True),
        column_task("cancer-concavity-error", cancer, "train", "concavity error", "mean"),
        column_task("cancer-worst-symmetry", cancer, "train", "worst symmetry", "mean,error"),
        column_task("cancer-mean-smoothness", cancer, "train", "mean smoothness", "error"),
        column_task("cancer-fractal-error", cancer, "train", "fractal dimension error", "worst"),
        column_task("diabetes-progression", sugar, "train", "target", "age,sex,bmi,bp,s"),
        column_task("diabetes-progression-from-serum", sugar, "train", "target", "s1,s2,s4,s6"),
        column_task("diabetes-bmi", sugar, "train", "bmi", "age,bp,s"),
        column_task("diabetes-sex", sugar, "train", "sex", "age,bmi,bp,s1,s2,s3,s4,s5,s6", classes=True),
        column_task("diabetes-s4", sugar, "train", "s4", "age,sex,bmi,bp,s1,s5"),
    ]  # fmt: skip


def validation_problems() -> list[Problem]:
    return [
        class_rows("iris-1v2-by-sepal", "iris", (1, 2), ("sepal length (cm)", "sepal width (cm)")),
        column_task("iris-sepal-width", "iris", None, "sepal width (cm)", "sepal length,petal"),
        digits((4, 7), slice(5, 8), slice(3, 6), 60),
        column_task("cancer-worst-texture", "breast_cancer", "validation", "worst texture", "mean,!mean texture,error"),
        column_task("diabetes-s3", "diabetes", "validation", "s3", "age,sex,bmi,bp,s1,s5,s6"),
    ]


def test_problems() -> list[Problem]:
    hard = ("malic_acid", "ash", "alcalinity_of_ash", "magnesium")
    return [
        class_rows("wine-by-minerals", "wine", (0, 1, 2), hard),
        class_rows("wine-0v1-by-hue", "wine", (0, 1), ("hue", "nonflavanoid_phenols", "proanthocyanins", "ash")),
        column_task("wine-proline", "wine", None, "proline",
                    "malic,ash,magnesium,phenols,flavanoids,proanthocyanins,color,hue"),
        column_task("wine-alcalinity", "wine", None, "alcalinity_of_ash",
                    "alcohol,malic,magnesium,phenols,color,proline"),
        digits((8, 9), slice(4, 8), slice(4, 8), 70),
        digits((6, 8, 9), slice(2, 5), slice(0, 8, 2), 50),
        ink(8, slice(0, 4), (slice(4, 8), slice(0, 8))),
        column_task("cancer-diagnosis-by-worst-shape", "breast_cancer", "test", "target",
                    "worst smoothness,worst symmetry,worst fractal,worst texture", classes=True),
        column_task("cancer-texture-error", "breast_cancer", "test", "texture error", "mean,worst"),
        column_task("diabetes-glucose", "diabetes", "test", "s6", "age,sex,bmi,bp,s1,s2,s3,s4,s5"),
    ]  # fmt: skip


def problems() -> dict[str, list[Problem]]:
    return {"train": train_problems(), "validation": validation_problems(), "test": test_problems()}
