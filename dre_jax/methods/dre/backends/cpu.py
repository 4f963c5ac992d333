"""Training steps on a CPU, by the C++ of `dre_jax.native`; packing of an ensemble's parameters into rows."""

import dataclasses
from collections.abc import Container, Mapping, Sequence

import jax.numpy as jnp
from jax import Array

from dre_jax import native
from dre_jax.methods.dre.backends.reference.request import SampledLists, StepRequest
from dre_jax.methods.dre.model.ensemble import EnsembleParams, deep_set_response
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.nn import networks
from dre_jax.optim.adam import Moments, StepSizes

COMPILED_LOSSES = frozenset({"listmle", "mean_squared_error"})
"""Losses that the C++ supports. Others would gain two to four times too, but no recommended method uses them."""

MODEL_FIELDS: Mapping[str, Container[object] | None] = {
    "members": None,
    "hidden": None,
    "context": ("own", "shared", "none"),
    "phi": None,
    "rho": None,
    "response_scale": ("support", "table"),
    "range_limit": (None,),
    "range_slope": None,  # means nothing without a limit
    "initialiser": None,  # weights are drawn before
}
"""Fields of `ModelConfig` that the C++ supports, with the supported values; None for any value."""


def why_not(request: StepRequest) -> str | None:
    """Returns why the C++ does not take such steps, in a few words; None if it does.

    Supported are the fields and values in `MODEL_FIELDS`, the losses in `COMPILED_LOSSES`, tables of float32, and
    members with lists of their own, unless they share a deep set.
    """
    model = request.model
    values = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    unknown = [name for name, value in values.items() if not _is_known(MODEL_FIELDS.get(name, ()), value)]
    if unknown:
        return f"{unknown[0]}={values[unknown[0]]!r} is not supported"
    return request.why_no_backend(COMPILED_LOSSES) or native.decision().why_not


def _is_known(choices: Container[object] | None, value: object) -> bool:
    return choices is None or value in choices


def take_steps(
    model: ModelConfig,
    loss: str,
    x: Array,
    response: Array,
    start: tuple[EnsembleParams, Moments],
    lists: SampledLists,
    sizes: StepSizes,
    *,
    params_only: bool,
) -> tuple[tuple[EnsembleParams, Moments], Array]:
    """Returns the result of `dre_jax.methods.dre.backends.take_steps`, for steps that `why_not` accepts.

    With ``params_only``, losses are not computed.
    """
    params, moments = start
    support_response = deep_set_response(model, response[lists.support], lists.support_where)
    native_lists = native.Lists(lists.support, lists.support_where, support_response, lists.query, *lists.ranked_list)
    trees = params, *moments
    scorer_names, deep_set_names = _array_names(model)
    scorers = jnp.stack([_pack(tree.scorers, scorer_names, members=True) for tree in trees])
    deep_sets = jnp.zeros((3, 1, 0), x.dtype)
    if params.deep_set is not None:
        by_member = model.context == "own"
        deep_sets = jnp.stack([_pack(tree.deep_set, deep_set_names, members=by_member) for tree in trees])
    scorers, deep_sets, losses = native.train_steps(
        scorers,
        deep_sets,
        x,
        native_lists,
        sizes.size,
        sizes.floor,
        hidden=model.hidden,
        phi=() if model.context == "none" else model.phi,
        rho=model.rho,
        loss=loss,
        wants_losses=not params_only,
    )
    new_params, *new_moments = (
        EnsembleParams(_unpack(a, params.scorers, scorer_names), _unpack(b, params.deep_set, deep_set_names))
        for a, b in zip(scorers, deep_sets, strict=True)
    )
    return (new_params, Moments(*new_moments)), losses


def _array_names(model: ModelConfig) -> tuple[list[str], list[str]]:
    """Returns the names of the arrays of a scorer and of a deep set, layer after layer."""
    scorer = [*(f"hidden_{i}" for i in range(len(model.hidden))), "out"]
    deep_set = [f"{kind}_{i}" for kind in ("phi", "rho") for i in range(len(getattr(model, kind)))]
    names = [[f"{layer}_{part}" for layer in layers for part in ("kernel", "bias")] for layers in (scorer, deep_set)]
    return names[0], names[1]


def _pack(tree: networks.Params, names: Sequence[str], *, members: bool) -> Array:
    """Returns the parameters as rows f32[members, P]; one row if the tree has no axis of members."""
    return jnp.concatenate([tree[name].reshape(len(tree[name]) if members else 1, -1) for name in names], axis=1)


def _unpack(rows: Array, tree: networks.Params, names: Sequence[str]) -> networks.Params:
    """Returns the parameters in the rows of `_pack`, with the shapes of a tree; None for None."""
    if tree is None:
        return None
    arrays, start = {}, 0
    for name in names:
        stop = start + tree[name].size // rows.shape[0]
        arrays[name] = rows[:, start:stop].reshape(tree[name].shape)
        start = stop
    return arrays
