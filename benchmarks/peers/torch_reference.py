"""Deep ranking ensembles in plain, eager PyTorch: a statement of the algorithm to hold the library to.

A Python loop over members, one graph a step, `torch.optim.Adam`, PyTorch's own initialisation. The columns of the
configuration come before the context, as in the library, so that weights can be carried over by `to_torch` and
`host_tree`. Where the published code and the library decide differently (docs/why/decisions.md),
`Ensemble.published` takes the published code's side:

- The loss adds `EPSILON` inside the logarithm after a shift by the maximum; the library's log-sum-exp is exact.
- Equal responses have a new random order at every step; in the library they share one denominator and one weight.
- The loss is the mean over members; the library's is their sum, which Adam sees beside its epsilon only.
- The deep set reads responses scaled over the table; in the library they are scaled over the support.
- A support may be empty, which gives no number; in the library it has at least one row.
- The first candidate of the highest expected improvement is evaluated; the library compares logarithms, which do not
  underflow, and takes a random one of the best.
- All members have the same lists in meta-training, in the library each has its own. The caller draws them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

from dre_jax.data.spaces import Task
from dre_jax.data.tasks import tie_levels, unit_scale
from dre_jax.methods.dre.model.ensemble import EnsembleParams
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.search.acquisition import log_expected_improvement

EPSILON = 1e-10
_SMALLEST_DEVIATION = 1e-9
_EMPTY_LEVEL = torch.iinfo(torch.int64).max
_EMPTY_SCORE = -1e30  # not minus infinity, whose differences are not numbers


class Batch(NamedTuple):
    """B lists side by side, items in any order."""

    support_x: Tensor
    """f[B, k, D]"""
    support_y: Tensor
    """f[B, k], higher is better."""
    x: Tensor
    """f[B, n, D], the items to rank."""
    level: Tensor
    """i64[B, n]: smaller is better, equal where tied."""
    support_where: Tensor | None = None
    """bool[B, k]; None where every slot is filled."""
    where: Tensor | None = None
    """bool[B, n]; likewise."""


def _layers(sizes: Sequence[int]) -> nn.Sequential:
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        parts += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


class DeepSet(nn.Module):
    """Context of a support set (Zaheer et al. 2017), the mean in the middle."""

    def __init__(self, n_columns: int, phi: Sequence[int], rho: Sequence[int]) -> None:
        super().__init__()
        self.phi = _layers((n_columns + 1, *phi))
        self.rho = _layers((phi[-1], *rho))

    def forward(self, x: Tensor, y: Tensor, where: Tensor | None) -> Tensor:
        h = self.phi(torch.cat([x, y[..., None]], dim=-1))
        if where is None:
            return self.rho(h.mean(dim=-2))
        return self.rho((where[..., None] * h).sum(dim=-2) / where.sum(dim=-1, keepdim=True).clamp(min=1))


class Ensemble(nn.Module):
    """Scorers one after the other, behind one deep set, one each, or none."""

    def __init__(self, model: ModelConfig, n_columns: int, *, published: bool = False) -> None:
        super().__init__()
        if model.range_limit is not None:
            raise ValueError(f"the reference has no range controller, but got range_limit={model.range_limit}")
        n_deep_sets = {"own": model.members, "shared": 1, "none": 0}[model.context]
        sizes = (model.scorer_inputs(n_columns), *model.hidden, 1)
        self.scorers = nn.ModuleList(_layers(sizes) for _ in range(model.members))
        self.deep_sets = nn.ModuleList(DeepSet(n_columns, model.phi, model.rho) for _ in range(n_deep_sets))
        self.published = published

    def _inputs(self, deep_set: DeepSet | None, batch: Batch) -> Tensor:
        """Input of a scorer, f[B, n, D + C]."""
        if deep_set is None:
            return batch.x
        y, where = batch.support_y, batch.support_where
        context = deep_set(batch.support_x, y if self.published else scale_response(y, where), where)
        return torch.cat([batch.x, context[..., None, :].expand(*batch.x.shape[:-1], -1)], dim=-1)

    def forward(self, batches: Sequence[Batch]) -> list[Tensor]:
        """Scores of each member, f[B, n] each; one batch for all members, or one for each."""
        deep_sets = list(self.deep_sets) or [None]
        # What all members read alike is worked out once.
        parts = max(len(batches), len(deep_sets))
        inputs = [self._inputs(deep_sets[m % len(deep_sets)], batches[m % len(batches)]) for m in range(parts)]
        return [scorer(inputs[m % parts]).squeeze(-1) for m, scorer in enumerate(self.scorers)]


def scale_response(y: Tensor, where: Tensor | None = None) -> Tensor:
    """Min-max over the last axis, 0.5 where all are equal."""
    low, high = (y if where is None else y.masked_fill(~where, empty) for empty in (torch.inf, -torch.inf))
    low, high = low.amin(dim=-1, keepdim=True), high.amax(dim=-1, keepdim=True)
    spread = high - low
    return torch.where(spread > 0, (y - low) / torch.where(spread > 0, spread, 1.0), 0.5)


class Order(NamedTuple):
    """The order of relevance of a batch's items: what a loss needs to know of their responses."""

    order: Tensor
    """i64[B, n]: the items, best first, empty slots last."""
    weight: Tensor
    """f[B, n] of each position, zero in empty slots."""
    where: Tensor | None
    """bool[B, n]: which positions hold an item; None where all do."""
    first: Tensor | None
    """i64[B, n]: position of the first item of the tie group; None where each item is a group of its own."""


def sort_batch(batch: Batch, generator: torch.Generator | None = None, *, shuffle: bool = False) -> Order:
    """Sorts a batch's items by level, those of one level at random with `shuffle`, and weighs the positions."""
    level = batch.level if batch.where is None else batch.level.masked_fill(~batch.where, _EMPTY_LEVEL)
    if shuffle:
        permutation = torch.randperm(level.shape[-1], generator=generator)
        level, in_order = level[..., permutation].sort(dim=-1, stable=True)
        order, first = permutation[in_order], None
    else:
        level, order = level.sort(dim=-1, stable=True)
        first = torch.searchsorted(level, level)
    weight = (1.0 / torch.log(torch.arange(2, level.shape[-1] + 2, dtype=batch.x.dtype))).expand(level.shape)
    if first is not None:
        total = torch.zeros_like(weight, dtype=torch.float64).scatter_add(-1, first, weight.double())
        count = torch.zeros_like(total).scatter_add(-1, first, torch.ones_like(total))
        weight = (total / count.clamp(min=1)).gather(-1, first).to(weight.dtype)
    where = None if batch.where is None else level != _EMPTY_LEVEL
    return Order(order, weight if where is None else weight * where, where, first)


def listmle(scores: Tensor, items: Order, epsilon: float | None) -> Tensor:
    """Weighted ListMLE (the paper, equation 1); scores f[B, n], in the order of the batch -> f[B]."""
    scores = scores.gather(-1, items.order)
    if items.where is not None:
        scores = scores.masked_fill(~items.where, _EMPTY_SCORE)
    if epsilon is None:
        logs = scores.flip(-1).logcumsumexp(dim=-1).flip(-1)
    else:
        scores = scores - scores.amax(dim=-1, keepdim=True)
        logs = torch.log(scores.exp().flip(-1).cumsum(dim=-1).flip(-1) + epsilon)
    if items.first is not None:
        logs = logs.gather(-1, items.first)
    return (items.weight * (logs - scores)).sum(dim=-1)


def total_loss(ensemble: Ensemble, batches: Sequence[Batch], generator: torch.Generator | None = None) -> Tensor:
    """Loss of all members: of each the mean over its lists."""
    scores, is_published = ensemble(batches), ensemble.published
    parts = max(len(batches), len(scores) if is_published else 1)  # each member shuffles equal responses anew
    orders = [sort_batch(batches[m % len(batches)], generator, shuffle=is_published) for m in range(parts)]
    epsilon = EPSILON if is_published else None
    losses = torch.stack([listmle(one, orders[m % parts], epsilon).mean() for m, one in enumerate(scores)])
    return losses.mean() if is_published else losses.sum()


def adam(ensemble: Ensemble, learning_rate: float) -> torch.optim.Adam:
    return torch.optim.Adam(ensemble.parameters(), lr=learning_rate)


def train_step(ensemble: Ensemble, optimiser: torch.optim.Optimizer, *batches: Any) -> Tensor:
    """One full-batch step on what `total_loss` takes; returns the loss before it."""
    optimiser.zero_grad()
    loss = total_loss(ensemble, *batches)
    loss.backward()
    optimiser.step()
    return loss.detach()


class Table(NamedTuple):
    """One task as tensors, in the order of its file."""

    x: Tensor
    """f32[n, D]"""
    y: Tensor
    """f32[n], scaled to [0, 1] over the table."""
    level: Tensor
    """i64[n]"""


def tensors(task: Task) -> Table:
    return Table(
        torch.tensor(task.X), torch.tensor(unit_scale(task.y)).float(), torch.tensor(tie_levels(task.y)).long()
    )


def draw_lists(tables: Sequence[Table], count: int, generator: torch.Generator, n_query: int = 100) -> Batch:
    """Double sampling: for each list a task, then support and query without replacement.

    A fifth as many rows as the query's feed the deep set, and never more than half of the table; lists that stand side
    by side are cut to the shortest.
    """
    drawn_tables = [tables[i] for i in torch.randint(len(tables), (count,), generator=generator).tolist()]
    shortest = min(len(table.y) for table in drawn_tables)
    k = min(n_query // 5, shortest // 2)
    n = min(n_query, shortest - k)
    rows = [torch.randperm(len(table.y), generator=generator)[: k + n] for table in drawn_tables]
    x, y, level = (
        torch.stack([field[numbers] for field, numbers in zip(fields, rows, strict=True)])
        for fields in zip(*drawn_tables, strict=True)
    )
    return Batch(x[:, :k], y[:, :k], x[:, k:], level[:, k:])


def fine_tune(
    checkpoint: Ensemble,
    history: Table,
    *,
    generator: torch.Generator,
    epochs: int = 1000,
    learning_rate: float = 1e-3,
) -> Ensemble:
    """The checkpoint fitted to a history; at every epoch a fresh fifth of it is the support (Algorithm 2, line 3)."""
    ensemble = copy.deepcopy(checkpoint)
    optimiser = adam(ensemble, learning_rate)
    n = len(history.y)
    k = n // 5 if checkpoint.published else max(1, n // 5)
    for _ in range(epochs):
        rows = torch.randperm(n, generator=generator)
        x, y, level = (field[rows][None] for field in history)
        train_step(ensemble, optimiser, [Batch(x[:, :k], y[:, :k], x[:, k:], level[:, k:])], generator)
    return ensemble


def rank(scores: np.ndarray) -> np.ndarray:
    """Ranks f64[M, n] of scores [M, n], 1 the highest, ties share the mean rank."""
    return stats.rankdata(-scores, method="average", axis=-1)


def expected_improvement(ranks: np.ndarray, logarithm: bool) -> np.ndarray:
    """Of the mean rank of each candidate on the incumbent's, which stands last; f64[M, n + 1] -> f64[n]."""
    mean, deviation = ranks.mean(axis=0), np.maximum(ranks.std(axis=0), _SMALLEST_DEVIATION)
    gain, deviation = mean[-1] - mean[:-1], deviation[:-1]
    if logarithm:
        return log_expected_improvement(-gain, deviation, 0.0)
    z = gain / deviation
    return gain * stats.norm.cdf(z) + deviation * stats.norm.pdf(z)


def suggest(
    ensemble: Ensemble,
    history: Table,
    incumbent: Tensor,
    candidates: Tensor,
    generator: torch.Generator,
) -> int:
    """Number of the candidate that is evaluated next (the paper, Algorithm 2, line 4)."""
    everyone = torch.cat([candidates, incumbent[None]])
    with torch.no_grad():
        scores = ensemble([Batch(history.x[None], history.y[None], everyone[None], torch.zeros(1, 0))])
    values = expected_improvement(rank(torch.cat(scores).cpu().numpy()), logarithm=not ensemble.published)
    best = np.flatnonzero(values == values.max())
    return int(best[0 if ensemble.published else int(torch.randint(len(best), (), generator=generator))])


def _parts(model: ModelConfig, ensemble: Ensemble) -> tuple[list[dict[str, nn.Linear]], list[dict[str, nn.Linear]]]:
    """The layers of each scorer and of each deep set, with the library's names for them."""

    def linears(part: nn.Module, *names: str) -> dict[str, nn.Linear]:
        return dict(zip(names, (layer for layer in part if isinstance(layer, nn.Linear)), strict=True))

    layers, phi, rho = ([f"{name}_{i}" for i in range(len(getattr(model, name)))] for name in ("hidden", "phi", "rho"))
    deep_sets = [linears(module.phi, *phi) | linears(module.rho, *rho) for module in ensemble.deep_sets]
    return [linears(module, *layers, "out") for module in ensemble.scorers], deep_sets


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
