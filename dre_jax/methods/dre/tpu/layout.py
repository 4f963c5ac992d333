"""Where the parameters of members that share lanes lie: rows of 128, layer after layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.dre.model_config import ModelConfig

LANES = 128
SUBLANES = 8
"""Rows of a register: kernels of layers start at multiples."""


class Part(NamedTuple):
    """A member's array, or some rows of it."""

    tree: str
    """"scorers" or "deep_set"."""
    leaf: str
    start: int
    """The first of its rows in the leaf; a vector has one row, and so has the last layer's only column."""
    size: int
    """How many."""
    height: int
    """Rows that it takes among the lanes; those that are left over are zero, and stay zero."""
    at: int = 0
    """The first of these."""


@dataclass(frozen=True)
class LaneLayout:
    """The parts of a model's parameters by name, and how many members share the lanes."""

    slot: int
    """Lanes of a member: a power of two, no layer is wider."""
    parts: dict[str, Part]
    rows: int

    @property
    def members(self) -> int:
        """Members side by side."""
        return LANES // self.slot

    def groups(self, members: int) -> int:
        """Returns the number of groups of lanes for a number of members."""
        return -(-members // self.members)


def round_up(n: int, step: int) -> int:
    """Returns the next multiple of ``step``."""
    return -(-n // step) * step


def widest(model: ModelConfig) -> int:
    """Returns the width of the widest layer of a member."""
    return max(*model.hidden, *(() if model.context == "none" else (*model.phi, *model.rho)), SUBLANES)


def layout_of(model: ModelConfig, n_columns: int) -> LaneLayout:
    """Returns the layout for tables of D columns.

    Example:
      >>> layout = layout_of(ModelConfig(), 16)
      >>> layout.slot, layout.members, layout.groups(10), layout.rows
      (32, 4, 3, 336)
    """
    slot = 1 << (widest(model) - 1).bit_length()
    parts, at = {}, 0
    for name, part in sorted(_parts(model, n_columns, slot), key=lambda item: item[1].height == 1):
        parts[name] = part._replace(at=at)
        at += part.height
    return LaneLayout(slot, parts, round_up(at, SUBLANES))


def _parts(model: ModelConfig, n_columns: int, slot: int) -> Iterator[tuple[str, Part]]:
    """Yields the parts by the names of their leaves; the first layers are split by the kinds of their inputs."""
    trees = {"scorers": {"hidden": model.hidden, "out": (1,)}}
    if model.context != "none":
        trees["deep_set"] = {"phi": model.phi, "rho": model.rho}
    for tree, layers in trees.items():
        before = 0
        for name, i, width in ((name, i, w) for name, widths in layers.items() for i, w in enumerate(widths)):
            kernel = f"{name}_{i}_kernel" if name != "out" else "out_kernel"
            if not before:
                yield f"{kernel}_x", Part(tree, kernel, 0, n_columns, round_up(n_columns, SUBLANES))
                if name == "phi":
                    yield f"{kernel}_response", Part(tree, kernel, n_columns, 1, 1)
                elif model.context != "none":
                    yield f"{kernel}_context", Part(tree, kernel, n_columns, model.rho[-1], slot)
            elif name == "out":
                yield kernel, Part(tree, kernel, 0, 1, 1)
            else:
                yield kernel, Part(tree, kernel, 0, before, slot)
            bias = kernel.removesuffix("kernel") + "bias"
            yield bias, Part(tree, bias, 0, 1, 1)
            before = width


def pack(layout: LaneLayout, params: EnsembleParams, members: int) -> Array:
    """Returns parameters with members in front as f32[groups, rows, 128]; lanes without a member are zero."""
    groups = layout.groups(members)
    blocks = []
    for part in layout.parts.values():
        leaf = _as_rows(getattr(params, part.tree)[part.leaf], part)[:, part.start : part.start + part.size]
        empty = groups * layout.members - members, part.height - part.size, layout.slot - leaf.shape[-1]
        array = jnp.pad(leaf, [(0, n) for n in empty])
        array = array.reshape(groups, layout.members, part.height, layout.slot)
        blocks.append(array.swapaxes(1, 2).reshape(groups, part.height, LANES))
    packed_params = jnp.concatenate(blocks, axis=1)
    return jnp.pad(packed_params, ((0, 0), (0, layout.rows - packed_params.shape[1]), (0, 0)))


def _as_rows(leaf: Array, part: Part) -> Array:
    """Returns a leaf with members in front as [members, rows, lanes]."""
    if part.leaf == "out_kernel":
        return leaf.swapaxes(1, 2)
    return leaf if leaf.ndim == 3 else leaf[:, None, :]


def unpack(layout: LaneLayout, packed_params: Array, like: EnsembleParams) -> EnsembleParams:
    """Returns the inverse of `pack`."""
    groups = packed_params.shape[0]
    by_member = packed_params.reshape(groups, layout.rows, layout.members, layout.slot).swapaxes(1, 2)
    by_member = by_member.reshape(groups * layout.members, layout.rows, layout.slot)
    pieces: dict[str, dict[str, list[Array]]] = {tree: {} for tree in like._fields}
    for part in sorted(layout.parts.values(), key=lambda part: part.start):
        pieces[part.tree].setdefault(part.leaf, []).append(by_member[:, part.at : part.at + part.size])
    return EnsembleParams(*(_like(pieces[tree], getattr(like, tree)) for tree in like._fields))


def _like(pieces: dict[str, list[Array]], tree: Any) -> Any:
    if tree is None:
        return None
    leaves = {}
    for name, leaf in tree.items():
        rows = jnp.concatenate(pieces[name], axis=1)
        width = leaf.shape[1] if name == "out_kernel" else leaf.shape[-1]
        leaves[name] = rows[: leaf.shape[0], :, :width].reshape(leaf.shape)
    return leaves
