"""The order of the methods here beside that of the results published for the real HPO-B."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markdown_tables import markdown_table
from scipy import stats

from dre_jax.data import read_results
from dre_jax.errors import ConfigError
from dre_jax.report import Comparison, compare, significance

TRACES = {
    "random": "Random",
    "gp": "GP",
    "dkgp": "DGP",
    "dngo": "DNGO",
    "bohamiann": "BOHAMIANN",
    "tst": "TST",
    "taf": "TAF",
    "rgpe": "RGPE",
    "fsbo": "FSBO",
    "dre": "DRE",
    "dre-no-finetune": "DRE-no-finetune",
    "dre-ri": "DRE-RI-deepset",
    "listwise-weighted": "loss-list-weighted_t",
    "listwise": "loss-list_t",
    "pairwise": "loss-pair_t",
    "pointwise": "loss-point_t",
    "regression": "loss-reg_t",
    "listwise-weighted-ri": "loss-list-weighted",
    "listwise-ri": "loss-list",
    "pairwise-ri": "loss-pair",
    "pointwise-ri": "loss-point",
    "regression-ri": "loss-reg",
}
"""A method, and the file of its published results."""

WHY: dict[str, str] = {
    "regression": "there meta-training makes regression worse than random weights do, here better. Here the responses "
    "of every list and of every history are put on one scale; past tasks whose levels differ would mislead it."
}
"""What was found where a method is ahead here of one that is ahead of it in the published results."""


class Pair(NamedTuple):
    """Two methods of which the first is ahead in the published results, beyond chance."""

    one: str
    other: str
    trial: int
    ahead_here: bool
    beyond_chance: bool


def published_order(comparison: Comparison, folder: Path, at: Sequence[int]) -> list[str]:
    """Both orders at each trial, how far they agree, and the pairs beyond chance one way there, the other way here.

    Raises:
      ConfigError: where the folder has no results of two of the methods.
    """
    names = [name for name in comparison.methods if (folder / f"{TRACES.get(name)}.json").exists()]
    if len(names) < 2:
        raise ConfigError(f"{folder} must hold published results of two of the methods, but has {len(names)}")
    there = compare({name: read_results(folder / f"{TRACES[name]}.json") for name in names})
    here = _of_methods(comparison, names)
    at = [t for t in at if t <= min(there.n_trials, here.n_trials)]
    intro = (
        f"The published results on HPO-B, {len(there.runs)} runs a method of {len(there.spaces)} search spaces, beside "
        "those here, ranked among these methods alone. A pair counts where it differs beyond chance (Wilcoxon's test "
        "over tasks, Holm-adjusted)."
    )
    pairs = list(_pairs(there, here, at))
    parts = ["## Beside the published results", textwrap.fill(intro, 120), _ranks(there, here, at)]
    return [*parts, _agreement(pairs, there, here, at), *_turned(pairs)]


def _of_methods(comparison: Comparison, names: Sequence[str]) -> Comparison:
    rows = [comparison.methods.index(name) for name in names]
    return comparison._replace(methods=tuple(names), regret=comparison.regret[rows])


def _ranks(there: Comparison, here: Comparison, at: Sequence[int]) -> str:
    ranks = [one.average_rank("spaces") for one in (there, here)]
    order = np.argsort(ranks[0][:, at[-1]], kind="stable")
    heads = ["method", *(f"{what} at {t}" for t in at for what in ("published", "here"))]
    rows = [[f"`{there.methods[i]}`", *(f"{rank[i, t]:.2f}" for t in at for rank in ranks)] for i in order]
    return markdown_table(heads, rows)


def _pairs(there: Comparison, here: Comparison, at: Sequence[int]) -> Iterator[Pair]:
    for t in at:
        theirs, ours = (significance(one, t) for one in (there, here))
        for i, j in np.argwhere(theirs.wilcoxon_p < theirs.alpha):
            if theirs.average_rank[i] < theirs.average_rank[j]:
                ahead = bool(ours.average_rank[i] < ours.average_rank[j])
                yield Pair(there.methods[i], there.methods[j], t, ahead, bool(ours.wilcoxon_p[i, j] < ours.alpha))


def _agreement(pairs: Sequence[Pair], there: Comparison, here: Comparison, at: Sequence[int]) -> str:
    rows = []
    for t in at:
        tau = stats.kendalltau(*(one.average_rank("spaces")[:, t] for one in (there, here))).statistic
        own = [pair for pair in pairs if pair.trial == t]
        sure = [pair.ahead_here for pair in own if pair.beyond_chance]
        turned = len(sure) - sum(sure)
        rows.append([str(t), f"{tau:.2f}", str(len(own)), str(sum(sure)), str(len(own) - len(sure)), str(turned)])
    heads = [
        "trials",
        "Kendall's tau of the ranks",
        "pairs that differ there",
        "the same here",
        "within chance",
        "turned",
    ]
    return markdown_table(heads, rows)


def _turned(pairs: Sequence[Pair]) -> list[str]:
    found: dict[tuple[str, str], list[int]] = {}
    for pair in pairs:
        if pair.beyond_chance and not pair.ahead_here:
            found.setdefault((pair.one, pair.other), []).append(pair.trial)
    if not found:
        return ["No pair is turned round beyond chance."]
    lines = [_line(*names, trials) for names, trials in found.items()]
    return ["Turned round beyond chance:", "\n".join(lines)]


def _line(one: str, other: str, trials: Sequence[int]) -> str:
    why = WHY.get(other)
    text = f"- `{one}` is ahead of `{other}` there, behind it here, at {', '.join(map(str, trials))} trials"
    return textwrap.fill(f"{text}: {why}" if why else f"{text}.", 120, subsequent_indent="  ")
