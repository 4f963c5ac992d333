"""Search spaces of a user's own model: hyperparameters, encodings, JSON, and HPO-B's spaces."""

from dre_jax.space.space import Params, Space

__all__ = ["Params", "Space"]
