"""Deep ranking ensembles in PyTorch, as fast as we can write them: the peer that ours is compared with.

Members, and runs where there are several, stand side by side in batched matrix products. All parameters lie in one
flat vector, and so do Adam's moments. The gradient is written by hand, since autograd's own overhead is larger than
the work of an epoch. What is linear is done once: the deep set's last layer before the mean is applied to the mean,
and the context's share of the first layer to one row. A history is sorted once a trial and a task once; row numbers in
order are then the order of relevance. The step is handed to `torch.compile`, and on a GPU recorded as a CUDA graph.

The loss is the exact one: sums of exponentials with one shift, checked at the end of a block of epochs; a block in
which such a sum was too small to be told from zero is taken back and done again in logarithms.

tests/benchmarks/test_torch_best.py holds it to `benchmarks.peers.torch_reference`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dre_jax.methods.dre.model.model_config import ModelConfig

Leaves = dict[str, Tensor]
Step = Callable[..., Tensor]
Recording = tuple[Any, list[Tensor | None], Tensor]
"""A graph, the lists and sizes that it reads, and the smallest sum that it leaves."""

BLOCK = 50
"""Epochs whose rows are read at once."""
_SMALLEST_SUM = 3e-30  # of exponentials with one shift: what is lost beside a larger one is below float32's digits
_relu_backward = torch.ops.aten.threshold_backward


@dataclass(frozen=True)
class Layout:
    """Where the parameters of G members lie in a flat vector, leaf by leaf, members in front."""

    model: ModelConfig
    n_columns: int
    groups: int

    def __post_init__(self) -> None:
        if self.model.context == "none" or self.model.range_limit is not None:
            raise ValueError(f"there must be deep sets, and free scores, but got {self.model}")

    @property
    def sets(self) -> int:
        """Deep sets: one for each member, or one for all members of a run."""
        return self.groups if self.model.context == "own" else self.groups // self.model.members

    def leaves(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs by name; the context's share of the first layer is a kernel of its own."""
        model = self.model
        sizes_by_name = {"context_kernel": (model.rho[-1], model.hidden[0])}
        parts = {
            "phi": (self.n_columns + 1, *model.phi),
            "rho": (model.phi[-1], *model.rho),
            "hidden": (self.n_columns, *model.hidden),
        }
        for part, sizes in parts.items():
            for i, (inputs, outputs) in enumerate(pairwise(sizes)):
                sizes_by_name |= {f"{part}_{i}_kernel": (inputs, outputs), f"{part}_{i}_bias": (1, outputs)}
        return sizes_by_name | {"out_kernel": (model.hidden[-1], 1), "out_bias": (1, 1)}

    def shapes(self) -> dict[str, tuple[int, int, int]]:
        """Members or deep sets, inputs and outputs by name."""
        counts = {name: self.sets if name.startswith(("phi", "rho")) else self.groups for name in self.leaves()}
        return {name: (counts[name], *sizes) for name, sizes in self.leaves().items()}

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes().values())

    def views(self, flat: Tensor) -> Leaves:
        """Every leaf [G, inputs, outputs]; those of deep sets that members share [runs, inputs, outputs]."""
        shapes = self.shapes()
        parts = flat.split([math.prod(shape) for shape in shapes.values()])
        return {name: part.view(shapes[name]) for name, part in zip(shapes, parts, strict=True)}

    def spread(self, context: Tensor) -> Tensor:
        """The output of deep sets, [sets, ...], for every member, [G, ...]."""
        return context if self.sets == self.groups else context.repeat_interleave(self.model.members, dim=0)

    def gather(self, of_context: Tensor) -> Tensor:
        """The other way for gradients: summed over the members that share a deep set."""
        return of_context if self.sets == self.groups else of_context.unflatten(0, (self.sets, -1)).sum(dim=1)

    def join(self, leaves: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([leaves[name].reshape(-1) for name in self.leaves()])

    def pack(self, tree: Any, **place: Any) -> Tensor:
        """The flat vector of the library's tree (`EnsembleParams`); members are repeated to fill the groups."""
        leaves = {**tree.scorers, **tree.deep_set}
        kernel = leaves["hidden_0_kernel"]
        leaves["hidden_0_kernel"], leaves["context_kernel"] = kernel[:, : self.n_columns], kernel[:, self.n_columns :]
        runs = self.groups // self.model.members
        tensors = {name: torch.as_tensor(leaves[name], **place) for name in self.leaves()}
        return self.join({n: tensors[n].reshape(-1, *s).repeat(runs, 1, 1) for n, s in self.leaves().items()})


class Lists(NamedTuple):
    """The data of a step; G may be 1 where all members read the same. All slots are filled."""

    support: Tensor
    """f[G, B, k, D + 1], the response as the deep set sees it in the last column; a list for each deep set."""
    x: Tensor
    """f[G, B, n, D], in the order of relevance."""
    weight: Tensor
    """f[G, B, n], of each position."""
    first: Tensor | None
    """i64[G, B, n]: first item of the tie group; None where nothing is tied."""
    last: Tensor | None
    """i64[G, B, n]: last item."""


class Scores(NamedTuple):
    """Scores and what the backward pass needs of the forward pass."""

    scores: Tensor
    """f[G, B, n]"""
    phi: list[Tensor]
    """Outputs of the first layers of the deep set, f[G, B k, .]"""
    rho: list[Tensor]
    """The mean, the deep set's outputs after it, and the context last, f[G, B, .]"""
    hidden: list[Tensor]
    """Outputs of the scorer's hidden layers, f[G, B n, .]"""


def forward(layout: Layout, p: Leaves, support: Tensor, x: Tensor) -> Scores:
    """Scores of f[G, B, n, D] behind supports f[G, B, k, D + 1]."""
    model, groups, sets = layout.model, layout.groups, layout.sets
    lists, k, n = x.shape[1], support.shape[2], x.shape[2]
    h, phi = support.expand(sets, -1, -1, -1).reshape(sets, lists * k, -1), []
    for i in range(len(model.phi) - 1):
        h = torch.baddbmm(p[f"phi_{i}_bias"], h, p[f"phi_{i}_kernel"]).relu()
        phi.append(h)
    h = h.view(sets, lists, k, -1).mean(dim=2)
    rho, top = [h], len(model.phi) - 1
    h = torch.baddbmm(p[f"phi_{top}_bias"], h, p[f"phi_{top}_kernel"])
    rho.append(h)
    for i in range(len(model.rho)):
        h = torch.baddbmm(p[f"rho_{i}_bias"], h, p[f"rho_{i}_kernel"])
        h = h.relu() if i < len(model.rho) - 1 else h
        rho.append(h)
    shared = torch.baddbmm(p["hidden_0_bias"], layout.spread(h), p["context_kernel"])
    rows = x.expand(groups, -1, -1, -1).reshape(groups, lists * n, -1)
    if lists == 1:
        h = torch.baddbmm(shared, rows, p["hidden_0_kernel"]).relu()
    else:
        h = torch.bmm(rows, p["hidden_0_kernel"]).view(groups, lists, n, -1) + shared[:, :, None]
        h = h.relu().view(groups, lists * n, -1)
    activations = [h]
    for i in range(1, len(model.hidden)):
        h = torch.baddbmm(p[f"hidden_{i}_bias"], h, p[f"hidden_{i}_kernel"]).relu()
        activations.append(h)
    scores = torch.baddbmm(p["out_bias"], h, p["out_kernel"]).view(groups, lists, n)
    return Scores(scores, phi, rho, activations)


def backward(layout: Layout, p: Leaves, lists: Lists, outputs: Scores, gradient: Tensor) -> Leaves:
    """Gradient of all leaves from that of the scores, f[G, B, n]."""
    model, groups, sets = layout.model, layout.groups, layout.sets
    count, k, n = lists.x.shape[1], lists.support.shape[2], lists.x.shape[2]
    result: Leaves = {}

    def layer(name: str, inputs: Tensor, d: Tensor, *, onward: bool = True, through: Tensor | None = None) -> Tensor:
        """A layer's gradient; that of its inputs is returned, behind the ReLU whose output is given."""
        result[f"{name}_kernel"] = torch.bmm(inputs.transpose(1, 2), d)
        result[f"{name}_bias"] = d.sum(dim=1, keepdim=True)
        if not onward:
            return d
        d = torch.bmm(d, p[f"{name}_kernel"].transpose(1, 2))
        return d if through is None else _relu_backward(d, through, 0)

    activations, rho, phi = outputs.hidden, outputs.rho, outputs.phi
    d = layer("out", activations[-1], gradient.reshape(groups, count * n, 1), through=activations[-1])
    for i in range(len(activations) - 1, 0, -1):
        d = layer(f"hidden_{i}", activations[i - 1], d, through=activations[i - 1])
    rows = lists.x.expand(groups, -1, -1, -1).reshape(groups, count * n, -1)
    result["hidden_0_kernel"] = torch.bmm(rows.transpose(1, 2), d)
    d = d.view(groups, count, n, -1).sum(dim=2)
    result["hidden_0_bias"] = d.sum(dim=1, keepdim=True)
    result["context_kernel"] = torch.bmm(layout.spread(rho[-1]).transpose(1, 2), d)
    d = layout.gather(torch.bmm(d, p["context_kernel"].transpose(1, 2)))
    for i in range(len(model.rho) - 1, -1, -1):
        d = layer(f"rho_{i}", rho[i + 1], d, through=rho[i + 1] if i else None)
    top = len(model.phi) - 1
    d = layer(f"phi_{top}", rho[0], d)
    support = lists.support.expand(sets, -1, -1, -1).reshape(sets, count * k, -1)
    if top:
        d = (d[:, :, None] / k).expand(-1, -1, k, -1).reshape(sets, count * k, -1)
        d = _relu_backward(d, phi[-1], 0)
    for i in range(top - 1, -1, -1):
        inputs = phi[i - 1] if i else support
        d = layer(f"phi_{i}", inputs, d, onward=i > 0, through=inputs if i else None)
    return result


def shifted_gradient(scores: Tensor, lists: Lists, triangle: Tensor) -> tuple[Tensor, Tensor]:
    """ListMLE's gradient by sums with one shift a list, and the smallest of the sums."""
    terms = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    sums = terms @ triangle
    if lists.first is not None:
        sums = sums.gather(-1, lists.first.expand(sums.shape))
    share = (lists.weight / sums) @ triangle.T
    if lists.last is not None:
        share = share.gather(-1, lists.last.expand(sums.shape))
    return terms * share - lists.weight, sums.amin()


def logarithmic_gradient(scores: Tensor, lists: Lists) -> Tensor:
    """The same in logarithms, at any range of scores."""
    logs = scores.flip(-1).logcumsumexp(dim=-1).flip(-1)
    if lists.first is not None:
        logs = logs.gather(-1, lists.first.expand(logs.shape))
    share = (lists.weight.log() - logs).logcumsumexp(dim=-1)
    if lists.last is not None:
        share = share.gather(-1, lists.last.expand(logs.shape))
    return (scores + share).exp() - lists.weight


def gradient(layout: Layout, flat: Tensor, lists: Lists, triangle: Tensor | None) -> tuple[Tensor, Tensor]:
    """Gradient of the sum over members of the mean loss over lists; without a triangle, in logarithms."""
    p = layout.views(flat)
    outputs = forward(layout, p, lists.support, lists.x)
    if triangle is None:
        of_scores, smallest = logarithmic_gradient(outputs.scores, lists), torch.ones((), device=flat.device)
    else:
        of_scores, smallest = shifted_gradient(outputs.scores, lists, triangle)
    if lists.x.shape[1] > 1:
        of_scores = of_scores / lists.x.shape[1]
    return layout.join(backward(layout, p, lists, outputs, of_scores)), smallest


class State(NamedTuple):
    """Parameters and Adam's moments, changed in place."""

    flat: Tensor
    first: Tensor
    second: Tensor


def start(flat: Tensor) -> State:
    return State(flat.clone(), torch.zeros_like(flat), torch.zeros_like(flat))


def step_sizes(learning_rate: float, steps: range, like: Tensor) -> Tensor:
    """Adam's step size and floor of each step, f[steps, 2], the bias corrections folded in; steps count from 1."""
    pairs = [(learning_rate * math.sqrt(1 - 0.999**t) / (1 - 0.9**t), 1e-8 * math.sqrt(1 - 0.999**t)) for t in steps]
    return torch.tensor(pairs, dtype=like.dtype, device=like.device)


def train_step(layout: Layout, state: State, lists: Lists, triangle: Tensor | None, size: Tensor) -> Tensor:
    """One Adam step in place; returns the smallest sum of exponentials."""
    g, smallest = gradient(layout, state.flat, lists, triangle)
    state.first.lerp_(g, 0.1)
    state.second.mul_(0.999).addcmul_(g, g, value=0.001)
    state.flat.sub_(size[0] * state.first / (state.second.sqrt() + size[1]))
    return smallest


class Trainer:
    """Does blocks of steps, eagerly, compiled, or compiled and recorded as a CUDA graph."""

    def __init__(self, layout: Layout, flat: Tensor, *, compiled: bool, graph: bool = False) -> None:
        self.layout, self.state, self.graph = layout, start(flat), graph
        self.step: Step = torch.compile(train_step, fullgraph=True, dynamic=False) if compiled else train_step
        self._recordings: dict[Any, Recording] = {}
        self._triangles: dict[int, Tensor] = {}

    def block(self, lists: Lists, sizes: Tensor) -> None:
        """Steps one after the other: every field of the lists, and the sizes, with the steps in front."""
        n = lists.x.shape[-2]
        if n not in self._triangles:
            self._triangles[n] = torch.ones(n, n, dtype=lists.x.dtype, device=lists.x.device).tril()
        before = [part.clone() for part in self.state]
        full = self.graph and len(sizes) == BLOCK
        smallest = self._replay(lists, sizes) if full else self._run(self.step, lists, sizes, self._triangles[n])
        if not float(smallest) > _SMALLEST_SUM:
            _copy(self.state, before)
            self._run(train_step, lists, sizes, None)

    def _run(self, step: Step, lists: Lists, sizes: Tensor, triangle: Tensor | None) -> Tensor:
        each = (Lists(*(None if field is None else field[i] for field in lists)) for i in range(len(sizes)))
        smallest = [step(self.layout, self.state, one, triangle, sizes[i]) for i, one in enumerate(each)]
        return torch.stack(smallest).amin()

    def _replay(self, lists: Lists, sizes: Tensor) -> Tensor:
        """The block as a CUDA graph, recorded at the first call with its shapes."""
        shapes = tuple(None if field is None else field.shape for field in lists)
        if shapes not in self._recordings:
            self._recordings[shapes] = self._record(lists, sizes)
        graph, buffers, smallest = self._recordings[shapes]
        _copy(buffers, [*lists, sizes])
        graph.replay()
        return smallest

    def _record(self, lists: Lists, sizes: Tensor) -> Recording:
        """Runs a block aside, so that all is compiled, then records one; the state is as before."""
        before = [part.clone() for part in self.state]
        buffers = [None if field is None else field.contiguous().clone() for field in (*lists, sizes)]
        *fields, sizes_buffer = buffers
        arguments = self.step, Lists(*fields), sizes_buffer, self._triangles[lists.x.shape[-2]]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._run(*arguments)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            smallest = self._run(*arguments)
        _copy(self.state, before)
        return graph, buffers, smallest

    def restart(self, flat: Tensor) -> None:
        """Sets the parameters, and moments of zero; compiled and recorded programs stay."""
        _copy(self.state, start(flat))


def _copy(into: Sequence[Tensor | None], what: Sequence[Tensor | None]) -> None:
    for target, source in zip(into, what, strict=True):
        if target is not None:
            target.copy_(source)
