"""The ensemble: a deep set and a scorer, vmapped over members (the paper, section 3.2)."""

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.errors import DataError
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.nn import networks
from dre_jax.nn.initial import add_inputs, draw
from dre_jax.runtime.blocks import by_blocks


class Support(NamedTuple):
    """The evaluations that a deep set reads; batch dimensions may be in front."""

    x: Array
    """f32[..., k, D]"""
    response: Array
    """f32[..., k]"""
    where: Array
    """bool[..., k]"""


class EnsembleParams(NamedTuple):
    """Parameters of an ensemble."""

    scorers: networks.Params
    """A scorer's tree, every leaf with the members in front."""
    deep_set: networks.Params
    """A deep set's tree: members in front if each has its own, none if one is shared, None without a deep set."""


@partial(jax.jit, static_argnames=("config", "n_columns"))
def init(config: ModelConfig, n_columns: int, key: Array) -> EnsembleParams:
    """Returns random weights of all members, each from a key of its own.

    Args:
      config: sizes.
      n_columns: D.
      key: PRNG key.

    Example:
      >>> {leaf.shape[0] for leaf in jax.tree.leaves(init(ModelConfig(members=10), 3, jax.random.key(0)))}
      {10}
    """
    scorer_key, deep_set_key = jax.random.split(key)
    scorer_shapes = networks.scorer_shapes(_scorer(config), config.scorer_inputs(n_columns))
    deep_set_shapes = networks.deep_set_shapes(_deep_set(config), n_columns)
    scorer, deep_set = (partial(draw, shapes, config.initialiser) for shapes in (scorer_shapes, deep_set_shapes))
    scorers = jax.vmap(scorer)(jax.random.split(scorer_key, config.members))
    if config.context == "none":
        return EnsembleParams(scorers, None)
    if config.context == "shared":
        return EnsembleParams(scorers, deep_set(deep_set_key))
    return EnsembleParams(scorers, jax.vmap(deep_set)(jax.random.split(deep_set_key, config.members)))


def pad_ensemble(params: EnsembleParams, n_columns: int, width: int) -> EnsembleParams:
    """Returns an ensemble, or a member, for more columns, with rows of zeros in the first layers.

    Args:
      params: of the ensemble or the member.
      n_columns: columns of the search space.
      width: columns that it is to have.

    Where the added columns are zero, scores and gradients do not change.
    """

    def first(tree: networks.Params, name: str) -> networks.Params:
        # The columns of the table come first among a layer's inputs.
        return {**tree, name: add_inputs(tree[name], n_columns, width - n_columns)}

    scorers = first(params.scorers, "hidden_0_kernel")
    return EnsembleParams(scorers, None if params.deep_set is None else first(params.deep_set, "phi_0_kernel"))


def drop_columns(params: EnsembleParams, n_columns: int, width: int) -> EnsembleParams:
    """Returns the inverse of `pad_ensemble`: an ensemble of ``width`` columns without those from ``n_columns`` on."""

    def first(tree: networks.Params, name: str) -> networks.Params:
        kernel = tree[name]
        return {**tree, name: jnp.concatenate([kernel[..., :n_columns, :], kernel[..., width:, :]], axis=-2)}

    scorers = first(params.scorers, "hidden_0_kernel")
    return EnsembleParams(scorers, None if params.deep_set is None else first(params.deep_set, "phi_0_kernel"))


def check_columns(config: ModelConfig, params: EnsembleParams, n_columns: int) -> None:
    """Checks that an ensemble, `params` of `config`, has inputs of `n_columns` columns.

    Raises:
      DataError: where the numbers differ.
    """
    n_inputs = params.scorers["hidden_0_kernel"].shape[-2] - config.scorer_inputs(0)
    if n_inputs != n_columns:
        raise DataError(f"the ensemble was trained on {n_inputs} columns, but the configurations have {n_columns}")


def member_axes(config: ModelConfig) -> EnsembleParams:
    """Returns the axis of the members in each part of the parameters, for `jax.vmap`."""
    return EnsembleParams(0, 0 if config.context == "own" else None)


def scale_response(response: Array, where: Array) -> Array:
    """Scales responses f32[..., k] to [0, 1] over the filled slots, as a tuner can; 0.5 if all are equal."""
    low = jnp.min(jnp.where(where, response, jnp.inf), axis=-1, keepdims=True)
    high = jnp.max(jnp.where(where, response, -jnp.inf), axis=-1, keepdims=True)
    spread = high - low
    has_spread = where & (spread > 0)
    return jnp.where(has_spread, (response - low) / jnp.where(spread > 0, spread, 1.0), 0.5)


def deep_set_response(config: ModelConfig, response: Array, where: Array) -> Array:
    """Returns the response on the scale of the deep set."""
    return scale_response(response, where) if config.response_scale == "support" else response


def member_scores(config: ModelConfig, params: EnsembleParams, support: Support, x: Array) -> Array:
    """Returns the scores of one member; x f32[n, D] -> f32[n], higher is better."""
    if config.context == "none":
        return networks.apply(_scorer(config), params.scorers, x, None)
    response = deep_set_response(config, support.response, support.where)
    context = networks.apply(_deep_set(config), params.deep_set, support.x, response, support.where)
    return networks.apply(_scorer(config), params.scorers, x, context)


def _scorer(config: ModelConfig) -> networks.Scorer:
    return networks.Scorer(config.hidden, config.range_limit, config.range_slope)


def _deep_set(config: ModelConfig) -> networks.DeepSet:
    return networks.DeepSet(config.phi, config.rho)


def scores(config: ModelConfig, params: EnsembleParams, support: Support, x: Array) -> Array:
    """Returns the scores of all members for the same rows; f32[n, D] -> f32[M, n].

    Args:
      config: sizes.
      params: of the ensemble.
      support: the trials that the deep set reads.
      x: f32[n, D], the rows.
    """
    chex.assert_rank([x, support.x, support.response, support.where], [2, 2, 1, 1])
    over_members = jax.vmap(partial(member_scores, config), in_axes=(member_axes(config), None, None))
    return over_members(params, support, x)


def scores_in_blocks(config: ModelConfig, params: EnsembleParams, support: Support, x: Array) -> Array:
    """Returns `scores` of any number of rows, block by block."""
    return by_blocks(lambda rows: scores(config, params, support, rows).T, x).T
