"""Rivals by name. The packages of each are imported where it runs."""

import ast
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
    packages: tuple[str, ...]
    """What has to be installed, by the names that are imported."""
    transfer: bool
    """Whether it uses past studies."""
    options: Mapping[str, Any] = MappingProxyType({})

    def missing_packages(self) -> list[str]:
        """Returns the packages that are not installed."""
        return [package for package in self.packages if find_spec(package) is None]

    def make(self) -> Maker:
        """Returns the function that makes the rival. Imports its packages."""
        function = getattr(importlib.import_module(f"rivals.{self.module}"), self.function)
        return lambda problem, rows, seed: function(problem, rows, seed, **self.options)

    def n_lines(self) -> int:
        """Returns the number of lines of code of its file, without blank ones, comments and docstrings."""
        text = (Path(__file__).parent / f"{self.module}.py").read_text()
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
        texts = [node for node in nodes if isinstance(node.value, ast.Constant)]
        apart = {line for node in texts for line in range(node.lineno, (node.end_lineno or 0) + 1)}
        lines = (line.strip() for i, line in enumerate(text.splitlines(), start=1) if i not in apart)
        return sum(bool(line) and not line.startswith("#") for line in lines)


_OURS = ("ours", "DreJax", ("dre_jax",))
_SYNE_TUNE = ("syne_tune_schedulers", "SyneTuneScheduler", ("syne_tune", "huggingface_hub"))
_TPE = ("optuna_study", "OptunaStudy", ("optuna",))
_GP_SAMPLER = ("optuna_study", "OptunaStudy", ("optuna", "torch"))
RIVALS = {
    "hedged-prior": Entry("dre_jax, recommended", *_OURS, True, {"method": "recommended"}),
    "gp-mixture": Entry("dre_jax, `gp-mixture`", *_OURS, False, {"method": None}),
    "baybe": Entry("BayBE, `TaskParameter`", "baybe_campaign", "BaybeCampaign", ("baybe",), True),
    "ax": Entry("Ax, BOTL", "ax_transfer", "AxTransfer", ("ax",), True),
    "botorch": Entry("BoTorch, `MultiTaskGP`", "botorch_multi_task", "MultiTaskProcess", ("botorch",), True),
    "syne-quantiles": Entry("Syne Tune, quantiles (CTS)", *_SYNE_TUNE, True, {"scheduler": "quantiles"}),
    "syne-box": Entry("Syne Tune, bounding box, random", *_SYNE_TUNE, True, {"scheduler": "box-random"}),
    "syne-box-cqr": Entry("Syne Tune, bounding box, CQR", *_SYNE_TUNE, True, {"scheduler": "box-cqr"}),
    "tpe": Entry("Optuna, TPE", *_TPE, False, {"sampler": "tpe"}),
    "tpe-best": Entry("Optuna, TPE, past's best enqueued", *_TPE, True, {"sampler": "tpe", "enqueue": True}),
    "gp-sampler": Entry("Optuna, GP", *_GP_SAMPLER, False, {"sampler": "gp-sampler"}),
    "gp-sampler-best": Entry(
        "Optuna, GP, past's best enqueued", *_GP_SAMPLER, True, {"sampler": "gp-sampler", "enqueue": True}
    ),
    "turbo": Entry("BoTorch, TuRBO", "trust_region", "TrustRegion", ("botorch",), False),
    "saas": Entry("BoTorch, SAAS", "sparse_axes", "SparseAxes", ("botorch", "numpyro"), False),
    "smac": Entry("SMAC", "smac_facade", "SmacFacade", ("smac", "ConfigSpace"), False),
    "random": Entry("Random search", "random_search", "RandomSearch", (), False),
}
