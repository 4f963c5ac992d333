"""Weights, both ways between the library's tree and the PyTorch reference's modules."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.torch_reference import Ensemble
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.dre.model_config import ModelConfig


def _parts(model: ModelConfig, ensemble: Ensemble) -> tuple[list[dict[str, nn.Linear]], list[dict[str, nn.Linear]]]:
    """The layers of each scorer and of each deep set, with the library's names for them."""

    def linears(part: nn.Module, *names: str) -> dict[str, nn.Linear]:
        return dict(zip(names, (layer for layer in part if isinstance(layer, nn.Linear)), strict=True))

    hidden, phi, rho = ([f"{name}_{i}" for i in range(len(getattr(model, name)))] for name in ("hidden", "phi", "rho"))
    deep_sets = [linears(module.phi, *phi) | linears(module.rho, *rho) for module in ensemble.deep_sets]
    return [linears(module, *hidden, "out") for module in ensemble.scorers], deep_sets


def to_torch(model: ModelConfig, params: EnsembleParams, dtype: torch.dtype = torch.float32) -> Ensemble:
    inputs = params.scorers["hidden_0_kernel"].shape[-2]
    n_columns = inputs - (model.scorer_inputs(0) if model.context != "none" else 0)
    ensemble = Ensemble(model, n_columns).to(dtype)
    for modules, tree in zip(_parts(model, ensemble), params, strict=True):
        for m, layers in enumerate(modules):
            for name, layer in layers.items():
                kernel, bias = (np.asarray(tree[f"{name}_{kind}"]) for kind in ("kernel", "bias"))
                if bias.ndim == 2:  # one for each member
                    kernel, bias = kernel[m], bias[m]
                with torch.no_grad():
                    layer.weight.copy_(torch.tensor(kernel.T.copy()))  # [inputs, outputs] there, the transpose here
                    layer.bias.copy_(torch.tensor(bias))
    return ensemble


def host_tree(model: ModelConfig, ensemble: Ensemble, *, gradient: bool = False) -> EnsembleParams:
    """The library's tree of an ensemble's parameters, or of its gradients, in the ensemble's own dtype."""

    def values(parameter: Tensor) -> np.ndarray:
        tensor = parameter.grad if gradient else parameter
        return np.zeros(parameter.shape) if tensor is None else tensor.detach().numpy().copy()

    def stack(modules: list[dict[str, nn.Linear]]) -> dict[str, np.ndarray]:
        kernels = {f"{name}_kernel": [values(module[name].weight).T for module in modules] for name in modules[0]}
        biases = {f"{name}_bias": [values(module[name].bias) for module in modules] for name in modules[0]}
        return {name: np.stack(leaves) for name, leaves in (kernels | biases).items()}

    scorers, deep_sets = _parts(model, ensemble)
    if not deep_sets:
        return EnsembleParams(stack(scorers), None)
    shared = stack(deep_sets)
    if model.context == "shared":
        shared = {name: leaf[0] for name, leaf in shared.items()}
    return EnsembleParams(stack(scorers), shared)
