"""Around `benchmarks.peers.torch_best`: drawn epochs and lists, tie groups, a trial, meta-training."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.peers.torch_best import BLOCK, Layout, Lists, Trainer, forward, step_sizes
from benchmarks.peers.torch_reference import scale_response

_SMALLEST_DEVIATION = 1e-9


class Histories(NamedTuple):
    """R histories of one length, each sorted by response, best first."""

    x: Tensor
    """f[R, n, D]"""
    response: Tensor
    """f[R, n]"""
    level: Tensor
    """i64[R, n], equal where tied."""


def sort_histories(histories: Histories) -> Histories:
    """Once a trial; ties stay in the order given."""
    level, order = histories.level.sort(dim=-1, stable=True)
    columns = order[..., None].expand(histories.x.shape)
    return Histories(histories.x.gather(1, columns), histories.response.gather(1, order), level)


def weigh(level: Tensor, tied: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Inverse-log weights of sorted levels i64[..., n], and the ends of the tie groups if there are any."""
    n, level = level.shape[-1], level.contiguous()
    each = 1.0 / torch.log(torch.arange(2, n + 2, dtype=torch.float64, device=level.device))
    if not tied:
        return each.to(dtype).expand(level.shape), None, None
    first = torch.searchsorted(level, level)
    last = torch.searchsorted(level, level, right=True) - 1
    running = torch.cat([each.new_zeros(1), each.cumsum(0)])
    return ((running[last + 1] - running[first]) / (last - first + 1)).to(dtype), first, last


def draw(count: int, n: int, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """For each epoch k row numbers of n, and the others, both in increasing order: i64[count, k], i64[count, n - k]."""
    order = torch.rand(count, n, generator=generator, device=generator.device).argsort(dim=-1)
    return order[:, :k].sort(dim=-1).values, order[:, k:].sort(dim=-1).values


def read_epochs(histories: Histories, layout: Layout, support: Tensor, query: Tensor, *, tied: bool) -> Lists:
    """Epochs of row numbers i64[E, R, k] and i64[E, R, n - k] as lists, runs and members side by side."""
    runs = torch.arange(len(histories.x), device=histories.x.device)[None]
    one = read_lists(histories, runs, support, query, tied=tied)
    rest = (None if field is None else _for_members(field, layout.model.members) for field in one[1:])
    return Lists(_for_members(one.support, layout.sets // len(histories.x)), *rest)


def _for_members(field: Tensor, members: int) -> Tensor:
    """[E, R, ...] -> [E, G, 1, ...], G being 1 for a single run: members read the same."""
    if field.shape[1] > 1:
        field = field.repeat_interleave(members, dim=1)
    return field[:, :, None]


def fine_tune(
    trainer: Trainer, histories: Histories, *, epochs: int, learning_rate: float, generator: torch.Generator
) -> None:
    """Fits the trainer's parameters to sorted histories; a fresh fifth of each is the support of an epoch."""
    runs, n = histories.level.shape
    k = max(1, n // 5)
    tied = bool((histories.level[:, 1:] == histories.level[:, :-1]).any())
    sizes = step_sizes(learning_rate, range(1, epochs + 1), histories.x)
    for first in range(0, epochs, BLOCK):
        count = min(BLOCK, epochs - first)
        support, query = (rows.view(count, runs, -1) for rows in draw(count * runs, n, k, generator))
        lists = read_epochs(histories, trainer.layout, support, query, tied=tied)
        trainer.block(lists, sizes[first : first + count])


def mean_ranks(scores: Tensor) -> Tensor:
    """Rank f64 of each score in its row, 1 the highest, ties share the mean rank."""
    values = -scores.contiguous()
    in_order = values.sort(dim=-1).values
    first = torch.searchsorted(in_order, values)
    last = torch.searchsorted(in_order, values, right=True)
    return (first + last + 1).to(torch.float64) / 2.0


def log_improvement(ranks: Tensor) -> Tensor:
    """Logarithm of the expected improvement on the last column's mean rank; f64[R, M, N + 1] -> f64[R, N]."""
    mean = ranks.mean(dim=1)
    deviation = ranks.std(dim=1, correction=0).clamp(min=_SMALLEST_DEVIATION)[:, :-1]
    z = (mean[:, -1:] - mean[:, :-1]) / deviation
    log_pdf = -0.5 * z**2 - 0.5 * math.log(2 * math.pi)
    right, left = z.clamp(min=-1.0), z.clamp(min=-1e3, max=-1.0)
    pdf = torch.exp(-0.5 * right**2) / math.sqrt(2 * math.pi)
    direct = torch.log(pdf + right * torch.special.ndtr(right))
    ratio = torch.log1p(left * math.sqrt(math.pi / 2) * torch.special.erfcx(-left / math.sqrt(2)))
    limit = -2.0 * torch.log(-z.clamp(max=-1e3))
    return deviation.log() + torch.where(z > -1.0, direct, log_pdf + torch.where(z > -1e3, ratio, limit))


def acquire(trainer: Trainer, histories: Histories, candidates: Tensor) -> Tensor:
    """Log expected improvement f64[R, N] of candidates f[R, N, D]; histories are sorted, so the first is the best."""
    layout, runs = trainer.layout, len(candidates)
    everyone = torch.cat([candidates, histories.x[:, :1]], dim=1)
    support = torch.cat([histories.x, scale_response(histories.response)[..., None]], dim=-1)
    everyone = _for_members(everyone[None], layout.model.members)[0]
    support = _for_members(support[None], layout.sets // runs)[0]
    scores = forward(layout, layout.views(trainer.state.flat), support, everyone).scores
    return log_improvement(mean_ranks(scores.view(runs, layout.model.members, -1)))


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def trial(
    trainer: Trainer,
    checkpoint: Tensor,
    histories: Histories,
    candidates: Tensor,
    *,
    epochs: int,
    learning_rate: float,
    generator: torch.Generator,
) -> Tensor:
    """One trial of R runs: from the checkpoint, fine-tuned, i64[R], the candidates that are evaluated next."""
    trainer.restart(checkpoint)
    histories = sort_histories(histories)
    fine_tune(trainer, histories, epochs=epochs, learning_rate=learning_rate, generator=generator)
    values = acquire(trainer, histories, candidates)
    coin = torch.rand(values.shape, generator=generator, device=values.device)
    return torch.where(values == values.amax(dim=-1, keepdim=True), coin, -1.0).argmax(dim=-1)


def draw_lists(
    tables: Histories, shape: tuple[int, int, int], rng: np.random.Generator, *, n_support: int = 20, n_query: int = 100
) -> tuple[Tensor, Tensor, Tensor]:
    """Tasks i64[shape], support and query rows i64[shape, .] in increasing order, for steps, members, lists."""
    n_tasks, n_rows = tables.level.shape
    if n_rows < n_support + n_query:
        raise ValueError(f"tasks must have {n_support + n_query} rows, but got {n_rows}")
    count, device = math.prod(shape), tables.x.device
    if device.type == "cpu":  # shuffling is quicker than sorting by random numbers
        rows = np.broadcast_to(np.arange(n_rows, dtype=np.int32), (count, n_rows))
        row_numbers = torch.as_tensor(rng.permuted(rows, axis=1)[:, : n_support + n_query])
        task = torch.as_tensor(rng.integers(n_tasks, size=shape))
    else:
        row_numbers = torch.rand(count, n_rows, device=device).argsort(dim=-1)[:, : n_support + n_query]
        task = torch.randint(n_tasks, shape, device=device)
    parts = (part.sort(dim=-1).values for part in (row_numbers[:, :n_support], row_numbers[:, n_support:]))
    support, query = (part.long().view(*shape, -1) for part in parts)
    return task, support, query


def read_lists(tables: Histories, task: Tensor, support: Tensor, query: Tensor, *, tied: bool) -> Lists:
    """Drawn rows of sorted tasks as lists [steps, members, lists, ...]."""
    task = task[..., None]
    y = scale_response(tables.response[task, support])
    weight, first, last = weigh(tables.level[task, query], tied, tables.x.dtype)
    return Lists(torch.cat([tables.x[task, support], y[..., None]], dim=-1), tables.x[task, query], weight, first, last)


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def meta_train(
    trainer: Trainer,
    tables: Histories,
    *,
    steps: int,
    lists_per_step: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> None:
    """Takes the trainer's parameters through so many steps; members with deep sets of their own have their own lists.

    Tasks are of one length, each sorted by response.
    """
    draws = trainer.layout.model.members if trainer.layout.model.context == "own" else 1
    tied = bool((tables.level[:, 1:] == tables.level[:, :-1]).any())
    sizes = step_sizes(learning_rate, range(1, steps + 1), tables.x)
    for first in range(0, steps, BLOCK):
        count = min(BLOCK, steps - first)
        draw = draw_lists(tables, (count, draws, lists_per_step), rng)
        trainer.block(read_lists(tables, *draw, tied=tied), sizes[first : first + count])
