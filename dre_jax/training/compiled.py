"""Training steps by `dre_jax.native`: an ensemble's parameters packed into rows, and back."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from dre_jax import native
from dre_jax.losses import RankedList
from dre_jax.model import EnsembleParams, ModelConfig
from dre_jax.model.ensemble import seen_response
from dre_jax.training.adam import Moments, StepSizes


def serves(model: ModelConfig, x: Array) -> bool:
    """Whether the compiled steps are here and know this: members that never meet, free scores, float32."""
    known = model.context != "shared" and model.range_limit is None
    return known and x.dtype == jnp.float32 and native.available()


def compiled_steps(
    model: ModelConfig,
    params: EnsembleParams,
    moments: Moments,
    x: Array,
    support: tuple[Array, Array, Array],
    query: Array,
    ranked: RankedList,
    sizes: StepSizes,
    *,
    loss: str,
    wants_losses: bool,
) -> tuple[EnsembleParams, Moments, Array]:
    """What a scan over steps would give, for a configuration that `serves` accepts.

    Args:
      model: sizes.
      params: members in front.
      moments: Adam's.
      x: f32[rows, D], what row numbers count.
      support: rows, responses and which slots are filled, [steps, members, lists, K]; one member's lists stand for all
        where all have the same.
      query: i32[steps, members, lists, Q].
      ranked: its order, likewise.
      sizes: of the steps.
      loss: its name.
      wants_losses: whether they are worked out.

    Returns:
      Parameters, moments and f32[steps, members], the losses.
    """
    rows, response, where = support
    seen = seen_response(model, response, where)
    lists = native.Lists(rows, where, seen, query, *ranked)
    packed, mean, square = (_pack(model, tree) for tree in (params, *moments))
    *state, losses = native.train_steps(
        packed,
        mean,
        square,
        x,
        lists,
        sizes.size,
        sizes.floor,
        hidden=model.hidden,
        phi=() if model.context == "none" else model.phi,
        rho=model.rho,
        loss=loss,
        wants_losses=wants_losses,
    )
    new, *moved = (_unpack(model, rows, params) for rows in state)
    return new, Moments(*moved), losses


def _arrays(model: ModelConfig, tree: EnsembleParams) -> list[tuple[dict[str, Array], str]]:
    """All arrays of an ensemble, each as the dictionary that holds it and its name there, in the order of the rows."""
    parts = [
        (tree.deep_set, "phi", model.phi),
        (tree.deep_set, "rho", model.rho),
        (tree.scorers, "hidden", model.hidden),
    ]
    layers = [(part, f"{name}_{i}") for part, name, widths in parts if part is not None for i in range(len(widths))]
    layers.append((tree.scorers, "out"))
    return [(part, f"{name}_{kind}") for part, name in layers for kind in ("kernel", "bias")]


def _pack(model: ModelConfig, tree: EnsembleParams) -> Array:
    """All parameters of a member in one row, f32[members, P]."""
    arrays = [part[name] for part, name in _arrays(model, tree)]
    return jnp.concatenate([a.reshape(a.shape[0], -1) for a in arrays], axis=1)


def _unpack(model: ModelConfig, rows: Array, like: EnsembleParams) -> EnsembleParams:
    scorers: dict[str, Array] = {}
    deep_set: dict[str, Array] = {}
    start = 0
    for part, name in _arrays(model, like):
        shape = part[name].shape
        stop = start + math.prod(shape[1:])
        (scorers if part is like.scorers else deep_set)[name] = rows[:, start:stop].reshape(shape)
        start = stop
    return EnsembleParams(scorers, None if like.deep_set is None else deep_set)
