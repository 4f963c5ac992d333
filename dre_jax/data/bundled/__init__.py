"""The small real meta-dataset that is shipped: scikit-learn models on data sets of scikit-learn.

It has four search spaces in HPO-B v3's files. `PROVENANCE.md` in its folder describes how they were made, and
`meta-dataset-descriptors.json` the columns.

>>> from dre_jax.data import bundled
>>> bundled.spaces()
['svm', 'random-forest', 'gradient-boosting', 'nearest-neighbours']
>>> bundled.load("svm").n_columns
14
"""

from importlib import resources
from pathlib import Path

from dre_jax.data.hpob import list_spaces, load_space
from dre_jax.data.spaces import SearchSpace
from dre_jax.errors import DataError

__all__ = ["load", "path", "spaces"]


def path() -> Path:
    """The folder of the files, which can be passed wherever HPO-B's folder can.

    Raises `DataError` if the package is imported from a zip archive, which has no folders.
    """
    folder = resources.files(__name__)
    if not isinstance(folder, Path):
        raise DataError(f"the bundled data need dre_jax to be installed as a folder, but it was imported from {folder}")
    return folder


def spaces() -> list[str]:
    """The names of the search spaces."""
    return list_spaces(path())


def load(space: str) -> SearchSpace:
    """One search space with its three splits and initial designs. Raises `DataError` for an unknown name."""
    return load_space(path(), space)
