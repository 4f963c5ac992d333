"""Rivals by name. The packages of each are imported where it runs."""

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rivals.search import Maker


class Entry(NamedTuple):
    """A rival."""

    title: str
    """Its name in tables."""
    module: str
    """In this folder."""
    function: str
    """Returns a rival of a problem, the rows of a table or None, and a seed."""
    package: str
    """What has to be installed."""
    transfer: bool
    """Whether it uses past studies."""
    options: Mapping[str, Any] = MappingProxyType({})

    def missing_package(self) -> str | None:
        """Returns the package if it is not installed."""
        return None if find_spec(self.package) is not None else self.package

    def make(self) -> Maker:
        """Returns the function that makes the rival. Imports its package."""
        function = getattr(importlib.import_module(f"rivals.{self.module}"), self.function)
        return lambda problem, rows, seed: function(problem, rows, seed, **self.options)

    def n_lines(self) -> int:
        """Returns the number of lines of code of its file, without blank ones and comments."""
        lines = (Path(__file__).parent / f"{self.module}.py").read_text().splitlines()
        return sum(bool(line.strip()) and not line.lstrip().startswith(("#", '"""')) for line in lines)


_OPTUNA, _SYNE_TUNE = ("optuna_study", "OptunaStudy", "optuna"), ("syne_tune_schedulers", "SyneTuneScheduler", "syne_tune")
RIVALS = {
    "hedged-prior": Entry("dre_jax, recommended", "ours", "DreJax", "dre_jax", True),
    "gp-mixture": Entry("dre_jax, `gp-mixture`", "ours", "DreJax", "dre_jax", False, {"transfer": False}),
    "baybe": Entry("BayBE, `TaskParameter`", "baybe_campaign", "BaybeCampaign", "baybe", True),
    "ax": Entry("Ax, BOTL", "ax_transfer", "AxTransfer", "ax", True),
    "botorch": Entry("BoTorch, `MultiTaskGP`", "botorch_multi_task", "MultiTaskProcess", "botorch", True),
    "syne-quantiles": Entry("Syne Tune, quantiles (CTS)", *_SYNE_TUNE, True, {"scheduler": "quantiles"}),
    "syne-box": Entry("Syne Tune, bounding box, random", *_SYNE_TUNE, True, {"scheduler": "box-random"}),
    "syne-box-gp": Entry("Syne Tune, bounding box, GP", *_SYNE_TUNE, True, {"scheduler": "box-gp"}),
    "tpe": Entry("Optuna, TPE", *_OPTUNA, False, {"sampler": "tpe"}),
    "tpe-best": Entry("Optuna, TPE, past's best enqueued", *_OPTUNA, True, {"sampler": "tpe", "enqueue": True}),
    "gp-sampler": Entry("Optuna, `GPSampler`", *_OPTUNA, False, {"sampler": "gp"}),
    "gp-sampler-best": Entry("Optuna, `GPSampler`, past's best enqueued", *_OPTUNA, True, {"sampler": "gp", "enqueue": True}),
    "smac": Entry("SMAC", "smac_facade", "SmacFacade", "smac", False),
    "random": Entry("Random search", "random_search", "RandomSearch", "numpy", False),
}
