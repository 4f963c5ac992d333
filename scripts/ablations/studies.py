"""The studies that `studies.toml` declares: which choice each looks at, and its variants."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dre_jax.methods import find
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis
from dre_jax.methods.hedged_prior.method import HedgedPrior
from dre_jax.search.method import Method

_FILE = Path(__file__).with_name("studies.toml")
_LOSSES = ("training.loss", "fine_tuning.loss")


@dataclass(frozen=True, kw_only=True)
class Study:
    """A choice, by its variants; the first is what the others are tested against."""

    question: str
    variants: Mapping[str, str | Method]
    split: str = "validation"
    """Nothing is chosen on the test tasks: a study of them is none of "all"."""
    trials: int = 25
    """Of a run."""


def load_studies(path: Path) -> dict[str, Study]:
    """Returns the studies of a TOML file, by name."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    bases = tables.pop("bases")
    return {name: _study(bases, **table) for name, table in tables.items()}


def _study(bases: Mapping[str, Any], *, base: str, variants: Mapping[str, Any], **fields: Any) -> Study:
    methods = {name: _method(bases, **{"base": base, **settings}) for name, settings in variants.items()}
    return Study(variants=methods, **fields)


def _method(bases: Mapping[str, Any], *, base: str, **settings: Any) -> Method:
    """Returns the method of a base with other settings."""
    settings = {"method": base, **bases.get(base, {}), **settings}
    name, hypotheses = settings.pop("method"), settings.pop("hypotheses", None)
    fields: dict[str, object] = {}
    for field, value in settings.items():
        parts = [field.replace("loss", loss, 1) for loss in _LOSSES] if field.startswith("loss.") else [field]
        fields |= dict.fromkeys(parts, value)
    method = find(name).make(fields)
    if hypotheses and isinstance(method, HedgedPrior):
        return replace(method, hypotheses=tuple(Hypothesis(**fields) for fields in hypotheses))
    return method


STUDIES = load_studies(_FILE)
