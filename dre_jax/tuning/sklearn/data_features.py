"""What the data show of a task: its features, and classes."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target, unique_labels
from sklearn.utils.validation import _num_samples

DATA_FEATURES = ("rows", "columns", "classes")


def data_features(X: Any, y: Any) -> dict[str, int]:
    """Returns the numbers of rows and columns of data, and of classes unless y is None, as far as they are known.

    Example:
      >>> data_features([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ["a", "b", "a"])
      {'rows': 3, 'columns': 2, 'classes': 2}
    """
    features = {"rows": _num_samples(X)}
    if len(shape := np.shape(X)) == 2:
        features["columns"] = shape[1]
    if y is not None:
        features["classes"] = len(unique_labels(y))
    return features


def class_labels(y: Any) -> np.ndarray | None:
    """Returns the classes of the rows; None without any, or if a row has several."""
    if y is None or type_of_target(y) not in ("binary", "multiclass"):
        return None
    return np.ravel(np.asarray(y))
