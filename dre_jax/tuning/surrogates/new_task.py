"""The features of a new task, as the past tasks of a surrogate have them."""

import warnings
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from dre_jax.data.features import FeatureSpace, FeatureValue
from dre_jax.errors import DataWarning
from dre_jax.runtime.reports import say


def encode_task(
    space: FeatureSpace, values: Mapping[str, FeatureValue], *, stacklevel: int = 3
) -> npt.NDArray[np.float32]:
    """Returns the features of a new task f32[P].

    Warns of missing ones, and says on standard error which numbers lie outside of the range of the past tasks.
    """
    row = space.encode(values)
    warn_of_missing([name for name in space.types if name not in values], stacklevel=stacklevel + 1)
    for line in space.extrapolations(values):
        say(line)
    return row


def warn_of_missing(names: Iterable[str], *, stacklevel: int = 3) -> None:
    """Warns of features that the past tasks have and the new task does not, if there are any."""
    if missing := list(dict.fromkeys(names)):
        remedy = f"pass features={{{missing[0]!r}: ...}}, or None if it is unknown"
        message = f"the past tasks have features that the task lacks, {', '.join(missing)}: {remedy}"
        warnings.warn(message, DataWarning, stacklevel=stacklevel)


def unused_features(names: Iterable[str], reason: str) -> str:
    """Returns one line about features that are not used.

    Example:
      >>> unused_features(["rows", "gpu"], "gcp does not use any")
      'features of the task are not used, as gcp does not use any: rows, gpu'
    """
    return f"features of the task are not used, as {reason}: {', '.join(names)}".removesuffix(": ")
