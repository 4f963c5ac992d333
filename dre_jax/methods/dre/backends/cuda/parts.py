"""The parts of an ensemble's parameters as kernels lay them out: first layers are split by the kind of input."""

from collections.abc import Iterator
from typing import NamedTuple

from dre_jax.methods.dre.model.model_config import ModelConfig


class Part(NamedTuple):
    """A member's array, or some rows of it."""

    name: str
    tree: str
    """"scorers" or "deep_set"."""
    leaf: str
    start: int
    """Index of its first row in the leaf. A vector has one row, and so has the last layer's only column."""
    size: int
    """Number of rows."""
    width: int
    """Elements of a row."""
    is_vector: bool


def parts_of(model: ModelConfig, n_columns: int) -> Iterator[Part]:
    """Yields the parts, layer after layer."""
    trees = {"scorers": {"hidden": model.hidden, "out": (1,)}}
    if model.context != "none":
        trees["deep_set"] = {"phi": model.phi, "rho": model.rho}
    for tree, layers in trees.items():
        inputs = 0
        for kind, i, width in ((kind, i, width) for kind, widths in layers.items() for i, width in enumerate(widths)):
            layer = "out" if kind == "out" else f"{kind}_{i}"
            kernel = f"{layer}_kernel"
            if not inputs:
                yield Part(f"{kernel}_x", tree, kernel, 0, n_columns, width, is_vector=False)
                if kind == "phi":
                    yield Part(f"{kernel}_response", tree, kernel, n_columns, 1, width, is_vector=True)
                elif model.context != "none":
                    yield Part(f"{kernel}_context", tree, kernel, n_columns, model.rho[-1], width, is_vector=False)
            elif kind == "out":
                yield Part(kernel, tree, kernel, 0, 1, inputs, is_vector=True)
            else:
                yield Part(kernel, tree, kernel, 0, inputs, width, is_vector=False)
            yield Part(f"{layer}_bias", tree, f"{layer}_bias", 0, 1, width, is_vector=True)
            inputs = width
