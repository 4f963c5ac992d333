"""HPO-B's 16 search spaces with the hyperparameters of live models, for surrogates that were meta-trained on HPO-B.

HPO-B (Pineda Arango et al., NeurIPS 2021 Datasets and Benchmarks) holds encoded tables, and the names, ranges and
logarithms of their columns in `meta-dataset-descriptors.json`, but not the original search spaces, which this file has.
The runs are those of a random bot on OpenML (Kühn et al., *Automatic Exploration of Machine Learning Experiments on
OpenML*, 2018, table 1), which drew the hyperparameters of learners of the R package mlr:

- **Ranges, scales and conditions** are the bot's: `cost` is 2^x with x even in [-10, 10], `gamma` belongs to the radial
  kernel, `degree` to the polynomial one, depth, child weight and column samples to `gbtree`. mlr would take `gamma` for
  the polynomial kernel too; the bot never set it, so no table has it. The bounds are cut to the values in the tables.
- **Columns** are the descriptor's: t = ln(x + 1e-4) for numbers in `variables_to_apply_log`, t = x for the others, then
  scaled by their range; a number that is not set counts as 0 before the transformation, and `NAME.na` is 1. The scale
  of the draw is independent of the encoding: five of the spaces encode nothing by its logarithm.
- **R's defaults**: OpenML does not keep a value that equals the learner's default, so it looks as if it were not set.
  Every fourth polynomial kernel has no `degree`, as it is 3; a `kernel` that is not set is radial. `R_DEFAULTS` has the
  values and their sources.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dre_jax.checks import one_of
from dre_jax.data.columns import columns_of, missing_column, read_descriptor, split_level
from dre_jax.data.raw_columns import COLUMNS, LOG_OFFSET, fixed_descriptor
from dre_jax.data.scale import Scale
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.encoding import INVALID, Code, LevelCode, NumberCode
from dre_jax.space.parameters import Categorical, Float, Int, Parameter
from dre_jax.space.scalars import Choice
from dre_jax.space.space import Space

HPOB_SPACES: Mapping[str, str] = MappingProxyType(
    {
        "4796": "rpart",
        "5527": "svm",
        "5636": "rpart",
        "5859": "rpart",
        "5860": "glmnet",
        "5889": "ranger",
        "5891": "svm",
        "5906": "xgboost",
        "5965": "ranger",
        "5970": "glmnet",
        "5971": "xgboost",
        "6766": "glmnet",
        "6767": "xgboost",
        "6794": "ranger",
        "7607": "ranger",
        "7609": "ranger",
    }
)
"""The learner that each of HPO-B's search spaces belongs to."""

R_DEFAULTS: Mapping[str, Choice] = MappingProxyType(
    {
        "kernel": "radial",  # e1071::svm
        "degree": 3,  # e1071::svm
        "minsplit": 20,  # rpart::rpart.control
        "maxdepth": 30,  # rpart::rpart.control; the tables end at 29
        "num.trees": 500,  # ranger::ranger
        "replace": True,  # ranger::ranger
        "respect.unordered.factors": False,  # ranger::ranger
        "min.node.size": 10,  # ranger::ranger for probabilities, which the bot's learners predict
        "booster": "gbtree",  # xgboost
        "max_depth": 6,  # xgboost
        "nrounds": 1,  # xgboost has none: mlr's classif.xgboost
    }
)
"""Values that the tables show as not set. Those of real numbers are not here: no draw ever equals them."""

_POWER = Float(2.0**-10, 2.0**10, log=True)
_TREES = {"booster": "gbtree"}
_LEARNERS: dict[str, dict[str, Parameter]] = {
    "glmnet": {"alpha": Float(0.0, 1.0), "lambda": _POWER},
    "ranger": {
        "num.trees": Int(1, 2000),
        "replace": Categorical((True, False)),
        "sample.fraction": Float(0.1, 1.0),
        # Shares of the data's columns and a power of its rows, so anything up to what the tables hold.
        "mtry": Int(1, 2**20, log=True),
        "min.node.size": Int(1, 2**20, log=True),
        "respect.unordered.factors": Categorical((False, True)),
    },
    "rpart": {"cp": Float(0.0, 1.0), "maxdepth": Int(1, 30), "minbucket": Int(1, 60), "minsplit": Int(1, 60)},
    "svm": {
        "kernel": Categorical(("radial", "linear", "polynomial")),
        "cost": _POWER,
        "gamma": replace(_POWER, when={"kernel": "radial"}),
        "degree": Int(2, 5, when={"kernel": "polynomial"}),
    },
    "xgboost": {
        "booster": Categorical(("gbtree", "gblinear")),
        "nrounds": Int(1, 5000),
        "eta": Float(2.0**-10, 1.0, log=True),
        "subsample": Float(0.1, 1.0),
        "lambda": _POWER,
        "alpha": _POWER,
        "max_depth": Int(1, 15, when=_TREES),
        "min_child_weight": Float(1.0, 2.0**7, log=True, when=_TREES),
        # The bot drew from 0 on, which is no share of the columns.
        "colsample_bytree": Float(1e-4, 1.0, when=_TREES),
        "colsample_bylevel": Float(1e-4, 1.0, when=_TREES),
        "nthread": Int(1, 1),
    },
}
_PARAMETERS_BY_SPACE: dict[str, dict[str, Parameter]] = {
    # Not the bot's: rpart behind a step of preprocessing. Its tables hold powers of two; numbers between them do too.
    "4796": {
        "minsplit": Int(2, 128, log=True),
        "minbucket": Int(1, 64, log=True),
        "cp": Float(1e-4, 0.1, log=True),
    },
}


def hpob_space(space: str | int, folder: str | os.PathLike[str], *, columns: str = "published") -> Space:
    """One of HPO-B's search spaces, with the hyperparameters of the R learner and HPO-B's columns.

    A live model usually needs narrower bounds (`mtry` is at most the number of columns): make a `Space` of those, and
    give a surrogate of this space to the optimiser, which encodes it as this one does.

    Args:
      space: its number, a key of `HPOB_SPACES`.
      folder: of `meta-dataset-descriptors.json`; `dre-jax download hpo-b` brings it beside the tables.
      columns: "published", or "fixed" for surrogates that were trained so; see `dre_jax.data.raw_columns`.

    Raises:
      ConfigError: for a search space that is not HPO-B's, or other columns.
      DataError: for a folder without its descriptor, or a descriptor that is not HPO-B's.
    """
    descriptor = read_descriptor(folder, _validate_name(space))
    if descriptor is None:
        raise DataError(f"{folder} must hold meta-dataset-descriptors.json with search space {space}, but does not")
    one_of("columns", columns, COLUMNS)
    return from_hpob(space, fixed_descriptor(str(space), descriptor) if columns == "fixed" else descriptor)


def from_hpob(space: str | int, descriptor: Mapping[str, Any]) -> Space:
    """One of HPO-B's search spaces from its descriptor alone; see `hpob_space`.

    Raises `ConfigError` for a search space that is not HPO-B's, and `DataError` for a descriptor that is not HPO-B's of
    this search space.
    """
    name = _validate_name(space)
    table = _PARAMETERS_BY_SPACE.get(name, _LEARNERS[HPOB_SPACES[name]])
    try:
        columns = columns_of(descriptor)
        order = [column.name for column in columns]
        parents = {column.parent for column in columns}
        strange = parents - set(table)
        if strange:
            raise ConfigError(f"{HPOB_SPACES[name]} has no {', '.join(sorted(strange))}")
        encodings = {parent: _encode(parent, table[parent], descriptor, order) for parent in table if parent in parents}
        parameters = {parent: parameter for parent, (parameter, _) in encodings.items()}
        return Space(parameters, codes={parent: code for parent, (_, code) in encodings.items()}, order=order)
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
        reason = str(error) if isinstance(error, ConfigError) else repr(error)
        raise DataError(f"the descriptor of search space {name} must be HPO-B's, but: {reason}") from error


def _validate_name(space: str | int) -> str:
    if str(space) not in HPOB_SPACES:
        space_names = ", ".join(f"{name} ({learner})" for name, learner in HPOB_SPACES.items())
        raise ConfigError(f"the search space must be one of HPO-B's, {space_names}, but got {space!r}")
    return str(space)


def _encode(
    name: str, parameter: Parameter, descriptor: Mapping[str, Any], columns: Sequence[str]
) -> tuple[Parameter, Code]:
    """A hyperparameter within the values of its tables, and its encoding there."""
    default = R_DEFAULTS.get(name)
    if isinstance(parameter, Categorical):
        return parameter, _levels(name, parameter, default, columns)
    assert isinstance(parameter, (Float, Int))
    variable, log = descriptor["variables"][name], name in descriptor["variables_to_apply_log"]
    low, high = float(variable["min_before_tf"]), float(variable["max_before_tf"])
    scale = Scale(low, high, log, LOG_OFFSET if log else 0.0)
    if missing_column(name) not in columns:
        return _within(parameter, low, high), NumberCode(scale)
    empty = float(scale.to_unit(0.0))
    if not isinstance(default, int):
        return _within(parameter, low, high), NumberCode(scale, empty, True)
    return _within(parameter, min(low, default), max(high, default)), NumberCode(scale, empty, True, float(default))


def _levels(name: str, parameter: Categorical, default: Choice, columns: Sequence[str]) -> LevelCode:
    """The level of each choice: R's default is not set, and R writes its truth values in capitals."""
    columns_of_levels = [level for level in map(split_level, columns) if level is not None]
    names = (str(choice).upper() if isinstance(choice, bool) else str(choice) for choice in parameter.choices)
    return LevelCode(
        tuple(INVALID if choice == default else level for choice, level in zip(parameter.choices, names, strict=True)),
        tuple(level for parent, level in columns_of_levels if parent == name),
    )


def _within(parameter: Float | Int, low: float, high: float) -> Float | Int:
    low, high = max(parameter.low, low), min(parameter.high, high)
    if isinstance(parameter, Int):
        return replace(parameter, low=int(low), high=int(high))
    return replace(parameter, low=float(low), high=float(high))
