"""Weights, both ways between the library's tree and the PyTorch reference's modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import jax.numpy as jnp
import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.torch_reference import Ensemble
from dre_jax.model import EnsembleParams, ModelConfig


def _linears(part: nn.Sequential, names: Sequence[str]) -> Iterator[tuple[str, nn.Linear]]:
    """The linear layers of a part, with the library's names for them."""
    return zip(names, (layer for layer in part if isinstance(layer, nn.Linear)), strict=True)


def _scorer(model: ModelConfig, module: nn.Module) -> dict[str, nn.Linear]:
    return dict(_linears(module, [*(f"hidden_{i}" for i in range(len(model.hidden))), "out"]))


def _deep_set(model: ModelConfig, module: nn.Module) -> dict[str, nn.Linear]:
    phi = _linears(module.phi, [f"phi_{i}" for i in range(len(model.phi))])
    return {**dict(phi), **dict(_linears(module.rho, [f"rho_{i}" for i in range(len(model.rho))]))}


def _fill(layers: Mapping[str, nn.Linear], tree: Mapping[str, np.ndarray], member: int | None) -> None:
    """Writes a tree's leaves into layers; kernels are [inputs, outputs] there and the transpose here."""
    with torch.no_grad():
        for name, layer in layers.items():
            kernel, bias = (np.asarray(tree[f"{name}_{kind}"]) for kind in ("kernel", "bias"))
            if member is not None:
                kernel, bias = kernel[member], bias[member]
            layer.weight.copy_(torch.tensor(kernel.T.copy()))
            layer.bias.copy_(torch.tensor(bias))


def _read(layers: Mapping[str, nn.Linear], gradient: bool) -> dict[str, np.ndarray]:
    def values(parameter: Tensor) -> np.ndarray:
        found = parameter.grad if gradient else parameter
        return np.zeros(parameter.shape) if found is None else found.detach().numpy().copy()

    kernels = {f"{name}_kernel": values(layer.weight).T for name, layer in layers.items()}
    return kernels | {f"{name}_bias": values(layer.bias) for name, layer in layers.items()}


def to_torch(
    model: ModelConfig, params: EnsembleParams, response_scale: str, dtype: torch.dtype = torch.float32
) -> Ensemble:
    """An ensemble of modules with the library's parameters."""
    inputs = params.scorers["hidden_0_kernel"].shape[-2]
    n_columns = inputs - (model.scorer_inputs(0) if model.context != "none" else 0)
    ensemble = Ensemble(model, n_columns, response_scale).to(dtype)
    for m, module in enumerate(ensemble.scorers):
        _fill(_scorer(model, module), params.scorers, m)
    for m, module in enumerate(ensemble.deep_sets):
        _fill(_deep_set(model, module), params.deep_set, m if model.context == "own" else None)
    return ensemble


def from_torch(model: ModelConfig, ensemble: Ensemble, *, gradient: bool = False) -> EnsembleParams:
    """The library's tree, f32 on the device, of an ensemble's parameters."""
    tree = host_tree(model, ensemble, gradient=gradient)
    parts = ({k: jnp.asarray(v, jnp.float32) for k, v in part.items()} if part else None for part in tree)
    return EnsembleParams(*parts)


def host_tree(model: ModelConfig, ensemble: Ensemble, *, gradient: bool = False) -> EnsembleParams:
    """Like `from_torch`, of NumPy arrays in the ensemble's own dtype; or of its gradients."""

    def stack(trees: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        return {name: np.stack([tree[name] for tree in trees]) for name in trees[0]}

    scorers = stack([_read(_scorer(model, module), gradient) for module in ensemble.scorers])
    deep_sets = [_read(_deep_set(model, module), gradient) for module in ensemble.deep_sets]
    if model.context == "none":
        return EnsembleParams(scorers, None)
    return EnsembleParams(scorers, stack(deep_sets) if model.context == "own" else deep_sets[0])
