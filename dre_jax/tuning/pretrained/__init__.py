"""Surrogates that ship: search spaces of popular models, and what was learned from evaluations of these models."""

from dre_jax.tuning.pretrained.families import FAMILIES, Family, pretrained_path

__all__ = ["FAMILIES", "Family", "pretrained_path"]
