"""Meta-training over a mesh of devices: members along one axis, the lists of a step along the other.

Members with their own deep sets are independent in training, so that their devices exchange nothing. Devices that share
the lists of a member average its gradient at every step; with a shared deep set, all devices do.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from dre_jax.methods.dre.model.ensemble import EnsembleParams
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.state import TrainState
from dre_jax.optim.adam import Moments
from dre_jax.runtime import devices

MEMBERS, LISTS = "members", "lists"

T = TypeVar("T")


def mesh_for(model: ModelConfig, lists_per_step: int) -> Mesh | None:
    """Returns the mesh of this process's devices for meta-training; None if one device is enough.

    Every device has a whole number of members, and of the lists of a step. Members come first; those with a shared
    deep set stay together.
    """
    here = devices.local()
    shape = devices.dividing_shape(len(here), 1 if model.context == "shared" else model.members, lists_per_step)
    return None if shape == (1, 1) else devices.make_mesh(here, shape, (MEMBERS, LISTS))


def _carry_spec(model: ModelConfig) -> tuple[EnsembleParams, Moments]:
    """Returns the partition of parameters and moments: by member, and a shared deep set on all devices."""
    spec = EnsembleParams(P(MEMBERS), P() if model.context == "shared" else P(MEMBERS))
    return spec, Moments(spec, spec)


def lists_spec(own_lists: bool) -> P:
    """Returns the partition of arrays [steps, members, lists, ...]; shared lists have one member."""
    return P(None, MEMBERS if own_lists else None, LISTS)


def shard_over_mesh(
    scan: Callable[..., Any], mesh: Mesh, model: ModelConfig, own_lists: bool, *, is_gathered: bool
) -> Callable[..., Any]:
    """Returns a scan over training steps, in which each device has its own members and lists.

    The scan is ``(source, (params, moments), bits, sizes) -> ((params, moments), losses)``. Bits are partitioned as in
    `lists_spec`, and so is the source if it ``is_gathered``, not one table. Losses are f32[steps, members].
    """
    carry, lists = _carry_spec(model), lists_spec(own_lists)
    return jax.shard_map(
        scan,
        mesh=mesh,
        in_specs=(lists if is_gathered else P(), carry, lists, P()),
        out_specs=(carry, P(None, MEMBERS)),
        check_vma=False,
    )


def mean_over_lists(mesh: Mesh) -> Callable[[T], T] | None:
    """Returns the function for the mean over the devices of a member's lists; None if each member has one device."""
    if mesh.shape[LISTS] == 1:
        return None
    return lambda tree: lax.pmean(tree, LISTS)


def spread(model: ModelConfig, mesh: Mesh | None, state: TrainState) -> TrainState:
    """Puts each member's parameters and moments on its devices, from NumPy arrays or from any device."""
    host = jax.tree.map(np.asarray, state)
    if mesh is None:
        return put_on_first(host)
    carry = jax.tree.map(partial(NamedSharding, mesh), _carry_spec(model))
    params, moments = jax.device_put((host.params, host.moments), carry)
    return TrainState(params, moments, replicate(mesh, host.step))


def replicate(mesh: Mesh | None, tree: T) -> T:
    """Puts whole arrays on all devices."""
    return put_on_first(tree) if mesh is None else jax.device_put(tree, NamedSharding(mesh, P()))


def put_on_first(tree: T) -> T:
    """Puts whole arrays on this process's first device.

    The device is named although it is the default, because JAX compiles a program for arguments that somebody put on
    a device and another one for arguments that nobody did.
    """
    return jax.device_put(tree, devices.local()[0])


def collect(state: TrainState) -> TrainState:
    """Returns the state of `spread` in NumPy arrays: copies, because the next step overwrites its arguments."""
    return jax.tree.map(np.array, state)
