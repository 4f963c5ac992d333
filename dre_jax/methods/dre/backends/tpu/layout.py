"""Where the parameters of members that share lanes lie: rows of 128, layer after layer."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.methods.dre.backends.parts import Part, parts_of
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.dre.model_config import ModelConfig

LANES = 128
SUBLANES = 8
"""Rows of a register: kernels of layers start at multiples."""


class Placed(NamedTuple):
    """A part of a member's parameters, and its place among the lanes."""

    part: Part
    height: int
    """Rows that it takes; those that are left over are zero, and stay zero."""
    at: int
    """The first of these."""


@dataclass(frozen=True)
class LaneLayout:
    """The parts of a model's parameters by name, and how many members share the lanes."""

    slot: int
    """Lanes of a member: a power of two, no layer is wider."""
    parts: dict[str, Placed]
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
    """Returns the layout for tables of D columns."""
    slot = 1 << (widest(model) - 1).bit_length()
    parts, at = {}, 0
    for part in sorted(parts_of(model, n_columns), key=lambda part: part.is_vector):
        height = 1 if part.is_vector else round_up(n_columns, SUBLANES) if part.name.endswith("_x") else slot
        parts[part.name] = Placed(part, height, at)
        at += height
    return LaneLayout(slot, parts, round_up(at, SUBLANES))


def pack(layout: LaneLayout, params: EnsembleParams, members: int) -> Array:
    """Returns parameters with members in front as f32[groups, rows, 128]; lanes without a member are zero."""
    groups = layout.groups(members)
    blocks = []
    for part, height, _ in layout.parts.values():
        leaf = _as_rows(getattr(params, part.tree)[part.leaf], part)[:, part.start : part.start + part.size]
        empty = groups * layout.members - members, height - part.size, layout.slot - leaf.shape[-1]
        array = jnp.pad(leaf, [(0, n) for n in empty])
        array = array.reshape(groups, layout.members, height, layout.slot)
        blocks.append(array.swapaxes(1, 2).reshape(groups, height, LANES))
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
    for part, _, at in sorted(layout.parts.values(), key=lambda placed: placed.part.start):
        pieces[part.tree].setdefault(part.leaf, []).append(by_member[:, at : at + part.size])
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
