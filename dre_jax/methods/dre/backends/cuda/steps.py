"""Training steps by the CUDA kernel: parameters as the kernel lays them out, and one launch for all runs of a batch."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_batching import custom_vmap

from dre_jax.methods.dre.backends.cuda.library import CALL, add_kernel
from dre_jax.methods.dre.backends.cuda.plan import Limits, Plan, Precision, Sizes, plan_for, round_up
from dre_jax.methods.dre.backends.reference.request import SampledLists
from dre_jax.methods.dre.backends.reference.scan import take_steps as take_steps_by_scan
from dre_jax.methods.dre.model.ensemble import EnsembleParams, deep_set_response
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.optim.adam import Moments, StepSizes

_Problem = tuple[Array, Array, tuple[EnsembleParams, Moments], SampledLists, StepSizes]
"""The arguments of the scan: configurations, responses, start, lists and sizes of steps."""


class _Launch(NamedTuple):
    """The static part of a launch."""

    model: ModelConfig
    sizes: Sizes
    limits: Limits
    precision: Precision
    params_only: bool


def take_steps(
    model: ModelConfig,
    limits: Limits,
    precision: Precision,
    x: Array,
    response: Array,
    start: tuple[EnsembleParams, Moments],
    lists: SampledLists,
    sizes: StepSizes,
    *,
    params_only: bool,
) -> tuple[tuple[EnsembleParams, Moments], Array]:
    """Returns the result of `dre_jax.methods.dre.backends.take_steps`. Under `vmap`, the runs are the grid of a launch.

    ``limits`` are those of the device, ``precision`` that of the products. If the device refuses the kernel, XLA
    computes the steps by the scan.
    """
    n_lists, support = lists.support.shape[-2:]
    shape = Sizes(x.shape[1], support, lists.query.shape[-1], n_lists)
    launch = _Launch(model, shape, limits, precision, params_only)
    plan = _plan(launch, 1)
    params, moments = start
    bounds = lists.ranked_list.first.astype(jnp.uint32) | lists.ranked_list.last.astype(jnp.uint32) << jnp.uint32(16)
    nothing = jnp.zeros((model.members, 0), jnp.float32)
    arrays = (
        pack(plan, params, model.members),
        *(nothing if params_only else pack(plan, moment, model.members) for moment in moments),
        jnp.pad(x, ((0, 0), (0, plan.x_stride - x.shape[1]))),
        lists.support,
        jnp.where(lists.support_where, deep_set_response(model, response[lists.support], lists.support_where), 0.0),
        jnp.sum(lists.support_where, axis=-1, dtype=jnp.int32),
        lists.query,
        bounds,
        lists.ranked_list.weight,
        jnp.sum(lists.ranked_list.where, axis=-1, dtype=jnp.int32),
        *sizes,
    )
    problem = x, response, start, lists, sizes
    batched = jax.tree.map(lambda a: a[None], (arrays, problem))
    new_params, first, second, losses = (a[0] for a in _launcher(launch, 1)(*batched))
    if params_only:
        return (unpack(plan, new_params, params), moments), jnp.zeros((sizes.size.shape[0], model.members))
    return (unpack(plan, new_params, params), Moments(*(unpack(plan, a, params) for a in (first, second)))), losses


def _plan(launch: _Launch, runs: int) -> Plan:
    plan = plan_for(launch.model, launch.sizes, launch.limits, runs * launch.model.members, launch.precision)
    assert plan is not None  # `supports` asks before
    return plan


def _launcher(launch: _Launch, runs: int) -> custom_vmap:
    """Returns the call for a number of runs. Arrays have the runs in front, or a dimension of one that all runs share.

    The call takes the arrays of the kernel, and the arguments of the scan that may replace it. The layout of parameters
    does not depend on the number of runs. Threads and shared memory do, so only this call selects the kernel.
    """

    @custom_vmap
    def call(arrays: tuple[Array, ...], problem: _Problem) -> tuple[Array, ...]:
        plan = _plan(launch, runs)
        number = add_kernel(plan, launch.limits)
        return _scan(launch, plan, runs, problem) if number is None else _call(launch, plan, number, runs, arrays)

    @call.def_vmap
    def over_more_runs(axis_size: int, in_batched: Any, *arguments: Any) -> Any:
        merged = jax.tree.map(lambda a, b: _merge_runs(a, axis_size, runs, has_axis=b), arguments, tuple(in_batched))
        results = _launcher(launch, axis_size * runs)(*merged)
        return tuple(a.reshape(axis_size, runs, *a.shape[1:]) for a in results), (True,) * len(results)

    return call


def _merge_runs(a: Array, axis_size: int, runs: int, *, has_axis: bool) -> Array:
    """Returns an array with all runs in front; with one, if all share it."""
    if not has_axis and a.shape[0] == 1:
        return a
    a = a if has_axis else a[None]
    return jnp.broadcast_to(a, (axis_size, runs, *a.shape[2:])).reshape(axis_size * runs, *a.shape[2:])


def _scan(launch: _Launch, plan: Plan, runs: int, problem: _Problem) -> tuple[Array, ...]:
    """Returns the results of `_call`, computed by XLA."""
    model = launch.model

    def of_run(problem: _Problem) -> tuple[Array, ...]:
        (params, moments), losses = take_steps_by_scan(model, "listmle", *problem)
        if launch.params_only:
            nothing = jnp.zeros((model.members, 0), jnp.float32)
            return pack(plan, params, model.members), nothing, nothing, jnp.zeros((0, model.members), jnp.float32)
        return *(pack(plan, tree, model.members) for tree in (params, *moments)), losses

    return jax.vmap(of_run)(jax.tree.map(lambda a: jnp.broadcast_to(a, (runs, *a.shape[1:])), problem))


def _call(launch: _Launch, plan: Plan, number: int, runs: int, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    members, n_steps = launch.model.members, arrays[-1].shape[-1]
    moments = 0 if launch.params_only else plan.parameters
    shapes = [
        (runs, members, plan.parameters),
        (runs, members, moments),
        (runs, members, moments),
        (runs, 0 if launch.params_only else n_steps, members),
        (plan.scratch_floats(runs, members),),
    ]
    results = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    call = jax.ffi.ffi_call(CALL, results)
    numbers = {"kernel": number, "group": plan.group, "multiprocessors": max(1, launch.limits.multiprocessors)}
    attributes = {name: np.int64(value) for name, value in numbers.items()}
    return tuple(call(*arrays, **attributes, zeroed=np.bool_(plan.blocks_wait)))[:4]


def pack(plan: Plan, params: EnsembleParams, members: int) -> Array:
    """Returns parameters as rows of the kernel's layout, f32[members, parameters]; a shared deep set in every row."""
    rows = list[Array]()
    for part, next_position in zip(plan.parts, (*plan.positions[1:], plan.parameters), strict=True):
        leaf = jnp.asarray(getattr(params, part.tree)[part.leaf])
        if plan.shares_deep_set and part.tree == "deep_set":
            leaf = jnp.broadcast_to(leaf[None], (members, *leaf.shape))
        leaf = leaf.reshape(members, -1, part.width)[:, part.start : part.start + part.size]
        height = (next_position - plan.positions[len(rows)]) // plan.stride
        padding = (0, 0), (0, height - part.size), (0, plan.stride - part.width)
        rows.append(jnp.pad(leaf, padding).reshape(members, -1))
    return jnp.concatenate(rows, axis=1)


def unpack(plan: Plan, rows: Array, like: EnsembleParams) -> EnsembleParams:
    """Returns the inverse of `pack`, with the shapes of a tree."""
    members = rows.shape[0]
    pieces: dict[tuple[str, str], list[Array]] = {}
    for part, position in zip(plan.parts, plan.positions, strict=True):
        size = (round_up(part.size, 8) if not part.is_vector else 1) * plan.stride
        piece = rows[:, position : position + size].reshape(members, -1, plan.stride)[:, : part.size, : part.width]
        pieces.setdefault((part.tree, part.leaf), []).append((part.start, piece))  # type: ignore[arg-type]

    def leaf(tree: str, name: str, old: Array) -> Array:
        parts = [piece for _, piece in sorted(pieces[tree, name], key=lambda item: item[0])]
        whole = jnp.concatenate(parts, axis=1)
        return (whole[0] if plan.shares_deep_set and tree == "deep_set" else whole).reshape(old.shape)

    return EnsembleParams(
        *(
            None if old is None else {name: leaf(tree, name, array) for name, array in old.items()}
            for tree, old in zip(like._fields, like, strict=True)
        )
    )
