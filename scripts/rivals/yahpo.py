"""Live tasks of YAHPO Gym (Pfisterer et al. 2022): neural networks that predict the outcome of any configuration.

A folder is a checkout of the public repository `slds-lmu/yahpo_data`. Budgets are the largest ones.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.space.space import Params
from dre_jax.tuning import Categorical, Float, Int, Space


class Layout(NamedTuple):
    """What the files of a space do not say; see the configuration of YAHPO Gym."""

    categoricals: tuple[str, ...]
    """The columns of the network's input for levels; the first is that of the task."""
    numbers: tuple[str, ...]
    """The columns of its input for numbers."""
    output: int
    """The column of its output that is optimised."""
    sign: float = 1.0
    """-1 for one that is minimised."""


_RPART = ("cp", "maxdepth", "minbucket", "minsplit", "trainsize")
_GLMNET = ("alpha", "s", "trainsize")
_XGBOOST = (
    *("nrounds", "eta", "gamma", "lambda", "alpha", "subsample", "max_depth", "min_child_weight"),
    *("colsample_bytree", "colsample_bylevel", "rate_drop", "skip_drop", "trainsize"),
)
_LCBENCH = (
    *("epoch", "batch_size", "learning_rate", "momentum", "weight_decay", "num_layers", "max_units", "max_dropout"),
)
_IMPUTE = "num.impute.selected.cpo"
LAYOUTS = {
    "rbv2_rpart": Layout(("task_id", _IMPUTE), (*_RPART, "repl"), 0),
    "rbv2_glmnet": Layout(("task_id", _IMPUTE), (*_GLMNET, "repl"), 0),
    "rbv2_xgboost": Layout(("task_id", "booster", _IMPUTE), (*_XGBOOST, "repl"), 0),
    "iaml_rpart": Layout(("task_id",), _RPART, 0, -1.0),
    "iaml_glmnet": Layout(("task_id",), _GLMNET, 0, -1.0),
    "iaml_xgboost": Layout(("task_id", "booster"), _XGBOOST, 0, -1.0),
    "lcbench": Layout(("OpenML_task_id",), _LCBENCH, 1),
}
"""By name of a space. Outputs are accuracy (`rbv2`), error (`iaml`) and validation accuracy (`lcbench`)."""
_BUDGETS = ("trainsize", "repl", "epoch")
_ABSENT = "#na#"


@dataclass(frozen=True, eq=False)
class YahpoSpace:
    """A space of YAHPO Gym."""

    name: str
    entries: Sequence[Mapping[str, Any]]
    """Hyperparameters, as in `config_space.json`."""
    conditions: Sequence[Mapping[str, Any]]
    encoding: Mapping[str, Mapping[str, int]]
    """Numbers of levels, by hyperparameter."""
    session: Any
    """Has ``run(None, inputs)``, which returns a list of one array of outputs."""

    @property
    def layout(self) -> Layout:
        """The inputs and the output."""
        return LAYOUTS[self.name]

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in an order drawn for the space."""
        [names] = [entry["choices"] for entry in self.entries if entry["name"] == self.layout.categoricals[0]]
        return tuple(map(str, np.random.default_rng(zlib.crc32(self.name.encode())).permutation(names)))

    @cached_property
    def space(self) -> Space:
        """The hyperparameters, without task and budgets."""
        fixed = (self.layout.categoricals[0], *_BUDGETS)
        return Space({entry["name"]: self._parameter(entry) for entry in self.entries if entry["name"] not in fixed})

    def _parameter(self, entry: Mapping[str, Any]) -> Float | Int | Categorical:
        when: dict[str, list[Any]] = {}
        for condition in self.conditions:
            if condition["child"] == entry["name"]:
                when[condition["parent"]] = condition.get("values") or [condition["value"]]
        if entry["type"] == "categorical":
            return Categorical(entry["choices"], when=when or None)
        kind: type[Float] | type[Int] = Float if entry["type"] == "uniform_float" else Int
        return kind(entry["lower"], entry["upper"], log=entry["log"], when=when or None)

    def evaluate(self, task: str, configurations: Sequence[Params]) -> np.ndarray:
        """Returns the values f64[n] of configurations on a task."""
        return self._outputs(task, [{**params, **self._budgets(1.0)} for params in configurations])

    def curve(self, task: str, params: Params, shares: np.ndarray) -> np.ndarray:
        """Returns the values f64[G] of a configuration on a task, at shares f64[G] of the largest budget."""
        return self._outputs(task, [{**params, **self._budgets(share)} for share in shares.tolist()])

    def _budgets(self, share: float) -> dict[str, float]:
        """Returns the budgets: the most repetitions, and a share of the others, at least their lowest ones."""
        entries = {entry["name"]: entry for entry in self.entries if entry["name"] in _BUDGETS}
        return {
            name: entry["upper"] * (1.0 if name == "repl" else max(share, entry["lower"] / entry["upper"]))
            for name, entry in entries.items()
        }

    def _outputs(self, task: str, configurations: Sequence[Mapping[str, Any]]) -> np.ndarray:
        rows = [{**params, self.layout.categoricals[0]: task} for params in configurations]
        levels = [[self.encoding[name][row.get(name, _ABSENT)] for name in self.layout.categoricals] for row in rows]
        numbers = [[row.get(name, 0.0) for name in self.layout.numbers] for row in rows]
        inputs = {"x_cat": np.array(levels, np.int32), "x_cont": np.array(numbers, np.float32)}
        outputs = np.asarray(self.session.run(None, inputs)[0], np.float64)
        return self.layout.sign * outputs[:, self.layout.output]


def load_yahpo(folder: Path, name: str) -> YahpoSpace:
    """Returns a space of a checkout. Raises `ConfigError` for an unknown space, a missing file, or no onnxruntime."""
    if name not in LAYOUTS:
        raise ConfigError(f"a live space must be one of {', '.join(LAYOUTS)}, but got {name!r}")
    model = folder / name / "model.onnx"
    if not model.exists() or model.read_bytes()[:7] == b"version":  # of a pointer of Git LFS
        raise ConfigError(
            f"the folder of YAHPO must have the network of each space, but {model} is missing or a pointer"
        )
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError("live spaces need onnxruntime: pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    read = {file: json.loads((folder / name / f"{file}.json").read_text()) for file in ("config_space", "encoding")}
    config = read["config_space"]
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return YahpoSpace(name, config["hyperparameters"], config["conditions"], read["encoding"], session)
