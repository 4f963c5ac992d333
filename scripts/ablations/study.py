"""What a study is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dre_jax.search.method import Method


@dataclass(frozen=True, kw_only=True)
class Study:
    """A choice, by its variants; the first is what the others are tested against."""

    question: str
    papers: str
    """What the papers say of it."""
    variants: Mapping[str, Method]
    found: str = ""
    """What our table says, and whether it agrees."""
    split: str = "validation"
    """Nothing is chosen on the test tasks: a study of them is none of "all"."""
    trials: int = 25
    """Of a run."""
